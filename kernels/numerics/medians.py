"""The middle of values, for Numba functions."""

from multigpu.kernels.compiled.jit import jit_no_alloc

FEW = 32  # values that are sorted by insertion


@jit_no_alloc
def middle_of(values, n):  # type: ignore[no-untyped-def]
    """Return the two middle ones of the first n values, equal for an odd n; they are reordered."""
    high = n // 2
    _select(values, n, high)
    if n % 2:
        return values[high], values[high]
    below = values[0]
    for i in range(1, high):
        below = max(below, values[i])
    return below, values[high]


@jit_no_alloc
def _select(values, n, k):  # type: ignore[no-untyped-def]
    """Put the k-th smallest of the first n values at k, and none larger before it (Hoare's)."""
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
