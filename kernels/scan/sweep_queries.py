"""Queries of `sweep.cu`, and which of them are counted together."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import ceil

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.types import Limits, Patterns

WORD = 32  # bases of the longest query
BASES = 4  # rows of the table for each place
STEPS = 8  # rows of the table in a block of steps
MOST_ROWS = 192  # of the table, in the shared memory of a block
ROUNDED = 16  # rows for sets of bases, so that few variants are compiled
MOST_SETS = 16
ANY_BASE = 15

# What selecting positions takes, in units of counting for one query at as many positions: the look
# at every position, and laying out the bases after a selected one. With two exact bases selecting
# should pay from 17 queries on; on an H200 it did from 16 on.
SELECT, GATHER = 12.0, 60.0
# Of all positions; for twice as many there is room.
MOST_SELECTED = 1 / 16

QUERY = np.dtype(
    [("pattern", "<u4"), ("piece", "<i4"), ("counted", "<u4"), ("exact", "<u4")], align=True
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep:
    """Queries that are counted together, with as many mismatches each.

    queries   QUERY[n]
    counted   uint8[n, blocks * STEPS]  rows of the table for the bases that may differ
    exact     uint8[n, blocks * STEPS]  and for those that must match
    sets      uint16[n_sets]            place * MOST_SETS + set of bases, of the rows after the rest
    places    bases of the longest query
    most      mismatches of a query
    look      blocks after which hardly ever a position is left
    selected  uint16[bases]             place * MOST_SETS + set: the queries are counted only where
                                        these match, as they must in each; empty: everywhere
    """

    queries: NDArray[np.void]
    counted: NDArray[np.uint8]
    exact: NDArray[np.uint8]
    sets: NDArray[np.uint16]
    places: int
    most: int
    look: int
    selected: NDArray[np.uint16]

    @property
    def rows(self) -> int:
        """Return the rows of the table, rounded up."""
        return BASES * self.places + 1 + -(-len(self.sets) // ROUNDED) * ROUNDED

    @property
    def counters(self) -> int:
        """Return the bits of a counter of mismatches."""
        return max(2, self.most.bit_length())


@dataclass(frozen=True, eq=False, kw_only=True)
class QueryTable:
    """Queries with their bases; a pattern of more than a word has some, see `sweep.cu`.

    pattern   int64[n]
    piece     int64[n]        number of the piece, -1 for a whole pattern
    most      int64[n]        mismatches
    sets      uint8[n, WORD]  sets of bases, ANY_BASE after the last
    is_exact  bool[n, WORD]   whether the base must match
    """

    pattern: NDArray[np.int64]
    piece: NDArray[np.int64]
    most: NDArray[np.int64]
    sets: NDArray[np.uint8]
    is_exact: NDArray[np.bool_]

    @classmethod
    def of(cls, patterns: Patterns, limits: Limits) -> "QueryTable":
        """Return whole patterns, and pieces of long ones of which one has its share of errors."""
        lengths = patterns.lengths
        is_whole = lengths <= WORD
        count = np.where(is_whole, 1, np.minimum(lengths // WORD, limits.most + 1))
        pattern = np.repeat(np.arange(len(patterns)), count)
        piece = np.arange(len(pattern)) - np.repeat(np.cumsum(count) - count, count)
        place = WORD * piece[:, None] + np.arange(WORD)
        length = lengths[pattern][:, None]
        at = np.minimum(patterns.offsets[pattern][:, None] + place, len(patterns.sets) - 1)
        sets = np.where(place < length, patterns.sets[at], np.uint8(ANY_BASE))
        prefix, suffix = limits.prefix[pattern][:, None], limits.suffix[pattern][:, None]
        return cls(
            pattern=pattern,
            piece=np.where(is_whole[pattern], -1, piece),
            most=np.minimum(limits.most[pattern] // count[pattern], WORD),
            sets=sets,
            is_exact=((place < prefix) | (place >= length - suffix)) & (sets != ANY_BASE),
        )

    def __len__(self) -> int:
        return len(self.pattern)

    def take(self, rows: NDArray[np.int64]) -> "QueryTable":
        """Return the queries of these numbers."""
        return QueryTable(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    @property
    def places(self) -> int:
        """Return the bases of the longest query up to the last that matters."""
        return int((np.arange(1, WORD + 1) * (self.sets != ANY_BASE)).max(initial=1))

    def several(self) -> NDArray[np.uint16]:
        """Return the sets of several bases, each with its place: place * MOST_SETS + set."""
        is_several = (self.sets & (self.sets - 1) != 0) & (self.sets != ANY_BASE)
        return np.unique(_coded(np.arange(WORD), self.sets)[is_several])


def plan_sweeps(patterns: Patterns, limits: Limits) -> list[Sweep]:
    """Return all queries; those of them that share exact bases by themselves, where that pays."""
    table = QueryTable.of(patterns, limits)
    exact = np.where(table.is_exact, table.sets, np.uint8(ANY_BASE))
    sweeps, everywhere = [], np.ones(len(table), bool)
    for rows in _groups(np.column_stack([table.most, exact])):
        if selecting_pays(len(rows), exact[rows[0]]):
            everywhere[rows] = False
            sweeps += list(_split(table.take(rows), exact[rows[0]]))
    rest = np.flatnonzero(everywhere)
    for rows in _groups(table.most[rest, None]):
        sweeps += list(_split(table.take(rest[rows]), exact[0, :0]))
    return sweeps


def selecting_pays(queries: int, exact: NDArray[np.uint8]) -> bool:
    """Return whether to count only where the bases match that these queries share."""
    # Of the positions of random bases, those at which all of these sets match.
    share = float(np.prod(np.bitwise_count(exact) / BASES))
    return share <= MOST_SELECTED and SELECT + share * (GATHER + queries) < queries


def _groups(keys: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of the rows that are the same, ascending."""
    _, group = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    yield from np.split(order, np.cumsum(np.bincount(group.ravel()))[:-1]) if len(order) else ()


def _split(table: QueryTable, selected: NDArray[np.uint8]) -> Iterator[Sweep]:
    """Yield sweeps whose tables fit into shared memory. selected: uint8[WORD], see `Sweep`."""
    rows = BASES * table.places + 1 + len(table.several())
    if rows > MOST_ROWS - ROUNDED and len(table) > 1:
        numbers = np.arange(len(table))
        for half in np.array_split(numbers, 2):
            yield from _split(table.take(half), selected)
    else:
        yield _make_sweep(table, selected)


def _make_sweep(table: QueryTable, selected: NDArray[np.uint8]) -> Sweep:
    places, several = table.places, table.several()
    empty, most = BASES * places, int(table.most[0])
    coded = _coded(np.arange(WORD), table.sets)
    row = np.where(
        np.isin(coded, several),
        empty + 1 + np.searchsorted(several, coded),
        BASES * np.arange(WORD) + np.bitwise_count(table.sets - 1),
    )
    is_counted = (table.sets != ANY_BASE) & ~table.is_exact
    counted, counted_blocks = _blocks(row, is_counted, empty)
    exact, exact_blocks = _blocks(row, table.is_exact, empty)
    queries = np.zeros(len(table), QUERY)
    queries["pattern"], queries["piece"] = table.pattern, table.piece
    queries["counted"], queries["exact"] = counted_blocks, exact_blocks
    place = np.flatnonzero(selected != ANY_BASE)
    return Sweep(
        queries=queries,
        counted=counted,
        exact=exact,
        sets=several,
        places=places,
        most=most,
        look=_look(is_counted.sum(axis=1), most),
        selected=_coded(place, selected[place]),
    )


def _coded(place: NDArray[np.int64], sets: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return sets of bases with their places, as the kernels read them."""
    return (place * MOST_SETS + sets).astype(np.uint16)


def _blocks(
    row: NDArray[np.int64], wanted: NDArray[np.bool_], empty: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the wanted rows of the table of each query in blocks of steps, and their number."""
    blocks = -(-wanted.sum(axis=1) // STEPS)
    width = max(1, int(blocks.max(initial=0))) * STEPS
    order = np.argsort(~wanted, axis=1, kind="stable")[:, :width]
    steps = np.take_along_axis(np.where(wanted, row, empty), order, axis=1)
    return np.ascontiguousarray(steps.astype(np.uint8)), blocks


def _look(counted: NDArray[np.int64], most: int) -> int:
    """Return after how many blocks of steps a warp should look whether a position is left."""
    # Three of four random bases differ, and of a thousand positions the last one is waited for.
    steps = (most + 1) / 0.75 + 2 * (most + 1) ** 0.5 + 2
    blocks = -(-int(counted.max(initial=0)) // STEPS)
    return int(max(1, min(ceil(steps / STEPS), blocks)))
