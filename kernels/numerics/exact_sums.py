"""Sums that keep what their roundings leave out; `exact_sums.cuh` has the same."""

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import fma


@jit_no_alloc
def exact_sum(a, b):  # type: ignore[no-untyped-def]
    """Return a + b rounded, and what the rounding left out (Knuth's two-sum)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


@jit_no_alloc
def in_80_bits(total, left_out):  # type: ignore[no-untyped-def]
    """Return `left_out` rounded so that both together have the 64 bits of an extended float64."""
    shift = total * 2.0**-11
    return (left_out + shift) - shift


@jit_no_alloc
def exact_mean(total, left_out, n):  # type: ignore[no-untyped-def]
    """Return the mean of n values from their sum and what its roundings left out."""
    mean = total / n
    return mean + (fma(-mean, n, total) + in_80_bits(total, left_out)) / n
