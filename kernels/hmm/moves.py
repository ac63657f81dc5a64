"""Chances that a path goes on from a region to the next one, by the distance between them."""

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.hmm.types import ENTER, LEAVE, STAY, SWITCH, UNIT, Floats, Scores
from multigpu.kernels.numerics.log2_exp2 import LOG2E, exp2_or_little, log2_of

EVENTS = 0.3  # of each kind that a sample is expected to have in all regions
STAYING = 0.9  # chance that an event which has a region has its neighbour, too
LEAST_REACH = 70_000  # bases, as exome callers take it
REACHES = 50  # typical distances


def typical_reach(start: NDArray[np.int64], end: NDArray[np.int64]) -> float:
    """Return the bases over which two regions are neighbours, by the regions of a chromosome.

    It is 50 times the median distance between the middles of regions, at least 70,000.
    """
    middles = (np.asarray(start, np.int64) + np.asarray(end, np.int64)) / 2
    distances = np.diff(middles)
    typical = float(np.median(distances)) if len(distances) else 0.0
    return max(LEAST_REACH, REACHES * typical)


def moves(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    regions: int | None = None,
    max_gap: int | None = None,
    events: float = EVENTS,
    stay: float = STAYING,
    reach: float | None = None,
) -> Scores:
    """Return int32[regions, 4]: scores (1/1024 nat) of the ways into each region of a chromosome.

    The columns are `ENTER` (usual to any one other state), `STAY` (in a state that is not usual),
    `LEAVE` (to the usual state) and `SWITCH` (to any one other state); staying usual scores 0. An
    event goes on to the next region with probability stay × exp(-gap / reach), and as likely as one
    begins beyond that. The first region, and one after a gap of more than `max_gap` bases, has no
    memory: all ways into it score what entering does, or 0.

    start, end  bases, ascending, half open
    regions     of the whole run, over which the expected events are distributed; None: these
    events      that a sample is expected to have of each kind in all regions
    stay        chance that an event that has a region has its neighbour, too
    reach       bases; None: `typical_reach` of these regions
    """
    start, end = (np.ascontiguousarray(each, np.int64) for each in (start, end))
    gaps = np.zeros(len(start))
    gaps[1:] = np.maximum(start[1:] - np.maximum.accumulate(end)[:-1], 0)
    out = np.zeros((len(start), 4), np.int32)
    enter = min(events / max(regions or len(start), 1), 0.01)
    furthest = np.inf if max_gap is None else float(max_gap)
    _set_moves(gaps, enter, stay, typical_reach(start, end) if reach is None else reach,
               furthest, out)  # fmt: skip
    return out


def is_break(rows: Scores) -> NDArray[np.bool_]:
    """bool[regions]: whether a region has no memory of the one before it."""
    return np.asarray(rows[:, STAY] == rows[:, ENTER])


def without_memory(rows: Scores, where: NDArray[np.bool_]) -> Scores:
    """Return moves that have no memory where it is said, bool[regions]."""
    found = rows.copy()
    found[where, STAY] = found[where, SWITCH] = found[where, ENTER]
    found[where, LEAVE] = 0
    return found


@jit_no_alloc
def _whole(chance):  # type: ignore[no-untyped-def]
    """Return the logarithm of a chance as a score."""
    return np.int32(np.rint(log2_of(chance) * (UNIT / LOG2E)))


@jit_no_alloc
def _set_moves(gaps: Floats, enter: float, stay: float, reach: float, furthest: float, out: Scores):  # type: ignore[no-untyped-def]
    begin = _whole(enter)
    for i in range(len(gaps)):
        out[i, ENTER] = begin
        if i == 0 or gaps[i] > furthest:
            out[i, STAY] = out[i, SWITCH] = begin
            out[i, LEAVE] = 0
            continue
        memory = exp2_or_little(-gaps[i] / reach * LOG2E)
        goes_on = memory * stay + (1 - memory) * enter
        out[i, STAY] = _whole(goes_on)
        out[i, SWITCH] = begin
        out[i, LEAVE] = _whole(1 - goes_on)
