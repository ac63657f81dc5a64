"""Chances that a path goes on from a region to the next one, by the distance between them."""

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.hmm.types import ENTER, LEAVE, STAY, UNIT, Scores
from multigpu.kernels.numerics.log2_exp2 import LOG2E, exp2_or_little, log2_of

EVENTS = 0.3  # of each kind that a sample is expected to have in all regions
STAYING = 0.9  # chance that an event which has a region has its neighbour, too
LEAST_REACH = 70_000.0  # bases, as exome callers take it
REACHES = 50  # typical distances
MOST_DISTANCES = 100_000


def _typical_reach(start: NDArray[np.int64], end: NDArray[np.int64]) -> float:
    """Return the bases over which two regions are neighbours, by the regions of a chromosome.

    Distances are those of middles of up to 200,000 regions, taken evenly.
    """
    chosen = np.arange(0, max(len(start) - 1, 0), max(1, len(start) // MOST_DISTANCES))
    distances = (start[chosen + 1] - start[chosen] + end[chosen + 1] - end[chosen]) / 2
    typical = float(np.median(distances)) if len(distances) else 0.0
    return max(LEAST_REACH, REACHES * typical)


def moves(
    start: NDArray[np.int64], end: NDArray[np.int64], regions: int, max_gap: int | None = None
) -> Scores:
    """Return int32[regions, 3]: scores (1/1024 nat) of the ways into each region of a chromosome.

    The columns are `ENTER` (from any state to another one that is not usual), `STAY` (in a state
    that is not usual) and `LEAVE` (to the usual state); staying usual scores 0. An
    event goes on to the next region with probability STAYING × exp(-gap / reach), and as likely as
    one begins beyond that. The first region, and one after a gap of more than `max_gap` bases, has
    no memory: all ways into it score what entering does, or 0.

    start, end  bases, ascending, half open
    regions     of the whole run, over which the expected events are distributed
    """
    start, end = (np.ascontiguousarray(each, np.int64) for each in (start, end))
    out = np.empty((len(start), 3), np.int32)
    enter = min(EVENTS / regions, 0.01)
    furthest = np.inf if max_gap is None else float(max_gap)
    _set_moves(start, end, enter, _typical_reach(start, end), furthest, out)
    return out


def is_break(rows: Scores) -> NDArray[np.bool_]:
    """bool[regions]: whether a region has no memory of the one before it."""
    return np.asarray(rows[:, STAY] == rows[:, ENTER])


def without_memory(rows: Scores, where: NDArray[np.bool_]) -> Scores:
    """Return moves that have no memory where it is said, bool[regions]."""
    found = rows.copy()
    found[where, STAY] = found[where, ENTER]
    found[where, LEAVE] = 0
    return found


@jit_no_alloc
def _whole(chance):  # type: ignore[no-untyped-def]
    """Return the logarithm of a chance as a score."""
    return np.int32(np.rint(log2_of(chance) * (UNIT / LOG2E)))


@jit_no_alloc
def _set_moves(start, end, enter, reach, furthest, out):  # type: ignore[no-untyped-def]
    begin = _whole(enter)
    known, stayed, left = -1.0, begin, np.int32(0)  # of the gap before, as most bins have the same
    reached = end[0] if len(end) else 0
    for i in range(len(out)):
        gap = np.float64(max(start[i] - reached, 0))
        reached = max(reached, end[i])
        if gap != known and gap <= furthest:
            memory = exp2_or_little(-gap / reach * LOG2E)
            goes_on = memory * STAYING + (1 - memory) * enter
            known, stayed, left = gap, _whole(goes_on), _whole(1 - goes_on)
        is_start = i == 0 or gap > furthest
        out[i, ENTER] = begin
        out[i, STAY] = begin if is_start else stayed
        out[i, LEAVE] = 0 if is_start else left
