"""Every workload on 1, 2, 4, 8 devices, and resumed after a kill, with the same bytes.

    python benchmarks/scaling.py [--only scan guides …] [--device gpu|cpu] [--small] [--json FILE]

Prints a table of the figures. Nothing is timed that gives other bytes.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import cnv
import common
import dock
import numpy as np
import psutil
import scan_errors
from common import Figure, require, say
from data import DefaultSet, Genome, copy_prefix, in_page_cache, made
from processes import process, python
from runs import Job, Running, Watched, contents

from multigpu.cluster.devices.gpus import survey
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_files import write_counts

GB = 40.0  # of FASTQ
GB_OF_SET = 0.6  # the default set
SMALL_GB = 0.08
MOST_COPIES = 99
GIVEN = 4  # times FASTQ and genome are given to the command: they are read in a second
MEMORY_SHARE = 0.4  # of what is free, for the FASTQ in page cache
DISK_LEFT = 8e9  # bytes
GUIDES, SMALL_CHROMOSOME = 1000, 10_000
GENOMES, SMALL_REGIONS = 8, 30_000
LIGANDS, FEW_LIGANDS = 100_000, 400  # so many that they are read together
FINE = "3"  # degrees
KILLED_AT = 0.9  # of the chunks, before the resumed run
STARTED = 9.0  # seconds until the first chunk
RESUMED = 15.0  # per cent


@dataclass
class Bench:
    """Inputs and devices that the jobs share. devices: numbers to try, the largest last."""

    folder: Path
    runs: int
    small: bool
    gb: float
    gpu: bool
    devices: list[int]

    @property
    def most(self) -> int:
        return self.devices[-1]

    @cached_property
    def output(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="multigpu-scaling-", dir=self.folder))

    def where(self, devices: int, as_chosen: bool = False) -> tuple[str, ...]:
        """Return the options for a number of devices.

        as_chosen: whether the program chooses threads or worker processes
        """
        if self.gpu:
            workers = () if as_chosen or devices == 1 else ("--workers", str(devices))
            return ("--gpus", ",".join(map(str, range(devices))), *workers)
        return ("--gpus", "none", "--workers", str(devices), "--threads", str(devices))

    def named(self, devices: int) -> str:
        kind = "GPU" if self.gpu else "worker"
        return f"{devices} {kind}{'s' * (devices > 1)}"


# ---- the jobs ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A job and a check of its output.

    asked           how many times as fast as one device some numbers of devices must be
    asked_gb_per_s  of eight devices
    resumes         whether it runs long enough to be killed and resumed
    """

    job: Job
    check: Callable[[Path], None]
    asked: Mapping[int, float] = field(default_factory=dict)
    asked_gb_per_s: float | None = None
    resumes: bool = True


def scan_case(bench: Bench) -> Case:
    """Return the scan of a long FASTQ: many copies of the default data set, given often."""
    scale = min(1.0, bench.gb / (2 * GB_OF_SET))
    files = DefaultSet(bench.folder / f"scale-{scale:g}", 10, scale)
    copies = min(MOST_COPIES, max(2, round(bench.gb / (GB_OF_SET * scale))))
    samples = in_page_cache(files.copies(copies))
    signatures = ("-s", str(files.signatures))
    once = bench.output / "once.tsv"
    single = ("scan", str(files.samples), *signatures)
    process(python("-m", "multigpu", *single, "-o", str(once), "--gpus", "none", "-q"))
    header, *rows = once.read_bytes().splitlines(keepends=True)
    once_read = b"".join(copy_prefix(c) + row for c in range(copies) for row in rows)
    expected = header + GIVEN * once_read

    def check(out: Path) -> None:
        require(len(rows) > 0, "nothing was found")
        require((out / "hits.tsv").read_bytes() == expected, "the hits differ")

    more = ("--max-chunk-bytes", "2000000") if bench.small else ()
    job = Job(
        "scan", ("scan", *GIVEN * [str(samples)], *signatures, *more), "hits.tsv",
        GIVEN * samples.stat().st_size, single,
    )  # fmt: skip
    return Case(job, check, {2: 1.6}, asked_gb_per_s=GB)


def guides_case(bench: Bench) -> Case:
    """Return the search for guides with an exact PAM; the genome is searched sooner than read."""
    return _genome_case(bench, "guides", 3)


def mismatches_case(bench: Bench) -> Case:
    """Return the search for guides with mismatches anywhere, which the GPUs take longest for."""
    return _genome_case(bench, "mismatches", 0, {2: 1.8})


def _genome_case(
    bench: Bench, name: str, suffix: int, asked: Mapping[int, float] | None = None
) -> Case:
    """Return the search for guides in a genome, both strands, all places.

    suffix  exact bases at the end of a guide
    """
    genome = Genome(bench.folder, SMALL_CHROMOSOME if bench.small else scan_errors.CHROMOSOME)
    for path in genome.chromosomes.iterdir():
        in_page_cache(path)
    guides, few = genome.guides(GUIDES), genome.guides(1)
    rule = scan_errors.Rule("mismatches", 4, suffix)
    more = ("--strand", "both", "--hits", "all", *rule.options())

    def check(out: Path) -> None:
        header, *rows = (out / "hits.tsv").read_text().splitlines()
        once = rows[: len(rows) // GIVEN]
        require(rows == GIVEN * once, "the same genome has other rows")
        scan_errors.check_rows(genome, guides, rule, once, header.split("\t").index(rule.kind))

    samples = GIVEN * [str(genome.chromosomes)]
    job = Job(
        name, ("scan", *samples, "-s", str(guides), *more), "hits.tsv",
        GIVEN * sum(path.stat().st_size for path in genome.chromosomes.iterdir()),
        ("scan", str(genome.chromosomes / "chr1.fa"), "-s", str(few), *more),
    )  # fmt: skip
    return Case(job, check, asked or {}, resumes=False)


def cnv_case(bench: Bench) -> Case:
    """Return the copy numbers of several genomes, each as BM-A."""
    shape = {**cnv.BM_A, "regions": SMALL_REGIONS} if bench.small else cnv.BM_A

    def cohort(shape: dict[str, int]) -> Counts:
        return cnv.Bench(bench.folder).counts(shape)

    def path(name: str, counts: Callable[[], Counts]) -> Path:
        file = bench.folder / f"{name}.parquet"
        return made(file, lambda part: _write_parquet(part, counts()))

    table = path(f"genomes-{shape['regions']}", lambda: cnv.repeated_counts(cohort(shape), GENOMES))
    small = path("few-regions", lambda: cohort({**cnv.BM_A, "regions": SMALL_REGIONS}))
    options = cnv.FEW_OUTPUTS

    def check(out: Path) -> None:
        """Require that equal genomes have equal calls, and that there are some."""
        rows = [line.split("\t") for line in (out / "cnvs.tsv").read_text().splitlines()[1:]]
        of = [[r[1:] for r in rows if r[0].endswith(f"_{k}")] for k in range(GENOMES)]
        require(len(of[0]) > shape["chromosomes"], "next to nothing was called")
        require(all(each == of[0] for each in of), "equal genomes have different calls")

    job = Job(
        "cnv", ("cnv", str(table), *options), "", table.stat().st_size,
        ("cnv", str(small), *options),
    )  # fmt: skip
    return Case(job, check, {8: 6.0})


def _write_parquet(part: Path, counts: Counts) -> None:
    """Write counts as Parquet, whatever the suffix of `part`."""
    named = part.with_suffix(".parquet.making.parquet")
    write_counts(str(named), counts)
    named.rename(part)


def dock_case(
    bench: Bench, *search: str, name: str = "dock", asked: Mapping[int, float] | None = None
) -> Case:
    """Return the docking of a library in AutoGrid's pocket, or a random one.

    At 10° a ligand is read and written in more time than a GPU takes for it.
    """
    count = FEW_LIGANDS if bench.small else LIGANDS
    library, few = (dock.library(bench.folder, n) for n in (count, FEW_LIGANDS))
    options = dock.pocket_options(bench.folder)
    more = ("--max-chunk-bytes", "3000") if bench.small else ()

    def check(out: Path) -> None:
        rows = (out / "poses.scores.tsv").read_text().splitlines()[1:]
        require(len(rows) == count, f"{len(rows)} of {count} ligands were docked")

    job = Job(
        name, ("dock", str(library), *options, *search, *more), "poses.pdbqt",
        library.stat().st_size, ("dock", str(few), *options, *search),
    )  # fmt: skip
    return Case(job, check, asked or {})


def fine_case(bench: Bench) -> Case:
    """Return the same docking at a precision at which GPUs are the bottleneck."""
    precision = "30" if bench.small else FINE
    return dock_case(bench, "--precision", precision, name="fine", asked={2: 1.8, 8: 7.2})


CASES: dict[str, Callable[[Bench], Case]] = {
    "scan": scan_case,
    "guides": guides_case,
    "mismatches": mismatches_case,
    "cnv": cnv_case,
    "dock": dock_case,
    "fine": fine_case,
}


# ---- running ----------------------------------------------------------------------------------


class Series:
    """Runs of a case, which must all give the same bytes."""

    def __init__(self, bench: Bench, case: Case) -> None:
        self.bench, self.case, self.job = bench, case, case.job
        self.expected: dict[str, str] = {}

    def run(self, devices: int, as_chosen: bool = False) -> Watched:
        folder = self.bench.output / self.job.name
        shutil.rmtree(folder, ignore_errors=True)
        return self._ended(folder, *self.bench.where(devices, as_chosen))

    def _ended(self, folder: Path, *options: str) -> Watched:
        ran = Running(self.job, folder, *options).ended()
        found = contents(folder)
        if not self.expected:
            self.case.check(folder / "out")
            self.expected = found
        differs = sorted(set(found.items()) ^ set(self.expected.items()))
        require(not differs, f"other bytes: {', '.join(dict(differs))}")
        return ran

    def warm(self) -> None:
        """Run a small job, to have kernels cached and packages in the page cache."""
        folder = self.bench.output / "warm"
        small = Job(self.job.name, self.job.small or self.job.arguments, self.job.output, 0)
        Running(small, folder, *self.bench.where(1)).ended()

    def median(self, devices: int, as_chosen: bool = False) -> Watched:
        ran = [self.run(devices, as_chosen) for _ in range(self.bench.runs)]
        return sorted(ran, key=lambda each: each.work)[len(ran) // 2]

    def resumed(self, devices: int, chunks: int) -> tuple[int, Watched]:
        """Kill a run when most chunks are finished; return how many were kept, and the next run."""
        folder = self.bench.output / self.job.name
        shutil.rmtree(folder, ignore_errors=True)
        where = self.bench.where(devices, as_chosen=True)
        first = Running(self.job, folder, *where)
        first.until(int(KILLED_AT * chunks))
        require(first.alive(), "the run had ended before it could be killed")
        first.kill()
        ran = self._ended(folder, *where, "--resume")
        require(ran.count("resumed") > 0, "nothing was resumed")
        return ran.count("resumed"), ran


def measure(bench: Bench, case: Case) -> Iterator[Figure]:
    """Yield the figures of all runs of a job, the most important first."""
    series, name = Series(bench, case), case.job.name
    series.warm()
    alone = series.median(1)
    whole = alone
    if bench.most > 1:
        yield from undisturbed(bench, case, bench.most, series.median(bench.most), alone)
        whole = series.median(bench.most, as_chosen=True)
        yield from as_chosen(bench, case, whole, alone)
    else:
        yield from undisturbed(bench, case, 1, alone, alone)
    if case.resumes:
        yield from resume(bench, series, whole)
    for devices in bench.devices[1:-1]:
        ran = series.median(devices)
        yield from undisturbed(bench, case, devices, ran, alone)
    say(f"  {name}: the same bytes in all runs")


def started(bench: Bench, case: Case, devices: int, ran: Watched) -> Iterator[Figure]:
    """Yield how long a user waits."""
    name, where = case.job.name, bench.named(devices)
    yield Figure("scaling", f"{name}, {where}: process", "s", [ran.seconds],
                 note=f"{ran.work:.3g} s from the first chunk to the last")  # fmt: skip
    yield Figure("scaling", f"{name}, {where}: from the command to the first finished chunk", "s",
                 [ran.first_chunk], STARTED if devices == 8 else None)  # fmt: skip


def as_chosen(bench: Bench, case: Case, ran: Watched, alone: Watched) -> Iterator[Figure]:
    """Yield the figures of all devices, by threads or worker processes as the program chooses."""
    what = f"{case.job.name}, {bench.named(bench.most)} against one, as chosen, without start-up"
    times, asked = alone.work / ran.work, case.asked.get(bench.most)
    note = f"work {ran.work:.3g} s"
    yield Figure("scaling", what, "×", [times], asked, at_most=False, note=note)
    yield from started(bench, case, bench.most, ran)


def undisturbed(
    bench: Bench, case: Case, devices: int, ran: Watched, alone: Watched
) -> Iterator[Figure]:
    """Yield the figures of a run that nothing happens to."""
    name, where = case.job.name, bench.named(devices)
    if devices > 1:
        what = f"{name}, {where} against one, each a process, without start-up"
        note = f"work {ran.work:.3g} s, process {ran.seconds:.3g} s"
        yield Figure("scaling", what, "×", [alone.work / ran.work], note=note)
    else:
        yield from started(bench, case, 1, ran)
    busy = [max(steps.values()) for steps in ran.busy().values()]
    yield Figure("scaling", f"{name}, {where}: busiest step's share of the time, each device", "%",
                 [100 * share for share in busy])  # fmt: skip
    if case.asked_gb_per_s is not None:
        rate = ran.gb_per_s(case.job.read)
        yield Figure("scaling", f"{name}, {where}: {case.job.read / 1e9:.3g} GB, steady state",
                     "GB/s", [rate], case.asked_gb_per_s if devices == 8 else None, at_most=False,
                     note=f"{case.job.read / ran.seconds / 1e9:.3g} in the whole run")  # fmt: skip


def resume(bench: Bench, series: Series, whole: Watched) -> Iterator[Figure]:
    """Yield how long a run takes that resumes one killed at 90 %, without its start-up.

    The first figure takes the start-up of the run from the beginning, so that reading the journal
    counts. Where reading the input is most of the start-up, it varies, and the second says more.
    """
    chunks, rest, work = len(whole.finished), [], []
    for _ in range(bench.runs):
        kept, ran = series.resumed(bench.most, chunks)
        rest.append(100 * max(0.0, ran.seconds - whole.start_up) / whole.seconds)
        work.append(100 * (ran.seconds - ran.start_up) / whole.seconds)
    what = f"{series.job.name}, {bench.named(bench.most)}: resumed after a kill at 90 %"
    note = f"{kept} of {chunks} chunks kept; {ran.seconds:.3g} s of {whole.seconds:.3g}"
    yield Figure("resume", f"{what}, without start-up", "%", rest, RESUMED,
                 note=f"{note}, {whole.start_up:.3g} of them start-up")  # fmt: skip
    yield Figure("resume", f"{what}, without its own start-up", "%", work)


# ---- all together -----------------------------------------------------------------------------


def _options() -> argparse.Namespace:
    parser = common.options_of(__doc__, CASES, runs=3, has_scale=False)
    parser.add_argument(
        "--devices", type=int, nargs="+", metavar="N",
        help="how many; else 1, 2, 4, 8 …; of workers 1 2",
    )  # fmt: skip
    parser.add_argument("--gb", type=float, help=f"of FASTQ; else {GB:g}, or what memory allows")
    parser.add_argument("--small", action="store_true", help="inputs of seconds, to try it out")
    return parser.parse_args()


def _devices(asked: list[int] | None, gpu: bool) -> list[int]:
    there = len(survey().devices) if gpu else common.cores()
    usual = [n for n in (1, 2, 4, 8, 16) if n <= (there if gpu else 2)]
    chosen = sorted({1, *(asked or ([*usual, there] if gpu else usual))})
    if chosen[-1] > there:
        raise SystemExit(f"--devices {chosen[-1]}: there are {there}")
    return chosen


def _gb(options: argparse.Namespace) -> float:
    if options.gb or options.small:
        return float(options.gb or SMALL_GB)
    disk = shutil.disk_usage(options.data).free - DISK_LEFT
    room = min(GB * 1e9, MEMORY_SHARE * psutil.virtual_memory().available, disk)
    return float(np.floor(max(1.0, room / 1e9)))


def main() -> None:
    options = _options()
    gpu = not common.why_no_gpu(options.device)
    options.data.mkdir(parents=True, exist_ok=True)
    report = common.report_of(options)
    bench = Bench(
        options.data, options.runs, options.small, _gb(options), gpu,
        _devices(options.devices, gpu),
    )  # fmt: skip
    for name in options.only or CASES:
        report.measure(name, lambda name=name: measure(bench, CASES[name](bench)))
    shutil.rmtree(bench.output, ignore_errors=True)
    report.end(full_size=not options.small)


if __name__ == "__main__":
    main()
