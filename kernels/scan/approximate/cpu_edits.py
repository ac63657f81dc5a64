"""Ends of pieces of samples that are few edits away from a pattern, on a CPU.

A column of the table of distances is kept as its differences from row to row, a bit each (Myers
1999, in the form of Hyyrö 2003), of as many patterns at a time as fit into the loop. A pattern of
more than 64 bases is looked for by its pieces, one of which has no more than its share of the
edits.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.approximate.edit_queries import Candidates, EditQueries
from multigpu.kernels.scan.cpu_patterns import ONE
from multigpu.kernels.scan.cpu_sweep import find_rows
from multigpu.kernels.scan.types import Limits, Patterns

LANES = 64  # pieces of a group
WORD = 64  # bases of the longest piece


class Group(NamedTuple):
    """Pieces of patterns that are looked for together, one a lane.

    Bit 63 stands for a piece's last base; every base matches the bits before its first one.
    """

    pattern: NDArray[np.int64]  # [LANES]
    after: NDArray[np.int64]  # [LANES] bases of the pattern after the piece
    slack: NDArray[np.int64]  # [LANES] by how much the bases after it may be more or fewer there
    equal: NDArray[np.uint64]  # [16, LANES] bases of the piece that match a set of bases
    longest: NDArray[np.uint64]  # [LANES] one bit for every base
    length: NDArray[np.uint64]  # [LANES]
    most: NDArray[np.uint64]  # [LANES] edits


def make_groups(patterns: Patterns, limits: Limits, strict: bool) -> list[Group]:
    """Return the pieces of all patterns in groups; lanes without a piece have no length."""
    pieces = EditQueries.of(patterns, limits, strict, WORD)
    missing = -len(pieces.pattern) % LANES
    pattern, after, slack, queries = (
        np.concatenate([each, np.zeros(missing, each.dtype)])
        for each in (pieces.pattern, pieces.after, pieces.slack, pieces.queries)
    )
    return [
        Group(
            pattern=pattern[lanes],
            after=after[lanes],
            slack=slack[lanes],
            equal=np.ascontiguousarray(queries["equal"][lanes].T),
            longest=queries["rows"][lanes].copy(),
            length=queries["length"][lanes].copy(),
            most=queries["most"][lanes].copy(),
        )
        for lanes in (slice(at, at + LANES) for at in range(0, len(pattern), LANES))
    ]


def find(
    sets: NDArray[np.uint8], offsets: NDArray[np.int64], group: Group, room: int
) -> Candidates:
    """Return the candidates in all records.

    sets     uint8[bases]        sets of bases of the samples
    offsets  int64[records + 1]  as in `Chunk`
    room     candidates that are expected
    """
    scratch, runs = np.empty((4, LANES), np.uint64), np.empty(LANES, np.int64)
    rows = find_rows(lambda found: _search(sets, offsets, group, scratch, runs, found), room)
    return Candidates(*rows.T)


@jit_no_alloc
def _search(sets: Any, offsets: Any, group: Any, scratch: Any, runs: Any, found: Any) -> Any:
    """Find candidates; return how many there are, even if there is no room for all."""
    count = 0
    plus, minus, errors, is_low = scratch[0], scratch[1], scratch[2], scratch[3]
    for record in range(offsets.shape[0] - 1):
        for lane in range(LANES):
            plus[lane], minus[lane] = group.longest[lane], 0
            errors[lane] = group.length[lane]
            runs[lane] = -1
        # The empty piece before the first base is an end, too.
        any_low = _mark_low(errors, group.most, group.length, is_low)
        if any_low:
            count = _follow_runs(is_low, 0, record, group, runs, found, count)
        end = 0
        for at in range(offsets[record], offsets[record + 1]):
            end += 1
            _next_column(group.equal[sets[at]], plus, minus, errors)
            was_low = any_low
            any_low = _mark_low(errors, group.most, group.length, is_low)
            if any_low or was_low:
                count = _follow_runs(is_low, end, record, group, runs, found, count)
        if any_low:
            for lane in range(LANES):
                is_low[lane] = 0
            count = _follow_runs(is_low, end + 1, record, group, runs, found, count)
    return count


@jit_no_alloc
def _next_column(equal: Any, plus: Any, minus: Any, errors: Any) -> None:
    """Go on by a base of the sample; `equal` is what matches it."""
    top = np.uint64(63)
    for lane in range(LANES):
        e, p, m = equal[lane], plus[lane], minus[lane]
        vertical = e | m
        horizontal = (((e & p) + p) ^ p) | e
        up = m | ~(horizontal | p)
        down = p & horizontal
        errors[lane] += (up >> top) - (down >> top)
        up, down = up << ONE, down << ONE
        plus[lane] = down | ~(vertical | up)
        minus[lane] = up & vertical


@jit_no_alloc
def _mark_low(errors: Any, most: Any, length: Any, is_low: Any) -> Any:
    """Mark the lanes with no more edits than they may have; return whether there are any."""
    count = np.uint64(0)
    for lane in range(LANES):
        low = np.uint64(errors[lane] <= most[lane]) & np.uint64(length[lane] > 0)
        is_low[lane] = low
        count |= low
    return count != 0


@jit_no_alloc
def _follow_runs(
    is_low: Any, end: Any, record: Any, group: Any, runs: Any, found: Any, count: Any
) -> Any:
    """Begin and end stretches of ends at which a lane has few enough edits; return their number."""
    for lane in range(LANES):
        if is_low[lane]:
            if runs[lane] < 0:
                runs[lane] = end
        elif runs[lane] >= 0:
            if count < found.shape[0]:
                found[count, 0], found[count, 1] = record, group.pattern[lane]
                found[count, 2] = runs[lane] + group.after[lane] - group.slack[lane]
                found[count, 3] = end - 1 + group.after[lane] + group.slack[lane]
            count += 1
            runs[lane] = -1
    return count
