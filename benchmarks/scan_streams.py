"""Parts of `scan.py` on long inputs: the steady state of a run, without its start-up."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Figure, covered, require
from data import ReadSet, copy_prefix, in_page_cache
from scan_runs import Bench, scan_once

from multigpu.formats.sequences.signatures import read_signatures
from multigpu.kernels import bases
from multigpu.run.options import RunOptions
from multigpu.scan.inputs import expand_inputs
from multigpu.scan.job import ScanJob
from multigpu.scan.options import ScanOptions

STREAM_COPIES = 17  # 10.2 GB
READS = 20_000_000


@dataclass(frozen=True)
class Steady:
    """A run from the end of the first tenth of its chunks to the end of the last one."""

    gb_per_s: float
    busy: dict[str, float]  # share of the time in which some chunk is at this step
    at_once: dict[str, float]  # chunks at this step, on average
    whole_seconds: float
    rows: bytes


def _steady(bench: Bench, samples: Path, signatures: Path) -> Steady:
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
    """Yield the outcomes of a job, and append each to `noted`."""
    for outcome in outcomes(fmt):
        noted.append(outcome)
        yield outcome


def _bytes(part: Any) -> int:
    """Return the bytes of a part's span; none where no record begins in it."""
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
        None if not bench.gpu else asked,
        at_most=False,
        note=f"whole run {np.median([run.whole_seconds for run in runs]):.3g} s",
    )
    yield Figure(
        part,
        f"{what}, {bench.where}: busiest step's share of the time",
        "",
        [max(run.busy.values()) for run in runs],
        None if not bench.gpu else 0.8,
        at_most=False,
        note=f"{shares(lambda run: run.busy)}; chunks at once: {shares(lambda run: run.at_once)}",
    )


def part_stream(bench: Bench) -> Iterator[Figure]:
    """Time a long FASTQ in its steady state."""
    files, copies = bench.default(10), bench.copies(STREAM_COPIES)
    samples = in_page_cache(files.copies(copies))
    _, once = scan_once(bench, files.samples, files.signatures, "none")
    rows = once.splitlines(keepends=True)[1:]
    expected = b"".join(copy_prefix(c) + row for c in range(copies) for row in rows)
    require(_steady(bench, samples, files.signatures).rows == expected, "the rows differ")
    runs = [_steady(bench, samples, files.signatures) for _ in range(bench.runs)]
    size = samples.stat().st_size / 1e9
    yield from _steady_figures(bench, "stream", f"FASTQ of {size:.3g} GB, 10 % N", 18.0, runs)


def part_reads(bench: Bench) -> Iterator[Figure]:
    """Time many short reads in their steady state."""
    files = ReadSet(bench.folder, round(READS * bench.scale))
    reads = in_page_cache(files.reads)
    _check_reads(files, _steady(bench, reads, files.signatures).rows)
    runs = [_steady(bench, reads, files.signatures) for _ in range(bench.runs)]
    what = f"{files.count / 1e6:g} M reads of 150, 1,000 signatures of 24–40"
    bench.details["reads gigabytes"] = reads.stat().st_size / 1e9
    yield from _steady_figures(bench, "reads", what, 3.0, runs)


def _check_reads(files: ReadSet, rows: bytes) -> None:
    """Require that everything planted was found, and that other hits are real."""
    found = [line.split(b"\t")[:3] for line in rows.splitlines()]
    pairs = {(int(read[1:]), int(name[3:])): int(start) for read, name, start in found}
    for read, number, start in files.planted.tolist():
        require(pairs.pop((read, number), 1 << 30) <= start, f"read {read}: planted, not found")
    require(len(pairs) <= len(found) / 100, f"{len(pairs)} hits that were not planted")
    raw = np.memmap(files.reads, np.uint8, "r")
    letters = read_signatures([str(files.signatures)]).letters
    width = len(raw) // files.count
    for (read, number), start in list(pairs.items())[:1000]:
        read_bases = bases.encode(np.array(raw[read * width + 11 :][:150]))
        signature = bases.encode(letters[number])
        real = (read_bases[start : start + len(signature)] & signature) != 0
        require(bool(real.all()), f"read {read}: no match at {start}")
