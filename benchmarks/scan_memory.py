"""Parts of `scan.py` that search records in memory: the kernels, the records, Hyperscan."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import Figure, repeated, require
from data import DefaultSet, letters_of, parsed
from numpy.typing import NDArray
from processes import process, python
from scan_runs import NAMES, Bench, scan_once
from searches import (
    FIRST,
    GpuSearch,
    Letters,
    Piece,
    check_against_plain,
    check_hits_are_real,
    cpu_search,
    same_hits,
)

from multigpu.formats.sequences.signatures import Signatures, read_signatures
from multigpu.kernels.scan import Hits, Patterns

PIECES = (4, 6, 8, 10, 12, 16)
# Threads that copy records: more wait for each other in the interpreter.
MOST_GATHERING = 6


@dataclass(frozen=True, eq=False)
class Case:
    """A default data set in memory, with its hits, which have been checked."""

    data: Letters
    signatures: Signatures
    patterns: Patterns
    hits: Hits

    @classmethod
    def of(cls, files: DefaultSet) -> "Case":
        data, signatures = letters_of(files.samples), read_signatures([str(files.signatures)])
        patterns = Patterns.of(signatures.letters)
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
    """Time the way from records in pageable memory to a list of matches with scores."""
    for n_percent in (10, 0):
        files = bench.default(n_percent)
        job = FromRecords(
            samples_of(files.samples), read_signatures([str(files.signatures)]), pieces=10
        )
        rows = [(*row[:3], repr(row[3])) for row in job.run()]
        require(rows == _cpu_rows(bench, files), "the matches are not those of the command line")
        seconds = repeated(job.run, bench.runs)
        gather = repeated(job.gather_all, bench.runs)
        index = repeated(job.index, bench.runs)
        yield Figure(
            "records",
            f"default, {NAMES[n_percent]}: records in memory to list of matches",
            "ms",
            [1e3 * s for s in seconds],
            40.0,
            note=f"alone: gather {1e3 * np.median(gather):.3g}, sets and index "
            f"{1e3 * np.median(index):.3g}; {job.threads} threads gather",
        )


def _cpu_rows(bench: Bench, files: DefaultSet) -> list[tuple[str, str, int, str]]:
    """Return the rows of the command line on the CPU."""
    out = scan_once(bench, files.samples, files.signatures, "none")[1]
    rows = [line.split("\t") for line in out.decode().splitlines()[1:]]
    return [(row[0], row[1], int(row[2]), row[5]) for row in rows]


# ---- from records to matches ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sample:
    """A record of which bases and qualities lie in memory of their own."""

    name: str
    bases: NDArray[np.uint8]
    qualities: NDArray[np.uint8]


def samples_of(path: Path) -> list[Sample]:
    """Return all records of a FASTQ."""
    raw = np.fromfile(path, np.uint8)
    return [
        Sample(
            raw[name:name_end].tobytes().decode(),
            raw[first : first + length].copy(),
            raw[quality : quality + length].copy(),
        )
        for name, name_end, first, length, quality, _ in parsed(raw).tolist()
    ]


class FromRecords:
    """Matches of samples in pageable memory, with buffers that are made once."""

    def __init__(self, samples: list[Sample], signatures: Signatures, pieces: int) -> None:
        from multigpu.kernels.device.pinned import pinned
        from multigpu.kernels.scan import cuda

        self._cuda = cuda
        self.samples, self.signatures = samples, signatures
        self.names = [name.decode() for name in signatures.names]
        offsets = np.zeros(len(samples) + 1, np.int64)
        np.cumsum([len(sample.bases) for sample in samples], out=offsets[1:])
        self.search = GpuSearch(Letters(pinned(int(offsets[-1])), offsets), pieces)
        self.threads = min(common.cores(), MOST_GATHERING)
        self.pool = ThreadPoolExecutor(self.threads + 1)

    def gather(self) -> list[list[Future[None]]]:
        """Start copying to pinned memory; return the tasks of each piece, in order."""
        parts = self.threads
        return [
            [self.pool.submit(self._copy, piece, part, parts) for part in range(parts)]
            for piece in self.search.pieces
        ]

    def gather_all(self) -> None:
        """Copy everything and wait for it."""
        for tasks in self.gather():
            for task in tasks:
                task.result()

    def _copy(self, piece: Piece, part: int, parts: int) -> None:
        offsets, records = piece.chunk.offsets, len(piece.chunk.offsets) - 1
        first, stop = part * records // parts, (part + 1) * records // parts
        samples = self.samples[piece.first + first : piece.first + stop]
        for sample, offset in zip(samples, offsets[first:stop].tolist(), strict=True):
            piece.chunk.letters[offset : offset + len(sample.bases)] = sample.bases

    def index(self) -> Any:
        return self._cuda.Scanner(Patterns.of(self.signatures.letters), FIRST)

    def run(self) -> list[tuple[str, str, int, float]]:
        scanner, tasks = self.pool.submit(self.index), self.gather()
        for task_list, lane, piece in zip(
            tasks, self.search.lanes, self.search.pieces, strict=True
        ):
            for task in task_list:
                task.result()
            lane.upload(piece.chunk)
        hits = self.search.search(scanner.result())
        return [self._match(r, p, s) for r, p, s in hit_rows(hits)]

    def _match(self, record: int, pattern: int, start: int) -> tuple[str, str, int, float]:
        sample, length = self.samples[record], len(self.signatures.letters[pattern])
        total = int(sample.qualities[start : start + length].sum(dtype=np.int64))
        return sample.name, self.names[pattern], start, (total - 33 * length) / length


def hit_rows(hits: Hits) -> Iterator[tuple[int, int, int]]:
    """Yield record, pattern and start of each hit."""
    return zip(hits.record.tolist(), hits.pattern.tolist(), hits.start.tolist(), strict=True)


# ---- against Hyperscan ------------------------------------------------------------------------


def part_hyperscan(bench: Bench) -> Iterator[Figure]:
    """Compare with Hyperscan on literals: ours with its index, Hyperscan without compiling."""
    files, threads = bench.default(0), common.cores()
    case = Case.of(files)
    rival = _rival(bench, files, threads)
    ours = [list(row) for row in hit_rows(case.hits)]
    require(rival["hits"] == ours, "Hyperscan finds other hits")
    size = case.data.offsets[-1] / 1e6
    theirs = rival["seconds"]
    what = f"1,000 literals of 3–10 kb, {size:.0f} MB"
    yield Figure(
        "hyperscan", f"{what}: Hyperscan, {threads} processes", "s", theirs,
        note=f"compiling not counted: {rival['compile_seconds']:.2g} s",
    )  # fmt: skip
    cpu = repeated(lambda: cpu_search(case.data, case.patterns, threads), bench.runs)
    yield from _against(theirs, cpu, f"{what}: ours, {threads} threads", 4.0)
    if bench.gpu:
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
    script, target = (
        str(Path(__file__).with_name("rival_hyperscan.py")),
        bench.output / "rival.json",
    )
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
