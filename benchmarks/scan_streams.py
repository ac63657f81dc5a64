"""Parts of `scan.py` on long inputs: the steady state of a run, without its start-up."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import Figure, require
from data import ReadSet, copy_prefix, in_page_cache
from runs import Job, Ran, Running
from scan_runs import Bench, scan_once

from multigpu.formats.sequences.signatures import read_signatures
from multigpu.kernels import bases

STREAM_COPIES = 17  # 10.2 GB
READS = 20_000_000


def _steady(bench: Bench, samples: Path, signatures: Path, *more: str) -> tuple[Ran, list[bytes]]:
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
