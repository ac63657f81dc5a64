"""The model in Numba: a block of regions at a time, in plain loops over the block.

`cpu_blocks.py` has the arrays of a block, `cpu_cycles.py` a cycle, `cpu_answers.py` the last one.
"""

from typing import Any

from multigpu.kernels.cnmops.cpu_answers import divide_weights, finish, put_levels
from multigpu.kernels.cnmops.cpu_blocks import BLOCK, add_members, larger
from multigpu.kernels.cnmops.cpu_cycles import (
    add_expected,
    add_posteriors,
    renew_weights,
    set_anchor,
    set_factors,
)
from multigpu.kernels.cnmops.numbers import LEAST_MOST
from multigpu.kernels.cnmops.types import LEAST_LEVEL
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.numerics.log2_exp2 import log2_factorial, reciprocal


@jit_no_alloc
def find_covered(x: Any, scale: Any, least: Any, out: Any) -> Any:
    """Find the regions that have a count above `least`."""
    for row in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[row] |= x[row, k] * scale[k] > least


@jit_no_alloc
def add_up(x: Any, scale: Any, cov: Any, out: Any) -> Any:
    """Add the scaled counts of each region over the coverages, in the order of the samples."""
    for row in range(x.shape[0]):
        total = 0.0
        for k in range(x.shape[1]):
            total += x[row, k] * scale[k] / cov[k]
        out[row] = total


@jit_no_alloc
def estimate(x: Any, rows: Any, constants: Any, work: Any, out: Any) -> Any:
    """Estimate levels and classes of the regions `rows`; the others are left as they are."""
    for first in range(0, rows.shape[0], BLOCK):
        _gather(x, rows, first, constants, work)
        _sum_samples(work.x, constants, work)
        for j in range(BLOCK):
            work.reads[j] = work.sums[0, j]
        _start(constants, work)
        for cycle in range(constants.cycles):
            is_moved = constants.is_unit and cycle > 1
            set_anchor(cycle, is_moved, constants, work)
            set_factors(is_moved, constants, work)
            if cycle < constants.cycles - 1:
                add_posteriors(is_moved, constants, work)
                add_expected(constants, work)
                for j in range(BLOCK):
                    work.level[j] = work.reads[j] * reciprocal(work.sums[0, j])
                renew_weights(constants, work)
            else:
                finish(rows, first, is_moved, constants, work, out)
                add_expected(constants, work)
                for j in range(BLOCK):
                    work.level[j] = work.reads[j] / work.sums[0, j]
                divide_weights(constants, work)
        put_levels(rows, first, work, out)


@jit_no_alloc
def compare(x: Any, rows: Any, floor: Any, constants: Any, work: Any, out: Any) -> Any:
    """Find the posteriors of the regions `rows` at the levels in `out`; constants.floor is 0."""
    n, samples = constants.changes.shape[0], x.shape[1]
    for first in range(0, rows.shape[0], BLOCK):
        _gather(x, rows, first, constants, work)
        for j in range(BLOCK):
            work.level[j] = out.level[rows[min(first + j, rows.shape[0] - 1)]]
            work.rate[j] = 0.0
        set_anchor(1, False, constants, work)
        for k in range(samples):
            for i in range(n):
                for j in range(BLOCK):  # R floors before it weighs
                    floored = larger(work.density[k, i * BLOCK + j], floor)
                    work.density[k, i * BLOCK + j] = floored * constants.weights[k, i]
        work.factor[:] = 1.0
        finish(rows, first, False, constants, work, out)
        for i in range(n):
            for j in range(BLOCK):
                work.alpha[i, j] = work.total[0, i * BLOCK + j] / samples
        put_levels(rows, first, work, out)


# ---- before the first cycle -------------------------------------------------------------------


@jit_no_alloc
def _gather(x: Any, rows: Any, first: Any, constants: Any, work: Any) -> Any:
    """Gather the counts of a block of regions, the last one repeated, and what they determine."""
    for j in range(BLOCK):
        row = rows[min(first + j, rows.shape[0] - 1)]
        work.greatest[j] = LEAST_MOST
        for k in range(x.shape[1]):
            work.x[k, j] = x[row, k] * constants.scale[k]
    for k in range(x.shape[1]):
        for j in range(BLOCK):
            count = work.x[k, j]
            work.constant[k, j] = log2_factorial(count) - count * constants.log_cov[k]
            work.greatest[j] = larger(count, work.greatest[j])


@jit_no_alloc
def _sum_samples(values: Any, constants: Any, work: Any) -> Any:
    """Add [samples, BLOCK] values into work.sums[0]."""
    for member in range(constants.team):
        work.sums[member] = 0.0
        for k in range(member, values.shape[0], constants.team):
            for j in range(BLOCK):
                work.sums[member, j] += values[k, j]
    add_members(work.sums)


@jit_no_alloc
def _start(constants: Any, work: Any) -> Any:
    """Set the first weights and levels: a median, or a mean, 1 or more."""
    samples = work.sorted.shape[0]
    for j in range(BLOCK):
        for i in range(constants.start.shape[0]):
            work.alpha[i, j] = constants.start[i]
        for k in range(samples):
            work.sorted[k] = work.over_cov[k, j] = work.x[k, j] / constants.cov[k]
        work.level[j] = _median(work.sorted)
    _sum_samples(work.over_cov, constants, work)
    for j in range(BLOCK):
        if work.level[j] < LEAST_LEVEL:
            work.level[j] = larger(work.sums[0, j] / samples, 1.0)


@jit_no_alloc
def _median(values: Any) -> Any:
    """Return the median of at least one value; they are put into another order."""
    middle = values.shape[0] // 2
    low, high = 0, values.shape[0] - 1
    while low < high:  # what is left of the middle is no more, what is right of it no less
        pivot, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        low, high = i if middle > j else low, j if middle < i else high
    if values.shape[0] % 2:
        return values[middle]
    below = values[0]
    for i in range(1, middle):
        below = max(below, values[i])
    return (below + values[middle]) / 2
