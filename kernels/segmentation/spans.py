"""Means and medians of segments, in Numba."""

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.numerics.medians import middle_of
from multigpu.kernels.numerics.sums import WARP, total

SHORT, BLOCK = 128, 1024  # a span's values are added as by a warp up to SHORT, else as by a block


@jit_no_alloc
def means(x, edges, lanes, out):  # type: ignore[no-untyped-def]
    """Set `out` to the means of spans, corrected by the mean of the rest; lanes: float64[BLOCK]."""
    for k in range(len(out)):
        n = edges[k + 1] - edges[k]
        average = _total(x, edges[k], n, 0.0, lanes) / n
        out[k] = average + _total(x, edges[k], n, average, lanes) / n


@jit_no_alloc
def _total(x, start, n, center, lanes):  # type: ignore[no-untyped-def]
    return total(x, start, n, center, False, WARP if n <= SHORT else BLOCK, lanes)


@jit_no_alloc
def medians(x, edges, room, out):  # type: ignore[no-untyped-def]
    """Set `out` to the medians of spans, 0.0 and not -0.0; `room` holds the longest."""
    for k in range(len(out)):
        n = edges[k + 1] - edges[k]
        for i in range(n):
            room[i] = x[edges[k] + i]
        below, above = middle_of(room, n)
        out[k] = above + 0.0 if below == above else 0.5 * below + 0.5 * above
