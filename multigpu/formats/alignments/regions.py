"""Regions of the genome: windows of references and BED files."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.storage.sources import open_content
from multigpu.kernels.counting.types import check_columns

LONGEST = 1 << 40  # bases of a chromosome
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some editors begin a file with it
NO_REGIONS = (b"#", b"track", b"browser")  # how lines of a BED file begin that have none


@dataclass(frozen=True, eq=False)
class Regions:
    """Table of regions, one in each row.

    names  the chromosomes, each once
    chrom  int32[n]  index into `names`
    start  int64[n]  from 0
    end    int64[n]  half open

    Raises ValueError on any other dtype or shape; nothing is converted.
    """

    names: tuple[str, ...]
    chrom: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def __post_init__(self) -> None:
        check_columns(self, {"chrom": np.int32, "start": np.int64, "end": np.int64})

    def __len__(self) -> int:
        return len(self.chrom)

    def take(self, rows: NDArray[np.intp]) -> "Regions":
        """Return the rows of these indices, in this order; the names stay."""
        return Regions(self.names, self.chrom[rows], self.start[rows], self.end[rows])

    @cached_property
    def blocks(self) -> list[slice]:
        """Return the rows of every run of one chromosome, in order."""
        if not len(self):
            return []
        borders = np.flatnonzero(self.chrom[1:] != self.chrom[:-1]) + 1
        return [slice(a, b) for a, b in pairwise([0, *borders.tolist(), len(self)])]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, int, int]]) -> Self:
        """Return a table of (chromosome, start, end); names in the order in which they appear."""
        names: dict[str, int] = {}
        table = [(names.setdefault(name, len(names)), start, end) for name, start, end in rows]
        columns = np.array(table, np.int64).reshape(-1, 3)
        chrom = columns[:, 0].astype(np.int32)
        return cls(tuple(names), chrom, columns[:, 1].copy(), columns[:, 2].copy())

    def order(self) -> NDArray[np.intp] | None:
        """Return the order by chromosome and place; None where the rows have it already."""
        # A chromosome at a time, here and below: of all regions the differences are many bytes.
        blocks = self.blocks
        grouped = all(self.chrom[a.start] < self.chrom[b.start] for a, b in pairwise(blocks))
        if grouped and all(self._ascends(block) for block in blocks):
            return None
        return np.lexsort((self.end, self.start, self.chrom))

    def _ascends(self, rows: slice) -> bool:
        start = self.start[rows]
        if (start[1:] > start[:-1]).all():
            return True  # as nearly always
        step = np.diff(start)
        return not ((step < 0) | ((step == 0) & (np.diff(self.end[rows]) < 0))).any()

    def oddities(self) -> Iterator[str]:
        """Yield what is unusual about rows that are in order, a sentence each."""
        twice = overlapping = 0
        for block in self.blocks:
            start, end = self.start[block], self.end[block]
            if (start[1:] >= end[:-1]).all():
                continue  # as nearly always
            same = (start[1:] == start[:-1]) & (end[1:] == end[:-1])
            reached = np.maximum.accumulate(end)
            twice += int(same.sum())
            overlapping += int((~same & (start[1:] < reached[:-1])).sum())
        if twice:
            yield f"{_many(twice, 'region')} given more than once"
        if overlapping:
            yield f"{_many(overlapping, 'region')} overlapping an earlier one"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s are' if count > 1 else ' is'}"


def windows(references: Sequence[tuple[str, int]], width: int, compat_r: bool = False) -> Regions:
    """Return consecutive windows of `width` bases over (name, length); the last are shorter.

    compat_r  leave out the last base of a reference whose length is a multiple of the width, unless
              it has but one window, as R does
    """
    counts = [-(-length // width) for _, length in references]
    chrom = np.repeat(np.arange(len(references), dtype=np.int32), counts)
    start = np.concatenate([np.arange(n, dtype=np.int64) * width for n in (*counts, 0)])
    lengths = np.array([length for _, length in references], np.int64)
    if compat_r:
        lengths -= (lengths % width == 0) & (lengths > width)
    end = np.minimum(start + width, lengths[chrom])
    return Regions(tuple(name for name, _ in references), chrom, start, end)


def read_bed(path: str) -> tuple[Regions, tuple[str, ...]]:
    """Return the regions of a BED file in order, and notes on it.

    Chromosomes keep the order in which they appear. Raises InputError with the line that is wrong.
    """
    with open_content(path) as file:
        found = Regions.of(_bed_rows(path, file))
    if not len(found):
        raise InputError(path, "there are no regions")
    found, _, notes = in_order(path, found)
    return found, notes


def in_order(
    path: str, regions: Regions
) -> tuple[Regions, NDArray[np.intp] | None, tuple[str, ...]]:
    """Return the regions of a file in order, that order if it is another, and notes on them."""
    order, notes = regions.order(), []
    if order is not None:
        regions = regions.take(order)
        notes = ["the regions are not in order: they are sorted"]
    return regions, order, tuple(f"{path}: {note}" for note in (*notes, *regions.oddities()))


def _bed_rows(path: str, lines: Iterable[bytes]) -> Iterator[tuple[str, int, int]]:
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if not line.strip() or line.startswith(NO_REGIONS):
            continue
        try:
            name, start, end = line.split(None, 3)[:3]
            row = (name.decode(), _whole(start), _whole(end))
        except ValueError as error:
            problem = f"no chromosome, start and end: {quoted(line.rstrip())}"
            raise InputError(path, problem, f"line {number}") from error
        if not 0 <= row[1] < row[2] < LONGEST:
            raise InputError(path, no_region(row[1], row[2]), f"line {number}")
        yield row


def _whole(text: bytes) -> int:
    """Return a number. Raises ValueError for what only Python takes as one: 1_000, +1."""
    if not text.removeprefix(b"-").isdigit():
        raise ValueError(text)
    return int(text)


def no_region(start: int, end: int) -> str:
    """Return what is wrong with a region that does not fit 0 <= start < end < LONGEST."""
    shown = f"{quoted(str(start))} to {quoted(str(end))}".replace("'", "")
    return f"{shown} is no region: 0 <= start < end{' < 2^40' if end >= LONGEST else ''}"
