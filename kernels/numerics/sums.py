"""Sums in the order in which the threads of a GPU add, for Numba functions.

The rounding of a sum depends on the order of its additions, so all backends keep to one. Thread k
of a warp or a block adds values k, k + threads, k + 2 threads ... to 0; a warp adds up its lanes by
halves, 16 and 16, 8 and 8, and so on; a block adds its warps one after the other.
"""

from multigpu.kernels.compiled.jit import jit_no_alloc

WARP = 32


@jit_no_alloc
def warp_sum(lanes, first, n):  # type: ignore[no-untyped-def]
    """Return the sum of the first n of 32 lanes, which begin at `first`, as if the others were 0.

    Lanes after the n must be 0 up to the next power of 2; the lanes are used up.
    """
    half = WARP // 2
    while half >= n > 0:
        half //= 2
    while half:
        for k in range(first, first + half):
            lanes[k] += lanes[k + half]
        half //= 2
    return lanes[first]


@jit_no_alloc
def total(x, start, n, center, squared, threads, lanes):  # type: ignore[no-untyped-def]
    """Return the sum of x[start : start + n] - center, or of its squares.

    lanes: float64[threads] or more, for its own use
    """
    for k in range(min(threads, 2 * n)):  # more are not looked at
        lanes[k] = 0.0
    for row in range(start, start + n, threads):
        for k in range(min(threads, start + n - row)):
            off = x[row + k] - center
            lanes[k] += off * off if squared else off
    out = 0.0
    for first in range(0, min(threads, n), WARP):
        out += warp_sum(lanes, first, n - first)
    return out
