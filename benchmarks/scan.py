"""The figures of the scan: checks the results, then times. `benchmarks/README.md` has the list.

    python benchmarks/scan.py [--only kernels records …] [--data DIR] [--json FILE] [--runs 5]

Prints one Markdown table. Parts that need a GPU are skipped, with the reason, where there is none.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import FIRST, Figure, GpuSearch, Letters, Report, covered, repeated, require, same_hits
from data import DefaultSet, ReadSet, copy_prefix, in_page_cache, letters_of
from processes import Ran, process, python
from records import FromRecords, hit_rows, samples_of

from multigpu.formats.sequences.signatures import Signatures, read_signatures
from multigpu.kernels.scan import Hits, Patterns
from multigpu.run.options import DEFAULT_CHUNK_BYTES, RunOptions
from multigpu.scan.options import ScanOptions

HERE = Path(__file__).parent
FEW_CORES = 2
STREAM_COPIES = 17  # 10.2 GB
SMALL_COPIES = 2  # 1.2 GB
GZIP_COPIES = 12  # of the default set: what one lane of a sequencer gives, about
READS = 20_000_000
PIECES = (4, 6, 8, 10, 12, 16)
HELP_RUNS = 11
CHUNKS_IN_MEMORY = 4
NAMES = {10: "10 % N", 0: "without N"}


@dataclass
class Bench:
    """What the parts work with."""

    folder: Path
    runs: int
    scale: float
    gpu: int | None  # None: the CPU
    details: dict[str, Any] = field(default_factory=dict)

    def default(self, n_percent: int) -> DefaultSet:
        return DefaultSet(self.folder, n_percent, self.scale)

    @property
    def gpus(self) -> str:
        """For the command line."""
        return "none" if self.gpu is None else str(self.gpu)

    @property
    def where(self) -> str:
        return f"{common.cores()} cores" if self.gpu is None else "one GPU"

    @cached_property
    def output(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="multigpu-bench-"))

    def copies(self, count: int) -> int:
        return max(1, round(count * min(1.0, self.scale * 10)))


Part = Callable[[Bench], Iterator[Figure]]


# ---- in memory --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A default data set in memory, with the hits that are right."""

    data: Letters
    signatures: Signatures
    patterns: Patterns
    hits: Hits

    @classmethod
    def of(cls, files: DefaultSet) -> "Case":
        data, signatures = letters_of(files.samples), read_signatures([str(files.signatures)])
        patterns = Patterns.of(signatures.letters)
        hits = common.cpu_search(data, patterns, common.cores())
        case = cls(data, signatures, patterns, hits)
        case.check(files)
        return case

    def check(self, files: DefaultSet) -> None:
        """As much was found as was planted, every hit is real, a plain search finds the same."""
        found, counts = np.unique(self.hits.record, return_counts=True)
        require(len(found) == files.infected, f"{len(found)} samples with hits")
        require(counts.min() >= 1 and counts.max() <= 2, "1 or 2 signatures a sample were planted")
        common.check_hits_are_real(self.data, self.patterns, self.hits)
        records = [0, len(self.data) - 1, *found[:6].tolist()]
        chosen = np.unique(np.r_[self.hits.pattern, 0:1000:25]).tolist()
        common.check_against_plain(self.data, self.patterns, self.hits, records, chosen)


def part_kernels(bench: Bench) -> Iterator[Figure]:
    """Copy in, index, kernels and copy out, from pinned memory."""
    from multigpu.kernels.scan import cuda

    for n_percent, asked in ((10, 8.0), (0, 6.5)):
        case = Case.of(bench.default(n_percent))
        pinned = Letters(cuda.pinned_like(case.data.letters), case.data.offsets)
        tried: dict[int, list[float]] = {}
        for pieces in PIECES:
            search = GpuSearch(pinned, pieces)
            require(same_hits(search.run(case.patterns), case.hits), "the GPU's hits differ")
            tried[pieces] = _milliseconds(partial(search.run, case.patterns), bench.runs)
        pieces = min(tried, key=lambda key: float(np.median(tried[key])))
        search = GpuSearch(pinned, pieces)
        chosen = _milliseconds(partial(search.run, case.patterns), bench.runs)  # once more
        alone = _alone(search, case.patterns, bench.runs)
        bench.details[f"kernels {NAMES[n_percent]}"] = {
            "milliseconds by pieces": tried,
            "milliseconds alone": alone,
            "bases": int(case.data.offsets[-1]),
        }
        yield Figure(
            "kernels",
            f"default, {NAMES[n_percent]}: copy in, index, kernels, copy out",
            "ms",
            chosen,
            asked,
            note=f"{pieces} chunks; alone: "
            + ", ".join(f"{name} {np.median(values):.3g}" for name, values in alone.items()),
        )


def _milliseconds(run: Callable[[], Any], runs: int) -> list[float]:
    return [1e3 * seconds for seconds in repeated(run, runs)]


def _alone(search: GpuSearch, patterns: Patterns, runs: int) -> dict[str, list[float]]:
    """Milliseconds of the stages one after the other."""
    import cupy

    from multigpu.kernels.scan import cuda

    scanner = cuda.Scanner(patterns, FIRST)

    def copy_in() -> None:
        search.upload()
        cupy.cuda.Device().synchronize()

    stages = {
        "copy in": copy_in,
        "index": lambda: cuda.Scanner(patterns, FIRST),
        "kernels and copy out": lambda: search.search(scanner),
    }
    return {name: _milliseconds(run, runs) for name, run in stages.items()}


def part_records(bench: Bench) -> Iterator[Figure]:
    """From records in pageable memory to the list of matches, scores too."""
    for n_percent in (10, 0):
        files = bench.default(n_percent)
        job = FromRecords(
            samples_of(files.samples), read_signatures([str(files.signatures)]), pieces=10
        )
        rows = [(*row[:3], repr(row[3])) for row in job.run()]
        require(rows == _cpu_rows(bench, files), "the matches are not those of the command line")
        seconds = repeated(job.run, bench.runs)
        gather = repeated(job.gathered, bench.runs)
        index = repeated(job.index, bench.runs)
        yield Figure(
            "records",
            f"default, {NAMES[n_percent]}: records in memory to list of matches",
            "ms",
            [1e3 * s for s in seconds],
            40.0,
            note=f"alone: gather {1e3 * np.median(gather):.3g}, sets and index "
            f"{1e3 * np.median(index):.3g}; {common.cores()} threads gather",
        )


def _cpu_rows(bench: Bench, files: DefaultSet) -> list[tuple[str, str, int, str]]:
    """The rows of the command line on the CPU."""
    out = _scan(bench, files.samples, files.signatures, "none")[1]
    rows = [line.split("\t") for line in out.decode().splitlines()[1:]]
    return [(row[0], row[1], int(row[2]), row[5]) for row in rows]


# ---- whole processes --------------------------------------------------------------------------


def _scan(
    bench: Bench,
    samples: Path,
    signatures: Path,
    gpus: str,
    *more: str,
    use_cores: int | None = None,
) -> tuple[Ran, bytes]:
    """One run of the command line, and its output."""
    target = bench.output / "out.tsv"
    target.unlink(missing_ok=True)
    command = python("-m", "multigpu", "scan", str(samples), "-s", str(signatures))
    ran = process([*command, "-o", str(target), "--gpus", gpus, "-q", *more], use_cores)
    return ran, target.read_bytes()


def _scans(
    bench: Bench, runs: int, expected: bytes | None, *arguments: Any, **options: Any
) -> list[Ran]:
    """Runs after one that is not timed but checked."""
    _, out = _scan(bench, *arguments, **options)
    require(expected is None or out == expected, "the output differs")
    return [_scan(bench, *arguments, **options)[0] for _ in range(runs)]


def _seconds(ran: Sequence[Ran]) -> list[float]:
    return [r.seconds for r in ran]


def part_process(bench: Bench) -> Iterator[Figure]:
    """FASTQ in page cache to output file."""
    for n_percent in (10, 0):
        files = bench.default(n_percent)
        samples = in_page_cache(files.samples)
        _, expected = _scan(bench, samples, files.signatures, "none")
        planted = len({line.split(b"\t")[0] for line in expected.splitlines()[1:]})
        require(planted == files.infected, f"{planted} samples with matches")
        what = f"default, {NAMES[n_percent]}: whole process"
        cpu = _scans(bench, bench.runs, None, samples, files.signatures, "none")
        yield Figure("process", f"{what}, {common.cores()} cores", "s", _seconds(cpu))
        where = (samples, files.signatures, bench.gpus)
        start = _start_up(bench, *where)
        if bench.gpu is None:
            gpu = cpu
        else:
            gpu = _scans(bench, bench.runs, expected, *where)
            yield Figure("process", f"{what}, one GPU", "s", _seconds(gpu), 2.5)
        rest = [max(0.0, r.seconds - s) for r, s in zip(gpu, start, strict=True)]
        begun = "imports" if bench.gpu is None else "imports and CUDA start"
        yield Figure(
            "process",
            f"{what}, {bench.where}: without {begun}",
            "s",
            rest,
            None if bench.gpu is None else 0.5,
            note=f"{begun} alone {np.median(start):.3g} s",
        )


def _start_up(bench: Bench, samples: Path, signatures: Path, gpus: str) -> list[float]:
    """Seconds of a process that imports what a scan imports, starts CUDA and ends."""
    modules, script = bench.output / "modules.json", str(HERE / "startup.py")
    arguments = ["scan", str(samples), "-s", str(signatures), "--gpus", gpus, "-q"]
    process(python(script, "list", str(modules), *arguments, "-o", str(bench.output / "o.tsv")))
    device = [] if bench.gpu is None else [gpus]
    only = python(script, "only", str(modules), *device)
    process(only)
    return [process(only).seconds for _ in range(bench.runs)]


def part_cpu(bench: Bench) -> Iterator[Figure]:
    """The default data set on two cores."""
    for n_percent, asked in ((10, 25.0), (0, 6.0)):
        files = bench.default(n_percent)
        samples = in_page_cache(files.samples)
        more = ("--threads", str(FEW_CORES))
        ran = _scans(
            bench, bench.runs, None, samples, files.signatures, "none", *more, use_cores=FEW_CORES
        )
        peak = max(r.peak_bytes for r in ran) / 1e9
        yield Figure(
            "cpu",
            f"default, {NAMES[n_percent]}: whole process, {FEW_CORES} CPU cores",
            "s",
            _seconds(ran),
            asked,
            note=f"peak memory {peak:.2g} GB",
        )


def part_gzip(bench: Bench) -> Iterator[Figure]:
    """A gzip FASTQ against decompressing alone: runs of both in turn, each pair a ratio."""
    files = bench.default(0)
    copies = bench.copies(GZIP_COPIES)
    packed = in_page_cache(files.gzipped(copies))
    _, once = _scan(bench, files.samples, files.signatures, "none")
    header, rows = once.split(b"\n", 1)
    expected = header + b"\n" + rows * copies
    code = (
        "import sys; from isal import igzip; out = bytearray(1 << 20)\n"
        "with igzip.open(sys.argv[1]) as file:\n    while file.readinto(out): pass\n"
    )
    command = python("-c", code, str(packed))
    process(command, FEW_CORES)
    for gpus in dict.fromkeys(["none", bench.gpus]):
        alone, ran = [], []
        for _ in range(bench.runs):
            alone.append(process(command, FEW_CORES).seconds)
            where = (packed, files.signatures, gpus)
            one, rows = _scan(bench, *where, use_cores=FEW_CORES)
            require(rows == expected, "the output differs")
            ran.append(one.seconds)
        with_what = f"{FEW_CORES} CPU cores" + (" and one GPU" if gpus != "none" else "")
        yield Figure(
            "gzip",
            f"gzip FASTQ, {with_what}: time beyond decompressing alone",
            "%",
            [100 * (ours / theirs - 1) for ours, theirs in zip(ran, alone, strict=True)],
            10.0 if gpus == "none" else None,
            note=f"scan {np.median(ran):.3g} s, isal alone {np.median(alone):.3g} s, "
            f"{packed.stat().st_size / 1e9:.2g} GB packed, whole processes",
        )


def part_memory(bench: Bench) -> Iterator[Figure]:
    """Peak resident memory, for inputs of several sizes."""
    files = bench.default(10)
    clean = bench.default(0)
    most = 2.0 + CHUNKS_IN_MEMORY * DEFAULT_CHUNK_BYTES / 1e9
    for path, signatures in (
        (files.copies(bench.copies(SMALL_COPIES)), files.signatures),
        (files.copies(bench.copies(STREAM_COPIES)), files.signatures),
        (clean.gzipped(bench.copies(GZIP_COPIES)), clean.signatures),
    ):
        ran = [_scan(bench, path, signatures, bench.gpus)[0] for _ in range(min(3, bench.runs))]
        size = path.stat().st_size / 1e9
        kind = "gzip FASTQ" if path.suffix == ".gz" else "FASTQ"
        yield Figure(
            "memory",
            f"peak host memory, {kind} of {size:.2g} GB, {bench.where}",
            "GB",
            [r.peak_bytes / 1e9 for r in ran],
            most,
            note=f"{np.median(_seconds(ran)):.3g} s; asked: 2 GB and {CHUNKS_IN_MEMORY} chunks",
        )


def part_help(bench: Bench) -> Iterator[Figure]:
    """Start-up."""
    command = python("-m", "multigpu", "--help")
    process(command)
    seconds = [process(command).seconds for _ in range(max(HELP_RUNS, bench.runs))]
    yield Figure("help", "python -m multigpu --help", "s", seconds, 0.3)


# ---- long inputs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steady:
    """A run without its start-up: from the end of its first tenth to its last chunk's end."""

    gb_per_s: float
    busy: dict[str, float]  # share of the time in which some chunk is at this step
    at_once: dict[str, float]  # chunks at this step, on average
    whole_seconds: float
    rows: bytes


def _steady(bench: Bench, samples: Path, signatures: Path) -> Steady:
    from multigpu.scan.inputs import expand_inputs
    from multigpu.scan.job import ScanJob

    begin = time.monotonic()
    inputs = expand_inputs([str(samples)], [str(signatures)])
    job = ScanJob(inputs, ScanOptions(), RunOptions(gpus=bench.gpus))
    outcomes: list[Any] = []
    job.outcomes = partial(_noted, job.outcomes, outcomes)  # type: ignore[method-assign]
    rows = b"".join(bytes(some) for some in job.rows("tsv"))
    whole = time.monotonic() - begin
    ends = sorted((max(step.end for step in o.steps), _bytes(o.part)) for o in outcomes)
    skipped = max(1, len(ends) // 10)
    require(len(ends) > 2 * skipped, "too few chunks for a steady state")
    since, until = ends[skipped - 1][0], ends[-1][0]
    steps: dict[str, list[tuple[float, float]]] = {}
    for step in (step for outcome in outcomes for step in outcome.steps):
        if step.end > since:
            steps.setdefault(step.name, []).append((max(since, step.begin), step.end))
    return Steady(
        sum(size for _, size in ends[skipped:]) / (until - since) / 1e9,
        {name: covered(spans) / (until - since) for name, spans in steps.items()},
        {n: sum(b - a for a, b in spans) / (until - since) for n, spans in steps.items()},
        whole,
        rows,
    )


def _noted(outcomes: Callable[..., Iterator[Any]], noted: list[Any], fmt: str) -> Iterator[Any]:
    """The outcomes of a job, and the history of their chunks beside."""
    for outcome in outcomes(fmt):
        noted.append(outcome)
        yield outcome


def _bytes(part: Any) -> int:
    """Of the file; a span in which no record begins has none."""
    return part.stop - part.begin if part.begin >= 0 else 0


def _steady_figures(
    bench: Bench, part: str, what: str, asked: float, runs: Sequence[Steady]
) -> Iterator[Figure]:
    def shares(of: Callable[[Steady], dict[str, float]]) -> str:
        names = of(runs[0])
        return ", ".join(f"{n} {np.median([of(run)[n] for run in runs]):.2f}" for n in names)

    yield Figure(
        part,
        f"{what}, {bench.where}: steady state",
        "GB/s",
        [run.gb_per_s for run in runs],
        None if bench.gpu is None else asked,
        at_most=False,
        note=f"whole run {np.median([run.whole_seconds for run in runs]):.3g} s",
    )
    yield Figure(
        part,
        f"{what}, {bench.where}: busiest step's share of the time",
        "",
        [max(run.busy.values()) for run in runs],
        None if bench.gpu is None else 0.8,
        at_most=False,
        note=f"{shares(lambda run: run.busy)}; chunks at once: {shares(lambda run: run.at_once)}",
    )


def part_stream(bench: Bench) -> Iterator[Figure]:
    """A long FASTQ, steady state."""
    files, copies = bench.default(10), bench.copies(STREAM_COPIES)
    samples = in_page_cache(files.copies(copies))
    _, once = _scan(bench, files.samples, files.signatures, "none")
    rows = once.splitlines(keepends=True)[1:]
    expected = b"".join(copy_prefix(c) + row for c in range(copies) for row in rows)
    require(_steady(bench, samples, files.signatures).rows == expected, "the rows differ")
    runs = [_steady(bench, samples, files.signatures) for _ in range(bench.runs)]
    size = samples.stat().st_size / 1e9
    yield from _steady_figures(bench, "stream", f"FASTQ of {size:.3g} GB, 10 % N", 15.0, runs)


def part_reads(bench: Bench) -> Iterator[Figure]:
    """Many short reads."""
    files = ReadSet(bench.folder, round(READS * bench.scale))
    reads = in_page_cache(files.reads)
    _check_reads(files, _steady(bench, reads, files.signatures).rows)
    runs = [_steady(bench, reads, files.signatures) for _ in range(bench.runs)]
    what = f"{files.count / 1e6:g} M reads of 150, 1,000 signatures of 24–40"
    bench.details["reads gigabytes"] = reads.stat().st_size / 1e9
    yield from _steady_figures(bench, "reads", what, 3.0, runs)


def _check_reads(files: ReadSet, rows: bytes) -> None:
    """Everything planted was found; what else was found is real."""
    found = [line.split(b"\t")[:3] for line in rows.splitlines()]
    pairs = {(int(read[1:]), int(name[3:])): int(start) for read, name, start in found}
    for read, number, start in files.planted.tolist():
        require(pairs.pop((read, number), 1 << 30) <= start, f"read {read}: planted, not found")
    require(len(pairs) <= len(found) / 100, f"{len(pairs)} hits that were not planted")
    raw = np.memmap(files.reads, np.uint8, "r")
    letters = read_signatures([str(files.signatures)]).letters
    width = len(raw) // files.count
    for (read, number), start in list(pairs.items())[:1000]:
        bases = common.bases.encode(np.array(raw[read * width + 11 :][:150]))
        signature = common.bases.encode(letters[number])
        real = (bases[start : start + len(signature)] & signature) != 0
        require(bool(real.all()), f"read {read}: no match at {start}")


# ---- the rival --------------------------------------------------------------------------------


def part_hyperscan(bench: Bench) -> Iterator[Figure]:
    """Literals on all cores, ours with its index against Hyperscan without its compiling."""
    files, threads = bench.default(0), common.cores()
    case = Case.of(files)
    rival = _rival(bench, files, threads)
    ours = [list(row) for row in hit_rows(case.hits)]
    require(rival["hits"] == ours, "Hyperscan finds other hits")
    size = case.data.offsets[-1] / 1e6
    theirs = rival.pop("seconds")
    rival.pop("hits")
    bench.details["hyperscan"] = rival
    what = f"1,000 literals of 3–10 kb, {size:.0f} MB"
    yield Figure(
        "hyperscan", f"{what}: Hyperscan, {threads} processes", "s", theirs,
        note=f"compiling not counted: {rival['compile_seconds']:.2g} s",
    )  # fmt: skip
    cpu = repeated(lambda: common.cpu_search(case.data, case.patterns, threads), bench.runs)
    yield from _against(theirs, cpu, f"{what}: ours, {threads} threads", 1.0)
    if bench.gpu is not None:
        from multigpu.kernels.scan import cuda

        pinned = Letters(cuda.pinned_like(case.data.letters), case.data.offsets)
        search = GpuSearch(pinned, 10)
        require(same_hits(search.run(case.patterns), case.hits), "the GPU's hits differ")
        gpu = repeated(lambda: search.run(case.patterns), bench.runs)
        yield from _against(theirs, gpu, f"{what}: ours, one GPU, copied there", 50.0)

        search = GpuSearch(pinned, 1)  # there is no copy to be searched beside
        search.upload()

        def there() -> Hits:
            return search.search(cuda.Scanner(case.patterns, FIRST, int(case.data.offsets[-1])))

        require(same_hits(there(), case.hits), "the GPU's hits differ")
        gpu = repeated(there, bench.runs)
        yield from _against(theirs, gpu, f"{what}: ours, one GPU, letters in its memory", 50.0)


def _rival(bench: Bench, files: DefaultSet, processes: int) -> dict[str, Any]:
    script, target = str(HERE / "rival_hyperscan.py"), bench.output / "rival.json"
    counts = ("--processes", str(processes), "--runs", str(bench.runs))
    process(python(script, str(files.samples), str(files.signatures), str(target), *counts))
    found: dict[str, Any] = json.loads(target.read_text())
    return found


def _against(
    theirs: Sequence[float], ours: Sequence[float], what: str, asked: float
) -> Iterator[Figure]:
    yield Figure(
        "hyperscan",
        f"{what}, times as fast",
        "×",
        [float(np.median(theirs)) / seconds for seconds in ours],
        asked,
        at_most=False,
        note=f"{1e3 * np.median(ours):.3g} ms with the index",
    )


# ---- all together -----------------------------------------------------------------------------

PARTS: dict[str, Part] = {
    "help": part_help,
    "kernels": part_kernels,
    "records": part_records,
    "process": part_process,
    "stream": part_stream,
    "reads": part_reads,
    "cpu": part_cpu,
    "hyperscan": part_hyperscan,
    "gzip": part_gzip,
    "memory": part_memory,
}
GPU_ONLY = ("kernels", "records")
ON_CPU_IF_ASKED = ("stream", "reads", "memory")  # long: on a CPU only with --gpu none
NEEDS = {"hyperscan": "hyperscan"}


def _missing(name: str, bench: Bench, without: str | None, asked_for_cpu: bool) -> str | None:
    """Why a part cannot run here."""
    import importlib.util

    if bench.gpu is None and name in GPU_ONLY:
        return f"needs a GPU: {without or '--gpu none was given'}"
    if bench.gpu is None and name in ON_CPU_IF_ASKED and not asked_for_cpu:
        return f"needs a GPU (--gpu none runs it on the CPU): {without}"
    package = NEEDS.get(name)
    if package and importlib.util.find_spec(package) is None:
        return f"needs the package {package}: pip install multigpu[bench]"
    return None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME",
                        help=f"some of: {' '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "multigpu-data",
                        help="where the inputs are, or are made (up to 20 GB)")  # fmt: skip
    parser.add_argument("--json", type=Path, help="write figures, details and the machine here")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each figure")
    parser.add_argument("--gpu", default="auto", help="a number, none or auto: 0 if there is one")
    parser.add_argument("--scale", type=float, default=1.0,
                        help="smaller inputs, to try it out: 0.01")  # fmt: skip
    return parser.parse_args()


def _chosen_gpu(option: str) -> tuple[int | None, str | None]:
    """The GPU to use and, where there is none, why."""
    if option == "none":
        return None, None
    missing = common.gpu_missing()
    if missing and option != "auto":
        raise SystemExit(f"--gpu {option}: {missing}")
    return (None, missing) if missing else (0 if option == "auto" else int(option), None)


def main() -> None:
    options = _options()
    gpu, without = _chosen_gpu(options.gpu)
    folder = options.data / f"scale-{options.scale:g}"
    bench = Bench(folder, options.runs, options.scale, gpu)
    settings = {key: str(value) for key, value in vars(options).items()}
    report = Report(common.machine(), settings, options.json, details=bench.details)
    report.run(
        PARTS, options.only, bench,
        lambda name: _missing(name, bench, without, options.gpu == "none"),
    )  # fmt: skip
    report.end(full_size=options.scale == 1)


if __name__ == "__main__":
    main()
