"""The figures of the scan: results are checked, then runs are timed.

    python benchmarks/scan.py [--only kernels stream …] [--device cpu|gpu] [--json FILE] [--runs 5]

Prints one Markdown table. Parts that need a GPU are skipped, with the reason, where there is none.
"""

import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import pyarrow as pa
from common import Figure, repeated, require, timed
from data import DefaultSet, ReadSet, copy_prefix, in_page_cache, letters_of
from hyperscan_literals import Hyperscan
from numpy.typing import NDArray
from processes import Ran, process, python
from runs import Job, Running, Watched
from searches import (
    FIRST,
    GpuSearch,
    Letters,
    check_against_plain,
    check_hits_are_real,
    cpu_search,
    same_hits,
)

from multigpu import Scanner
from multigpu.formats.sequences.signatures import read_signatures
from multigpu.kernels import bases
from multigpu.kernels.scan import Hits, Patterns
from multigpu.run.options import DEFAULT_CHUNK_BYTES
from multigpu.workloads.scan.output.row_lines import COLUMNS

NAMES = {10: "10 % N", 0: "without N"}
FEW_CORES = 2
SMALL_COPIES = 2  # 1.2 GB
STREAM_COPIES = 17  # 10.2 GB
GZIP_COPIES = 12  # what one lane of a sequencer gives, about
READS = 20_000_000
READS_IN_MEMORY = 1_000_000
SINGLE_SCANS = 100
HELP_RUNS = 11
CHUNKS_IN_MEMORY = 4
PIECES = (4, 6, 8, 10, 12, 16)


class Bench(common.Bench):
    """Bench of the scan."""

    def default(self, n_percent: int) -> DefaultSet:
        return DefaultSet(self.folder, n_percent, self.scale)

    @property
    def gpus(self) -> str:
        """Value of `--gpus` for the command line."""
        return "0" if self.gpu else "none"

    def copies(self, count: int) -> int:
        return max(1, round(count * min(1.0, self.scale * 10)))


def scan_once(
    bench: Bench,
    samples: Path,
    signatures: Path,
    gpus: str,
    *more: str,
    use_cores: int | None = None,
) -> tuple[Ran, bytes]:
    """Run the command once; return how it ran and the output."""
    target = bench.output / "out.tsv"
    target.unlink(missing_ok=True)
    command = python("-m", "multigpu", "scan", str(samples), "-s", str(signatures))
    ran = process([*command, "-o", str(target), "--gpus", gpus, "-q", *more], use_cores)
    return ran, target.read_bytes()


def scan_again(
    bench: Bench, runs: int, expected: bytes | None, *arguments: Any, **options: Any
) -> list[Ran]:
    """Run the command `runs` times, after one run that is checked and not timed."""
    _, out = scan_once(bench, *arguments, **options)
    require(expected is None or out == expected, "the output differs")
    return [scan_once(bench, *arguments, **options)[0] for _ in range(runs)]


def seconds_of(ran: Sequence[Ran]) -> list[float]:
    return [r.seconds for r in ran]


# ---- whole processes --------------------------------------------------------------------------


def part_process(bench: Bench) -> Iterator[Figure]:
    """Time the process, from FASTQ in page cache to the output file."""
    for n_percent in (10, 0):
        files = bench.default(n_percent)
        samples = in_page_cache(files.samples)
        _, expected = scan_once(bench, samples, files.signatures, "none")
        planted = len({line.split(b"\t")[0] for line in expected.splitlines()[1:]})
        require(planted == files.infected, f"{planted} samples with matches")
        what = f"default, {NAMES[n_percent]}: whole process"
        cpu = scan_again(bench, bench.runs, None, samples, files.signatures, "none")
        yield Figure("process", f"{what}, {common.cores()} cores", "s", seconds_of(cpu))
        if bench.gpu:
            gpu = scan_again(bench, bench.runs, expected, samples, files.signatures, bench.gpus)
            yield Figure("process", f"{what}, one GPU", "s", seconds_of(gpu), 1.5)


def part_cpu(bench: Bench) -> Iterator[Figure]:
    """Time the process on two cores."""
    for n_percent, asked in ((10, 3.0), (0, 1.0)):
        files = bench.default(n_percent)
        samples = in_page_cache(files.samples)
        more = ("--threads", str(FEW_CORES))
        ran = scan_again(
            bench, bench.runs, None, samples, files.signatures, "none", *more, use_cores=FEW_CORES
        )
        peak = max(r.peak_bytes for r in ran) / 1e9
        yield Figure(
            "cpu",
            f"default, {NAMES[n_percent]}: whole process, {FEW_CORES} CPU cores",
            "s",
            seconds_of(ran),
            asked,
            note=f"peak memory {peak:.2g} GB",
        )


def part_gzip(bench: Bench) -> Iterator[Figure]:
    """Compare a gzip FASTQ with decompression alone: runs of both in turn, a ratio a pair."""
    files = bench.default(0)
    copies = bench.copies(GZIP_COPIES)
    packed = in_page_cache(files.gzipped(copies))
    _, once = scan_once(bench, files.samples, files.signatures, "none")
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
            one, rows = scan_once(bench, *where, use_cores=FEW_CORES)
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
    """Measure peak resident memory, for inputs of several sizes."""
    bench.need_gpu_or_time()
    files = bench.default(10)
    clean = bench.default(0)
    most = 2.0 + CHUNKS_IN_MEMORY * DEFAULT_CHUNK_BYTES / 1e9
    for path, signatures in (
        (files.copies(bench.copies(SMALL_COPIES)), files.signatures),
        (files.copies(bench.copies(STREAM_COPIES)), files.signatures),
        (clean.gzipped(bench.copies(GZIP_COPIES)), clean.signatures),
    ):
        ran = [scan_once(bench, path, signatures, bench.gpus)[0] for _ in range(min(3, bench.runs))]
        size = path.stat().st_size / 1e9
        kind = "gzip FASTQ" if path.suffix == ".gz" else "FASTQ"
        yield Figure(
            "memory",
            f"peak host memory, {kind} of {size:.2g} GB, {bench.where}",
            "GB",
            [r.peak_bytes / 1e9 for r in ran],
            most,
            note=f"{np.median(seconds_of(ran)):.3g} s; asked: 2 GB and {CHUNKS_IN_MEMORY} chunks",
        )


def part_help(bench: Bench) -> Iterator[Figure]:
    """Time the start-up."""
    command = python("-m", "multigpu", "--help")
    process(command)
    seconds = [process(command).seconds for _ in range(max(HELP_RUNS, bench.runs))]
    yield Figure("help", "python -m multigpu --help", "s", seconds, 0.15)


# ---- long inputs: the steady state of a run, without its start-up ------------------------------


def _steady(
    bench: Bench, samples: Path, signatures: Path, *more: str
) -> tuple[Watched, list[bytes]]:
    """Run the command; return how it ran, and the rows of its output."""
    folder = bench.output / "steady"
    shutil.rmtree(folder, ignore_errors=True)
    arguments = ("scan", str(samples), "-s", str(signatures), "--gpus", bench.gpus, *more)
    ran = Running(Job("scan", arguments, "rows.tsv", samples.stat().st_size), folder).ended()
    return ran, (folder / "out" / "rows.tsv").read_bytes().splitlines(keepends=True)[1:]


def _steady_figures(
    bench: Bench, part: str, what: str, asked: float, samples: Path, signatures: Path, *more: str
) -> Iterator[Figure]:
    runs = [_steady(bench, samples, signatures, *more)[0] for _ in range(bench.runs)]
    size = samples.stat().st_size
    what = f"{what}, {bench.where}"
    busy = [next(iter(ran.busy().values())) for ran in runs]  # of the only device
    yield Figure(
        part, f"{what}: steady state", "GB/s", [ran.gb_per_s(size) for ran in runs],
        asked if bench.gpu else None, at_most=False,
        note=f"whole run {np.median([ran.seconds for ran in runs]):.3g} s",
    )  # fmt: skip
    yield Figure(
        part, f"{what}: busiest step's share of the time", "",
        [max(steps.values()) for steps in busy], 0.8 if bench.gpu else None, at_most=False,
        note=", ".join(f"{name} {share:.2f}" for name, share in busy[0].items()),
    )  # fmt: skip


def part_stream(bench: Bench) -> Iterator[Figure]:
    """Time a long FASTQ in its steady state."""
    bench.need_gpu_or_time()
    files, copies = bench.default(10), bench.copies(STREAM_COPIES)
    samples = in_page_cache(files.copies(copies))
    _, once = scan_once(bench, files.samples, files.signatures, "none")
    rows = once.splitlines(keepends=True)[1:]
    expected = [copy_prefix(c) + row for c in range(copies) for row in rows]
    require(_steady(bench, samples, files.signatures)[1] == expected, "the rows differ")
    what = f"FASTQ of {samples.stat().st_size / 1e9:.3g} GB, 10 % N"
    yield from _steady_figures(bench, "stream", what, 18.0, samples, files.signatures)


def part_reads(bench: Bench, mismatches: int = 0) -> Iterator[Figure]:
    """Time many short reads in their steady state."""
    bench.need_gpu_or_time()
    files = ReadSet(bench.folder, round(READS * bench.scale))
    reads, signatures = in_page_cache(files.reads), files.signatures
    what = f"{files.count / 1e6:g} M reads of 150, 1,000 signatures of 24–40"
    more: tuple[str, ...] = ()
    if mismatches:
        signatures = files.changed_signatures(mismatches)
        what, more = f"{what}, ≤ {mismatches} mismatches", ("--max-mismatches", str(mismatches))
    _check_reads(files, signatures, mismatches, _steady(bench, reads, signatures, *more)[1])
    yield from _steady_figures(bench, "reads", what, 3.0, reads, signatures, *more)


def _check_reads(files: ReadSet, signatures: Path, mismatches: int, rows: list[bytes]) -> None:
    """Require that everything planted was found, and that other hits are real."""
    found = [line.split(b"\t")[:3] for line in rows]
    pairs = {(int(read[1:]), int(name[3:])): int(start) for read, name, start in found}
    for read, number, start in files.planted.tolist():
        require(pairs.pop((read, number), 1 << 30) <= start, f"read {read}: planted, not found")
    require(len(pairs) <= len(found) / 100, f"{len(pairs)} hits that were not planted")
    raw = np.memmap(files.reads, np.uint8, "r")
    letters = read_signatures([str(signatures)]).letters
    width = len(raw) // files.count
    for (read, number), start in list(pairs.items())[:1000]:
        read_bases = bases.encode(np.array(raw[read * width + 11 :][:150]))
        signature = bases.encode(letters[number])
        differ = (read_bases[start : start + len(signature)] & signature) == 0
        require(int(differ.sum()) <= mismatches, f"read {read}: no match at {start}")


def part_scanner(bench: Bench) -> Iterator[Figure]:
    """Time records in memory, with the index ready: Arrow, tuples, and one record alone."""
    files = ReadSet(bench.folder, round(READS_IN_MEMORY * bench.scale))
    reads = np.fromfile(files.reads, np.uint8).reshape(files.count, -1)
    columns = {"name": reads[:, 1:10], "sequence": reads[:, 11:161], "quality": reads[:, -151:-1]}
    table = pa.table({name: _texts(column) for name, column in columns.items()})
    tuples = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    scanner = Scanner(files.signatures, gpus=bench.gpus, threads=0 if bench.gpu else FEW_CORES)
    _, expected = scan_once(bench, files.reads, files.signatures, "none")
    what = f"Scanner, {files.count / 1e6:g} M reads of 150, 1,000 signatures of 24–40"
    given: Any
    for kind, given in (("Arrow", table), ("tuples", tuples)):
        found = scanner.scan(given).to_table().select(COLUMNS).to_pydict()
        lines = zip(*([*map(str, column)] for column in found.values()), strict=True)
        rows = "".join("\t".join(line) + "\n" for line in [COLUMNS, *lines])
        require(rows.encode() == expected, f"{kind}: the rows differ from those of the command")
        begin = time.process_time()
        rates = [files.count / s / 1e6 for s in repeated(partial(scanner.scan, given), bench.runs)]
        cpu = (time.process_time() - begin) / (bench.runs + 1)
        yield Figure(
            "scanner", f"{what}: {kind}", "M reads/s", rates, 2.0, at_most=False,
            note=f"{cpu:.3g} CPU s",
        )  # fmt: skip
    alone = repeated(partial(scanner.scan, tuples[:1]), SINGLE_SCANS)
    yield Figure("scanner", "Scanner, one read", "ms", [1e3 * s for s in alone], 2.0)


def _texts(column: NDArray[np.uint8]) -> pa.Array:
    """Return texts of one width, uint8[n, width], as an Arrow array."""
    ends = np.arange(len(column) + 1, dtype=np.int32) * column.shape[1]
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(column))]
    return pa.Array.from_buffers(pa.string(), len(column), buffers)


# ---- searches in memory -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A default data set in memory, with its hits, which have been checked."""

    data: Letters
    signatures: list[NDArray[np.uint8]]
    patterns: Patterns
    hits: Hits

    @classmethod
    def of(cls, files: DefaultSet) -> "Case":
        data, signatures = (
            letters_of(files.samples),
            read_signatures([str(files.signatures)]).letters,
        )
        patterns = Patterns.of(signatures)
        hits = cpu_search(data, patterns, common.cores())
        case = cls(data, signatures, patterns, hits)
        case.check(files)
        return case

    def check(self, files: DefaultSet) -> None:
        """Require that all planted signatures are found and that a plain search agrees."""
        found, counts = np.unique(self.hits.record, return_counts=True)
        require(len(found) == files.infected, f"{len(found)} samples with hits")
        require(counts.min() >= 1 and counts.max() <= 2, "1 or 2 signatures a sample were planted")
        check_hits_are_real(self.data, self.patterns, self.hits)
        records = [0, len(self.data) - 1, *found[:6].tolist()]
        chosen = np.unique(np.r_[self.hits.pattern, 0:1000:25]).tolist()
        check_against_plain(self.data, self.patterns, self.hits, records, chosen)


def part_kernels(bench: Bench) -> Iterator[Figure]:
    """Time copy in, index, kernels and copy out, from pinned memory."""
    bench.need_gpu()
    from multigpu.kernels.scan import cuda

    for n_percent, asked in ((10, 8.5), (0, 6.5)):
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
    """Return the milliseconds of the stages, one after the other."""
    import cupy

    from multigpu.kernels.scan import cuda

    scanner = cuda.ExactScanner(patterns, FIRST)

    def copy_in() -> None:
        search.upload()
        cupy.cuda.Device().synchronize()

    stages = {
        "copy in": copy_in,
        "index": lambda: cuda.ExactScanner(patterns, FIRST),
        "kernels and copy out": lambda: search.search(scanner),
    }
    return {name: _milliseconds(run, runs) for name, run in stages.items()}


# ---- against Hyperscan ------------------------------------------------------------------------


def part_hyperscan(bench: Bench) -> Iterator[Figure]:
    """Compare with Hyperscan on literals: ours with its index, Hyperscan without compiling."""
    common.need_package("hyperscan", "bench")
    case, threads = Case.of(bench.default(0)), common.cores()
    compiling = timed(lambda: Hyperscan.compile(case.data, case.signatures))
    ours = (case.hits.record, case.hits.pattern, case.hits.start)
    with multiprocessing.get_context("fork").Pool(threads) as pool:
        found = Hyperscan.scan_all(pool)
        expected = list(zip(*(column.tolist() for column in ours), strict=True))
        require(found == expected, "Hyperscan finds other hits")
        theirs = repeated(lambda: Hyperscan.scan_all(pool), bench.runs, warm_up=False)
    what = f"1,000 literals of 3–10 kb, {case.data.offsets[-1] / 1e6:.0f} MB"
    yield Figure(
        "hyperscan", f"{what}: Hyperscan, {threads} processes", "s", theirs,
        note=f"compiling not counted: {compiling:.2g} s",
    )  # fmt: skip
    cpu = repeated(lambda: cpu_search(case.data, case.patterns, threads), bench.runs)
    yield _against(theirs, cpu, f"{what}: ours, {threads} threads", 4.0)
    if bench.gpu:
        from multigpu.kernels.scan import cuda

        pinned = Letters(cuda.pinned_like(case.data.letters), case.data.offsets)
        copied, there = GpuSearch(pinned, 10), GpuSearch(pinned, 1)  # 1: no copy to search beside
        there.upload()
        size = int(case.data.offsets[-1])
        for where, run in (
            ("copied there", lambda: copied.run(case.patterns)),
            ("letters in its memory",
             lambda: there.search(cuda.ExactScanner(case.patterns, FIRST, size))),
        ):  # fmt: skip
            require(same_hits(run(), case.hits), "the GPU's hits differ")
            gpu = repeated(run, bench.runs)
            yield _against(theirs, gpu, f"{what}: ours, one GPU, {where}", 50.0)


def _against(theirs: Sequence[float], ours: Sequence[float], what: str, asked: float) -> Figure:
    return Figure(
        "hyperscan", f"{what}, times as fast", "×",
        [float(np.median(theirs)) / seconds for seconds in ours], asked, at_most=False,
        note=f"{1e3 * np.median(ours):.3g} ms with the index",
    )  # fmt: skip


# ---- all together -----------------------------------------------------------------------------

PARTS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "help": part_help,
    "kernels": part_kernels,
    "process": part_process,
    "stream": part_stream,
    "reads": part_reads,
    "scanner": part_scanner,
    "cpu": part_cpu,
    "hyperscan": part_hyperscan,
    "gzip": part_gzip,
    "memory": part_memory,
}


if __name__ == "__main__":
    common.measure_parts(common.options_of(__doc__, PARTS), PARTS, Bench)
