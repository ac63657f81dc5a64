"""Patterns that hang over the ends of records: a part of each against the first or last bases.

A record's bases are compared with 64 patterns at a time, a bit each. Mismatches are counted in bit
planes that begin so high that they overflow with the first mismatch too many. A comparison ends
where no pattern of the 64 is left, mostly after some bases.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import LETTER_SETS
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import trailing_zeros
from multigpu.kernels.scan.cpu_sweep import FIRST_ROOM, find_rows
from multigpu.kernels.scan.types import SLACK, Chunk, Hits, Limits, Patterns, allowed_bases

ONE = np.uint64(1)


class Overhang(NamedTuple):
    """Rules for patterns that hang over the ends of records.

    start, end  whether a pattern may begin before the record, or end after it
    least       bases of a pattern that must be seen
    most        most mismatches: a number for a whole pattern, of which a part has its share, or,
                as a float, a share of the bases that are seen; rounded down
    """

    start: bool
    end: bool
    least: int
    most: int | float


class _Groups(NamedTuple):
    """64 patterns each, of similar lengths, with a row for each base of the longest.

    order    int64[patterns]     their numbers, group after group
    rows     int64[groups + 1]   first row of each group
    differ   uint64[rows, 16]    patterns whose base does not match a set of bases
    exact    uint64[rows]        patterns whose base must match
    longer   uint64[rows]        patterns that have a base after this one
    counters uint64[rows, planes]  planes of the counters where this is the last base that is seen
    """

    order: NDArray[np.int64]
    rows: NDArray[np.int64]
    differ: NDArray[np.uint64]
    exact: NDArray[np.uint64]
    longer: NDArray[np.uint64]
    counters: NDArray[np.uint64]


class OverhangSearch:
    """The search for patterns that hang over the ends of records. Threads may share it."""

    def __init__(
        self, patterns: Patterns, limits: Limits, overhang: Overhang, strict: bool
    ) -> None:
        self._overhang = overhang
        self._forwards = _make_groups(patterns, limits, overhang.most, strict, backwards=False)
        self._backwards = _make_groups(patterns, limits, overhang.most, strict, backwards=True)

    def find(self, chunk: Chunk, at_start: NDArray[np.bool_], at_end: NDArray[np.bool_]) -> Hits:
        """Return the hits, clipped to the records, in no order; whole patterns are none of them.

        A place that a pattern has in several ways is there as often. All letters of the chunk must
        be bases.

        at_start, at_end  bool[records]: whether patterns may hang over these ends of a record
        """
        at_start, at_end = at_start & self._overhang.start, at_end & self._overhang.end
        planes = np.empty(self._forwards.counters.shape[1], np.uint64)

        def search(found: NDArray[np.int64]) -> int:
            return int(
                _search(
                    _SearchOfEnds(
                        letters=chunk.letters, offsets=chunk.offsets, at_start=at_start,
                        at_end=at_end, forwards=self._forwards, backwards=self._backwards,
                        least=self._overhang.least, planes=planes, found=found,
                    )
                )
            )  # fmt: skip

        found = find_rows(search, FIRST_ROOM, columns=5)
        record, pattern, start, end, errors = found.T
        return Hits(
            record=record.astype(np.int32),
            pattern=pattern.astype(np.int32),
            start=start.copy(),
            end=end.copy(),
            errors=errors.astype(np.int32),
            edge=np.zeros(len(found), np.uint8),
        )


def _make_groups(
    patterns: Patterns, limits: Limits, most: float, strict: bool, *, backwards: bool
) -> _Groups:
    """Return the groups of patterns, their bases from the first on, or from the last."""
    order = np.argsort(patterns.lengths, kind="stable")
    longest = patterns.lengths[order][
        np.minimum(np.arange(63, len(order) + 63, 64), len(order) - 1)
    ]
    rows = np.r_[0, np.cumsum(longest)]
    planes = int(allowed_bases(most, patterns.lengths).max()).bit_length()
    groups = _Groups(
        order=order,
        rows=rows,
        differ=np.zeros((rows[-1], 16), np.uint64),
        exact=np.zeros(rows[-1], np.uint64),
        longer=np.zeros(rows[-1], np.uint64),
        counters=np.zeros((rows[-1], planes), np.uint64),
    )
    borders = (limits.prefix, patterns.lengths - limits.suffix)
    count, share = (most, 0.0) if isinstance(most, int) else (-1, most * 1.0)
    _fill_groups(groups, patterns.sets, patterns.offsets, borders, count, share, strict, backwards)
    return groups


@jit_no_alloc
def _fill_groups(
    groups: Any, sets: Any, offsets: Any, exact: Any, count: Any, share: Any, strict: Any,
    backwards: Any,
) -> None:  # fmt: skip
    highest = (1 << groups.counters.shape[1]) - 1
    for number in range(groups.order.shape[0]):
        p, first = groups.order[number], groups.rows[number >> 6]
        bit, length = ONE << np.uint64(number & 63), offsets[p + 1] - offsets[p]
        for i in range(length):
            place, row, seen = length - 1 - i if backwards else i, first + i, i + 1
            base = sets[offsets[p] + place]
            for under in range(16):
                agrees = under & ~base == 0 if strict else under & base != 0
                if not agrees:
                    groups.differ[row, under] |= bit
            if place < exact[0][p] or place >= exact[1][p]:
                groups.exact[row] |= bit
            if seen < length:
                groups.longer[row] |= bit
            # As `allowed_bases` has it.
            most = np.int64(np.floor(share * seen * (1 + SLACK)))
            if count >= 0:
                most = min(count, length) * seen // length
            for plane in range(groups.counters.shape[1]):
                if (highest - most) >> plane & 1:
                    groups.counters[row, plane] |= bit


class _SearchOfEnds(NamedTuple):
    """One search of a chunk, and its scratch memory."""

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    at_start: NDArray[np.bool_]
    at_end: NDArray[np.bool_]
    forwards: _Groups
    backwards: _Groups
    least: int
    planes: NDArray[np.uint64]
    found: NDArray[np.int64]  # [room, 5] record, pattern, start, end, errors


@jit_no_alloc
def _search(search: Any) -> Any:
    """Search all records; return how many hits there are, even if there is no room for all."""
    count, patterns = 0, search.forwards
    for record in range(search.offsets.shape[0] - 1):
        begin, end = search.offsets[record], search.offsets[record + 1]
        length = end - begin
        for group in range(patterns.rows.shape[0] - 1):
            longest = patterns.rows[group + 1] - patterns.rows[group]
            for seen in range(search.least, min(longest - 1, length) + 1):
                if search.at_start[record]:
                    alive = _compare(search, search.backwards, group, 0, begin + seen - 1, -1, seen)
                    place = (record, 0, seen)
                    count = _keep(search, search.backwards, group, seen, alive, place, count)
                if search.at_end[record]:
                    alive = _compare(search, patterns, group, 0, end - seen, 1, seen)
                    place = (record, length - seen, length)
                    count = _keep(search, patterns, group, seen, alive, place, count)
            if length < search.least or not (search.at_start[record] and search.at_end[record]):
                continue
            for skipped in range(1, longest - length):
                alive = _compare(search, patterns, group, skipped, begin, 1, length)
                count = _keep(search, patterns, group, length, alive, (record, 0, length), count)
    return count


@jit_no_alloc
def _compare(
    search: Any, groups: Any, group: Any, skipped: Any, at: Any, step: Any, seen: Any
) -> Any:
    """Return the patterns of a group that match `seen` bases and have more after these.

    skipped   bases of the patterns before these
    at, step  where the first of these lies in the letters, and the way to the next
    """
    first, planes = groups.rows[group] + skipped, search.planes
    alive = groups.longer[first + seen - 1]
    for plane in range(planes.shape[0]):
        planes[plane] = groups.counters[groups.rows[group] + seen - 1, plane]
    for row in range(first, first + seen):
        differ = groups.differ[row, LETTER_SETS[search.letters[at]]]
        at += step
        alive &= ~(differ & groups.exact[row])
        for plane in range(planes.shape[0]):
            carried = planes[plane] & differ
            planes[plane] ^= differ
            differ = carried
        alive &= ~differ
        if not alive:
            break
    return alive


@jit_no_alloc
def _keep(
    search: Any, groups: Any, group: Any, seen: Any, alive: Any, place: Any, count: Any
) -> Any:
    """Keep the patterns that are alive as hits; return the number of all hits."""
    record, start, end = place
    while alive:
        bit = np.uint64(trailing_zeros(alive))
        alive &= alive - ONE
        if count < search.found.shape[0]:
            errors, row = np.int64(0), groups.rows[group] + seen - 1
            for plane in range(search.planes.shape[0]):
                errors += np.int64(search.planes[plane] >> bit & ONE) << plane
                errors -= np.int64(groups.counters[row, plane] >> bit & ONE) << plane
            hit = search.found[count]
            hit[0], hit[1] = record, groups.order[64 * group + np.int64(bit)]
            hit[2], hit[3], hit[4] = start, end, errors
        count += 1
    return count
