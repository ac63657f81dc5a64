"""Segments from pieces in Numba: means and medians, runs of gains and losses."""

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.numerics.medians import middle_of
from multigpu.kernels.numerics.sums import WARP, total

GAIN, LOSS, NEITHER = 1, -1, 0
SHORT, BLOCK = 128, 1024  # a span's values are added as by a warp up to SHORT, else as by a block


@jit_no_alloc
def merge(  # type: ignore[no-untyped-def]
    edges, medians, upper, lower, shortest, merging, start, end
):
    """Runs of gains and of losses (or any piece), and what lies between; how many they are."""
    pieces, count, reached, first = len(edges) - 1, 0, edges[0], 0
    while first < pieces:
        stop = first + 1
        kind = _kind(medians[first], upper, lower) if merging else GAIN
        while merging and stop < pieces and _kind(medians[stop], upper, lower) == kind:
            stop += 1
        if kind != NEITHER and edges[stop] - edges[first] >= shortest:
            if edges[first] > reached:
                start[count], end[count] = reached, edges[first]
                count += 1
            start[count], end[count] = edges[first], edges[stop]
            count, reached = count + 1, edges[stop]
        first = stop
    if edges[pieces] > reached:
        start[count], end[count] = reached, edges[pieces]
        count += 1
    return count


@jit_no_alloc
def _kind(median, upper, lower):  # type: ignore[no-untyped-def]
    return GAIN if median > upper else (LOSS if median < lower else NEITHER)


@jit_no_alloc
def means(x, start, end, lanes, out):  # type: ignore[no-untyped-def]
    """Set `out` to the means of spans, corrected by the mean of the rest; lanes: float64[BLOCK]."""
    for k in range(len(start)):
        n = end[k] - start[k]
        average = _total(x, start[k], n, 0.0, lanes) / n
        out[k] = average + _total(x, start[k], n, average, lanes) / n


@jit_no_alloc
def _total(x, start, n, center, lanes):  # type: ignore[no-untyped-def]
    if n <= SHORT:
        return total(x, start, n, center, False, WARP, lanes)
    return total(x, start, n, center, False, BLOCK, lanes)


@jit_no_alloc
def medians(x, start, end, room, out):  # type: ignore[no-untyped-def]
    """Set `out` to the medians of spans, 0.0 and not -0.0; `room` holds the longest."""
    for k in range(len(start)):
        n = end[k] - start[k]
        for i in range(n):
            room[i] = x[start[k] + i]
        below, above = middle_of(room, n)
        out[k] = above + 0.0 if below == above else 0.5 * below + 0.5 * above
