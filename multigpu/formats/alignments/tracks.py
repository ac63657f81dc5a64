"""Means of regions of a track along the genome: BED, bedGraph or bigWig."""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, UsageError, option, printable_name, several
from multigpu.formats.alignments.files import without_chr
from multigpu.formats.alignments.regions import Regions, read_bed
from multigpu.formats.storage.sources import read_beginning

BIGWIG = (b"\x26\xfc\x8f\x88", b"\x88\x8f\xfc\x26")  # how such files begin
PIECE = 16 << 20  # bases of a bigWig read at a time

Floats = NDArray[np.float64]
Intervals = tuple[NDArray[np.int64], NDArray[np.int64], Floats]  # start, end and value, ascending


def track_means(path: str, regions: Regions, rename: bool) -> Floats:
    """Return float64[regions]: the mean over the bases of each; NaN on chromosomes not in the file.

    The fourth column of a text are the values; where it is something else, or missing, its regions
    have the value 1. Bases that are not in the file have the value 0.

    rename  names of chromosomes that differ by `chr` are the same

    Raises InputError where the file has none of the chromosomes, and UsageError where pyBigWig is
    needed and missing.
    """
    key = without_chr if rename else str
    blocks = regions.by_name(key)
    found, seen = np.full(len(regions), np.nan), list[str]()
    is_bigwig = read_beginning(path).startswith(BIGWIG)
    for name, intervals in _bigwig(path) if is_bigwig else _text(path):
        seen.append(name)
        if rows := blocks.get(key(name)):
            start, end = regions.start[rows], regions.end[rows]
            values = intervals()
            _check_values(path, name, values)
            sums = _sum_before(values, np.stack([start, end]))
            found[rows] = (sums[1] - sums[0]) / (end - start)
    if np.isnan(found).all():
        problem = f"has none of the chromosomes {several([*regions.by_name()])}: it has"
        problem = f"{problem} {several(seen)}"
        if {*map(without_chr, seen)} & {*map(without_chr, regions.by_name())}:
            problem += f" ({option('rename')} auto takes names as the same that differ by `chr`)"
        raise InputError(path, problem)
    return found


def _check_values(path: str, name: str, intervals: Intervals) -> None:
    """Raise InputError for a value on a chromosome that is infinite or not a number."""
    if not np.isfinite(intervals[2]).all():
        row = int(np.argmin(np.isfinite(intervals[2])))
        start, end, value = (each[row] for each in intervals)
        where = f"{printable_name(name)}:{start}-{end}"
        raise InputError(path, f"the value of {where} is {value}, no number")


def _text(path: str) -> Iterator[tuple[str, Callable[[], Intervals]]]:
    """Yield each chromosome of a BED file or bedGraph, and a function for its intervals."""
    regions, _ = read_bed(path)
    values = np.ones(len(regions))
    with suppress(ValueError):
        values = np.array(regions.genes or values, np.float64)
    for name, rows in regions.by_name().items():
        start, end = regions.start[rows], regions.end[rows]
        # Of intervals that overlap each base has the value of the first.
        start = np.maximum(start, np.append(0, np.maximum.accumulate(end)[:-1]))
        found = start, np.maximum(start, end), values[rows]
        yield name, partial(tuple, found)


def _bigwig(path: str) -> Iterator[tuple[str, Callable[[], Intervals]]]:
    """Yield each chromosome of a bigWig, and a function that reads its intervals."""
    try:
        import pyBigWig
    except ImportError as error:
        needs = "needs pyBigWig: pip install 'multigpu[bigwig]', or give a bedGraph"
        raise UsageError(f"{path}: a bigWig {needs}") from error
    try:
        file = pyBigWig.open(path)
    except RuntimeError as error:
        raise InputError(path, "cannot be read as bigWig") from error
    with closing(file):
        for name, length in file.chroms().items():
            yield name, partial(_bigwig_intervals, file, name, length)


def _bigwig_intervals(file: Any, name: str, length: int) -> Intervals:
    pieces = [np.empty((0, 3))]
    for begin in range(0, length, PIECE):
        some = file.intervals(name, begin, min(begin + PIECE, length)) or ()
        piece = np.array(some, np.float64).reshape(-1, 3)
        # One that began in the piece before is there already.
        pieces.append(piece[piece[:, 0] >= begin])
    start, end, value = np.concatenate(pieces).T
    return start.astype(np.int64), end.astype(np.int64), value


def _sum_before(intervals: Intervals, place: NDArray[np.int64]) -> Floats:
    """Return float64[n]: the sum of the values of all bases before each place."""
    start, end, value = intervals
    before = np.concatenate([[0.0], np.cumsum(value * (end - start))])
    last = np.searchsorted(start, place)
    into = np.minimum(place, np.append(0, end)[last]) - np.append(0, end)[last]
    found: Floats = before[last] + into * np.append(0.0, value)[last]
    return found
