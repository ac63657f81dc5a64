"""Regions of the genome: windows of references and BED files."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, printable_name, quoted, several
from multigpu.formats.names import name_problem
from multigpu.formats.storage.sources import text_lines
from multigpu.kernels.counting.types import check_columns

LONGEST = 1 << 40  # bases of a chromosome
NARROWEST = 10  # bases of windows whose starts are taken as multiples of their width
NO_REGION = re.compile(r"#|(track|browser)(\s|$)|@(HD|SQ|RG|PG|CO)\t")  # how such a line begins
INTERVAL_LIST = re.compile(r"\.interval_list(\.b?gz|\.zst)?$", re.IGNORECASE)  # files of Picard
NO_GENE = ("", ".", "+", "-")  # in the column of names: they stand for none


@dataclass(frozen=True, eq=False)
class Regions:
    """Table of regions, one in each row.

    names  the chromosomes, each once
    chrom  int32[n]  index into `names`
    start  int64[n]  from 0
    end    int64[n]  half open
    genes  names of the regions, "" for one without; empty: no region has a name. They are no part
           of what a digest tells apart, as no count depends on them
    gc     float64[n]: share of G and C, NaN where it is not known; None: nowhere

    Raises ValueError on any other dtype or shape; nothing is converted.
    """

    names: tuple[str, ...]
    chrom: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    genes: tuple[str, ...] = field(default=(), compare=False)
    gc: NDArray[np.float64] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_columns(self, {"chrom": np.int32, "start": np.int64, "end": np.int64})
        if len(self.genes) not in (0, len(self)):
            raise ValueError(f"genes: {len(self.genes)} instead of {len(self)}")
        if self.gc is not None and len(self.gc) != len(self):
            raise ValueError(f"gc: {len(self.gc)} instead of {len(self)}")

    def __len__(self) -> int:
        return len(self.chrom)

    def take(self, rows: NDArray[np.intp]) -> "Regions":
        """Return the rows of these indices, in this order; the names stay."""
        genes = tuple(self.genes[row] for row in rows.tolist()) if self.genes else ()
        gc = None if self.gc is None else self.gc[rows]
        return Regions(self.names, self.chrom[rows], self.start[rows], self.end[rows], genes, gc)

    @cached_property
    def blocks(self) -> list[slice]:
        """Return the rows of every run of one chromosome, in order."""
        if not len(self):
            return []
        borders = np.flatnonzero(self.chrom[1:] != self.chrom[:-1]) + 1
        return [slice(a, b) for a, b in pairwise([0, *borders.tolist(), len(self)])]

    def by_name(self, key: Callable[[str], str] = str) -> dict[str, slice]:
        """Return the rows of each chromosome, in order, by the key of its name."""
        return {key(self.names[self.chrom[rows.start]]): rows for rows in self.blocks}

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
        step = np.diff(self.start[rows])
        return not ((step < 0) | ((step == 0) & (np.diff(self.end[rows]) < 0))).any()

    def first_difference(self, other: "Regions") -> int | None:
        """Return the first row that differs (genes may), or that one lacks; None without."""
        rows = min(len(self), len(other))
        numbers = {name: number for number, name in enumerate(self.names)}
        number = np.array([numbers.get(name, -1) for name in other.names], np.int32)
        differ = self.chrom[:rows] != number[other.chrom[:rows]]
        differ |= self.start[:rows] != other.start[:rows]
        differ |= self.end[:rows] != other.end[:rows]
        if differ.any():
            return int(np.argmax(differ))
        return rows if len(self) != len(other) else None

    def shown(self, row: int) -> str:
        """Return a region for a message, or that it is missing."""
        if row >= len(self):
            return "missing"
        name = printable_name(self.names[self.chrom[row]])
        return f"{name}:{self.start[row]}-{self.end[row]}"

    def oddities(self) -> Iterator[str]:
        """Yield what is unusual about rows that are in order, a sentence each."""
        twice = overlapping = 0
        for block in self.blocks:
            start, end = self.start[block], self.end[block]
            if (start[1:] >= end[:-1]).all():  # most tables
                continue
            same = (start[1:] == start[:-1]) & (end[1:] == end[:-1])
            reached = np.maximum.accumulate(end)
            twice += int(same.sum())
            overlapping += int((~same & (start[1:] < reached[:-1])).sum())
        if twice:
            yield f"{_many(twice, 'region')} given more than once"
        if overlapping:
            yield f"{_many(overlapping, 'region')} overlapping an earlier one"
        if self._may_count_from_1():
            yield (
                "starts seem to count from 1 (each is one more than an end, a round number, or a"
                " multiple of the width): here they count from 0, so subtract 1 from each"
            )

    def _may_count_from_1(self) -> bool:
        """Whether starts would be multiples of the width, or touch ends, if they were one less."""
        blocks = [(self.start[rows], self.end[rows]) for rows in self.blocks]
        width = int(self.end[0] - self.start[0]) if len(self) > 1 else 0
        for w in (width, width + 1) if width >= NARROWEST else ():
            if all((start % w == 1).all() for start, _ in blocks):
                return True
        if any((start[1:] == end[:-1]).any() for start, end in blocks):
            return False
        apart = sum(int((start[1:] - end[:-1] == 1).sum()) for start, end in blocks)
        return apart > max(1, len(self) // 2)


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


def read_bed(path: str, gc: str = "") -> tuple[Regions, tuple[str, ...]]:
    """Return the regions of a BED file or a Picard interval list in order, and notes on it.

    gc  column with their share of G and C, which a line with # names; empty: none

    Chromosomes keep the order in which they appear. Raises InputError with the line that is wrong.
    """
    notes: list[str] = []
    rows = [*_read_rows(path, notes, gc)]
    if not rows:
        raise InputError(path, "there are no regions")
    found = Regions.of(row[:3] for row in rows)
    if any(genes := tuple(row[3] for row in rows)):
        found = replace(found, genes=genes)
    if gc:
        found = replace(found, gc=np.array([row[4] for row in rows]))
    found, _, oddities = in_order(path, found)
    return found, (*(f"{path}: {note}" for note in notes), *oddities)


def _read_rows(path: str, notes: list[str], gc: str) -> Iterator[tuple[str, int, int, str, float]]:
    """Yield the regions of a file, whose starts count from 0, with name and share of G and C.

    The name is "" for none, the share is that in the column `gc`, or NaN without one. Notes on the
    file are added at its end.
    """
    first = 0 if INTERVAL_LIST.search(path) is None else 1
    begun = named = has_genes = False
    titles: list[str] = []
    for number, line in text_lines(path):
        if not line.strip() or NO_REGION.match(line):
            first = 1 if line.startswith("@") else first
            titles = titles if begun else line.removeprefix("#").strip().split("\t")
            continue
        columns = [each.strip() for each in line.split("\t")] if "\t" in line else line.split()
        if not begun and len(columns) == 5 and columns[3] in ("+", "-"):
            # A score in the last column would be that of a BED file.
            first = first or int(columns[1] != "0" and not columns[4].isdigit())
        begun, where = True, f"line {number}"
        try:
            name, start, end = columns[0], _whole(columns[1]) - first, _whole(columns[2])
            if not name.encode():
                raise ValueError(name)
        except (ValueError, IndexError) as error:
            problem = f"expected BED: chromosome, start from 0 and end, not {quoted(line)}"
            raise InputError(path, problem, where) from error
        if not 0 <= start < end < LONGEST:
            raise InputError(path, no_region(start + first, end, first), where)
        share = _number_in(path, columns, titles, gc, where) if gc else np.nan
        gene = gene_name("".join(columns[4 if first else 3 :][:1]))
        named, has_genes = named or len(columns) > 3, has_genes or gene != ""
        yield name, start, end, gene, share
    if first:
        notes.append("read as a Picard interval list, whose starts count from 1")
    if named:
        used = "of the columns after the third only names are used; of tables Parquet keeps them"
        unused = "names and other columns after the third are left out"
        notes.append(used if has_genes else unused)


def _number_in(
    path: str, columns: Sequence[str], titles: Sequence[str], title: str, where: str
) -> float:
    """Return the number in a column. Raises InputError where there is none."""
    if title not in titles:
        has = f"its columns are {several(titles)}" if titles[3:] else "no line with # names any"
        raise InputError(path, f"has no column {quoted(title)}: {has}", where)
    try:
        return float(columns[titles.index(title)])
    except (ValueError, IndexError) as error:
        shown = quoted("\t".join(columns))
        problem = f"expected a number in the column {quoted(title)}, not {shown}"
        raise InputError(path, problem, where) from error


def gene_name(text: str) -> str:
    """Return the name of a region, "" for none; bytes that are not UTF-8 become U+FFFD."""
    if text in NO_GENE or name_problem(text):
        return ""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def in_order(
    path: str, regions: Regions
) -> tuple[Regions, NDArray[np.intp] | None, tuple[str, ...]]:
    """Return the regions of a file in order, that order if it is another, and notes on them."""
    order, notes = regions.order(), []
    if order is not None:
        regions = regions.take(order)
        notes = ["the regions are not in order: they are sorted"]
    return regions, order, tuple(f"{path}: {note}" for note in (*notes, *regions.oddities()))


def _whole(text: str) -> int:
    """Return a number. Raises ValueError for what only Python takes as one: 1_000, +1."""
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise ValueError(text)
    return int(text)


def no_region(start: int, end: int, first: int = 0) -> str:
    """Return what is wrong with a region that does not fit first <= start < end < LONGEST."""
    shown = f"{quoted(str(start))} to {quoted(str(end))}".replace("'", "")
    rule = f"{first} <= start {'<=' if first else '<'} end"
    return f"{shown} is no region: {rule}{' < 2^40' if end >= LONGEST else ''}"
