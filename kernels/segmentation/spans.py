"""Segments from pieces in Numba: means and medians, runs of gains and losses."""

from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.numerics.sums import WARP, total

GAIN, LOSS, NEITHER = 1, -1, 0
FEW = 32  # values that are sorted by insertion
SHORT, BLOCK = 128, 1024  # a span's values are added as by a warp up to SHORT, else as by a block


@lean
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


@lean
def _kind(median, upper, lower):  # type: ignore[no-untyped-def]
    return GAIN if median > upper else (LOSS if median < lower else NEITHER)


@lean
def means(x, start, end, lanes, out):  # type: ignore[no-untyped-def]
    """Set `out` to the means of spans, corrected by the mean of the rest; lanes: float64[BLOCK]."""
    for k in range(len(start)):
        n = end[k] - start[k]
        average = _total(x, start[k], n, 0.0, lanes) / n
        out[k] = average + _total(x, start[k], n, average, lanes) / n


@lean
def _total(x, start, n, center, lanes):  # type: ignore[no-untyped-def]
    if n <= SHORT:
        return total(x, start, n, center, False, WARP, lanes)
    return total(x, start, n, center, False, BLOCK, lanes)


@lean
def medians(x, start, end, room, out):  # type: ignore[no-untyped-def]
    """Set `out` to the medians of spans; `room` holds the longest."""
    for k in range(len(start)):
        n = end[k] - start[k]
        for i in range(n):
            room[i] = x[start[k] + i]
        out[k] = _median(room, n)


@lean
def _median(values, n):  # type: ignore[no-untyped-def]
    """Return the median of the first n values, which are reordered; 0.0 and not -0.0."""
    high = n // 2
    _select(values, n, high)
    above = values[high] + 0.0
    if n % 2:
        return above
    below = values[0]
    for i in range(1, high):
        below = max(below, values[i])
    return above if below == above else 0.5 * below + 0.5 * above


@lean
def _select(values, n, k):  # type: ignore[no-untyped-def]
    """Puts the k-th smallest of the first n values at k, and none larger before it (Hoare's)."""
    low, high = 0, n - 1
    while high - low > FEW:
        pivot = values[(low + high) // 2]
        i, j = low - 1, high + 1
        while True:
            i += 1
            while values[i] < pivot:
                i += 1
            j -= 1
            while values[j] > pivot:
                j -= 1
            if i >= j:
                break
            values[i], values[j] = values[j], values[i]
        if k <= j:
            high = j
        else:
            low = j + 1
    for i in range(low + 1, high + 1):
        value, j = values[i], i
        while j > low and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
