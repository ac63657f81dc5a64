"""Ends of pieces of samples that are few edits away from a pattern, on a CPU.

A column of the table of distances is kept as its differences from row to row, a bit each (Myers
1999, in the form of Hyyrö 2003), of as many patterns at a time as fit into the loop. A pattern of
more than 64 bases is looked for by its pieces, one of which has no more than its share of the
edits.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.approximate.types import Limits
from multigpu.kernels.scan.types import Patterns

LANES = 64  # pieces of a group
WORD = 64  # bases of the longest piece

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)


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


class Candidates(NamedTuple):
    """Stretches of ends at which patterns may be few edits away.

    first, last  ends in the record, both in the stretch; may be before the record or after it
    """

    record: NDArray[np.int32]
    pattern: NDArray[np.int32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def cut(self, size: int) -> "Candidates":
        """Return the first ones."""
        return Candidates(
            self.record[:size], self.pattern[:size], self.first[:size], self.last[:size]
        )

    @classmethod
    def joined(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """Return the candidates of all parts, one after the other."""
        return cls(
            record=np.concatenate([part.record for part in parts]),
            pattern=np.concatenate([part.pattern for part in parts]),
            first=np.concatenate([part.first for part in parts]),
            last=np.concatenate([part.last for part in parts]),
        )


def make_groups(patterns: Patterns, limits: Limits, strict: bool) -> list[Group]:
    """Return the pieces of all patterns in groups."""
    lengths = patterns.lengths
    pieces = []
    for p, length in enumerate(lengths.tolist()):
        count = -(-length // WORD)
        borders = [length * i // count for i in range(count + 1)]
        most = int(limits.most[p]) // count
        pieces += [(p, borders[i], borders[i + 1], most) for i in range(count)]
    return [
        _make_group(patterns, limits, strict, pieces[first : first + LANES])
        for first in range(0, len(pieces), LANES)
    ]


def _make_group(
    patterns: Patterns, limits: Limits, strict: bool, pieces: list[tuple[int, int, int, int]]
) -> Group:
    sets = np.arange(16, dtype=np.uint8)[:, None]
    group = Group(
        pattern=np.full(LANES, -1, np.int64),
        after=np.zeros(LANES, np.int64),
        slack=np.zeros(LANES, np.int64),
        equal=np.zeros((16, LANES), np.uint64),
        longest=np.zeros(LANES, np.uint64),
        length=np.zeros(LANES, np.uint64),
        most=np.zeros(LANES, np.uint64),
    )
    for lane, (p, begin, end, most) in enumerate(pieces):
        length, offset = end - begin, patterns.offsets[p]
        bases = patterns.sets[offset + begin : offset + end]
        agrees = (sets & ~bases) == 0 if strict else (sets & bases) != 0
        bits = ONE << np.arange(WORD - length, WORD, dtype=np.uint64)
        inside = bits.sum(dtype=np.uint64)
        group.pattern[lane], group.after[lane] = p, patterns.lengths[p] - end
        group.slack[lane] = limits.most[p] if group.after[lane] else 0
        group.equal[:, lane] = (agrees * bits).sum(1, dtype=np.uint64) | ~inside
        group.longest[lane], group.length[lane], group.most[lane] = inside, length, most
    return group


def make_candidates(room: int) -> Candidates:
    """Return room for as many candidates."""
    return Candidates(
        record=np.empty(room, np.int32),
        pattern=np.empty(room, np.int32),
        first=np.empty(room, np.int64),
        last=np.empty(room, np.int64),
    )


def search(
    sets: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    group: Group,
    candidates: Candidates,
) -> int:
    """Find candidates in all records; return how many, even if there is no room for all.

    sets     uint8[bases]        sets of bases of the samples
    offsets  int64[records + 1]  as in `Chunk`
    """
    scratch = np.empty((4, LANES), np.uint64)
    runs = np.empty(LANES, np.int64)
    return int(_search(sets, offsets, group, scratch, runs, candidates))


@jit_no_alloc
def _search(sets: Any, offsets: Any, group: Any, scratch: Any, runs: Any, candidates: Any) -> Any:
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
            count = _follow_runs(is_low, 0, record, group, runs, candidates, count)
        end = 0
        for at in range(offsets[record], offsets[record + 1]):
            end += 1
            _next_column(group.equal[sets[at]], plus, minus, errors)
            was_low = any_low
            any_low = _mark_low(errors, group.most, group.length, is_low)
            if any_low or was_low:
                count = _follow_runs(is_low, end, record, group, runs, candidates, count)
        if any_low:
            for lane in range(LANES):
                is_low[lane] = 0
            count = _follow_runs(is_low, end + 1, record, group, runs, candidates, count)
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
    is_low: Any, end: Any, record: Any, group: Any, runs: Any, candidates: Any,
    count: Any,
) -> Any:  # fmt: skip
    """Begin and end stretches of ends at which a lane has few enough edits; return their number."""
    for lane in range(LANES):
        if is_low[lane]:
            if runs[lane] < 0:
                runs[lane] = end
        elif runs[lane] >= 0:
            p = group.pattern[lane]
            if count < candidates.record.shape[0]:
                candidates.record[count], candidates.pattern[count] = record, p
                candidates.first[count] = runs[lane] + group.after[lane] - group.slack[lane]
                candidates.last[count] = end - 1 + group.after[lane] + group.slack[lane]
            count += 1
            runs[lane] = -1
    return count
