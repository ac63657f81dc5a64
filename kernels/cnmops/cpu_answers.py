"""The last cycle of the model in Numba, for a block of regions: its numbers are the answers.

They are R's to the bit wherever R's are exact: densities are brought to the floor, not the floor to
them, a posterior is a true quotient, sums over classes go from the first to the last, and I/NI is a
mean of sums with 64 bits. So where one class is certain its posterior is 1 and signed I/NI the
logarithm of its fold change, and regions whose classes all lie on the floor have equal numbers.
Earlier cycles take shorter ways (`cpu_cycles.py`).

R adds the classes of a sample in float64 where it estimates levels, and in 80 bits where they are
given: so do we, by sums that keep what rounding leaves out.
"""

from typing import Any

import numpy as np

from multigpu.kernels.cnmops.cpu_blocks import BLOCK, add_members, larger
from multigpu.kernels.cnmops.cpu_cycles import add_expected_of_sample
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.numerics.exact_sums import exact_mean, exact_sum, in_80_bits
from multigpu.kernels.numerics.log2_exp2 import exp2_of


@jit_no_alloc
def divide_weights(constants: Any, work: Any) -> Any:
    """Set the weights as `renew_weights` does, by true quotients."""
    samples = float(constants.cov.shape[0])
    for i in range(constants.changes.shape[0]):
        prior = constants.impact if i == constants.main else 0.0
        for j in range(BLOCK):
            mean = work.total[0, i * BLOCK + j] / samples
            work.alpha[i, j] = (prior + mean) / (1.0 + constants.impact)


@jit_no_alloc
def finish(rows: Any, first: Any, is_moved: Any, constants: Any, work: Any, out: Any) -> Any:
    """Add posteriors as `add_posteriors` does, and put each sample's answers into `out`."""
    work.share[:] = 1.0
    for member in range(constants.team):
        work.total[member] = work.sums[member] = 0.0
        work.informative[member] = work.left_out[member] = 0.0
        for k in range(member, constants.cov.shape[0], constants.team):
            _divide(k, is_moved, constants, work)
            for i in range(constants.changes.shape[0]):
                for j in range(BLOCK):
                    work.total[member, i * BLOCK + j] += work.weighted[i * BLOCK + j]
            if not constants.is_unit:
                add_expected_of_sample(k, member, constants, work)
            _measure(member, constants, work)
            _put_sample(rows, first, k, work, out)
    add_members(work.total)
    _add_exact_members(work.informative, work.left_out)
    for j in range(min(BLOCK, rows.shape[0] - first)):
        total, left_out = work.informative[0, j], work.left_out[0, j]
        out.ini[rows[first + j]] = exact_mean(total, left_out, float(constants.cov.shape[0]))


@jit_no_alloc
def _divide(k: Any, is_moved: Any, constants: Any, work: Any) -> Any:
    """Set sample k's posteriors, as R adds and divides."""
    for j in range(BLOCK):
        work.to_level[j] = exp2_of(0.0 - work.x[k, j] * work.rate[j]) if is_moved else 1.0
    _divide_sample(
        work.density[k], work.factor, work.to_level, constants.floor, constants.is_level_given,
        work.weighted, constants.changes.shape[0], constants.classes,
    )  # fmt: skip


@jit_no_alloc
def _divide_sample(
    density: Any, factor: Any, to_level: Any, floor: Any, is_sum_in_80_bits: Any, weighted: Any,
    n: Any, classes: Any,
) -> Any:  # fmt: skip
    """Set weighted to the posteriors: weighted densities, not below the floor, over their sum.

    n        classes
    classes  as in `_add_posteriors_of_sample`, or empty
    """
    n = len(classes) or n
    for j in range(BLOCK):
        total = left_out = 0.0
        for i in range(n):
            here = density[i * BLOCK + j] * factor[i * BLOCK + j] * to_level[j]
            weighted[i * BLOCK + j] = here = larger(here, floor)
            total, rest = exact_sum(total, here)
            left_out += rest
        total += in_80_bits(total, left_out) if is_sum_in_80_bits else 0.0
        for i in range(n):
            weighted[i * BLOCK + j] /= total


@jit_no_alloc
def _measure(member: Any, constants: Any, work: Any) -> Any:
    """Find a sample's signed I/NI and likeliest class; add its I/NI to a member's."""
    _measure_sample(
        work.weighted, constants.bits, work.signed, work.unsigned, work.likeliest,
        constants.classes,
    )  # fmt: skip
    for j in range(BLOCK):
        total, rest = exact_sum(work.informative[member, j], work.unsigned[j])
        work.informative[member, j] = total
        work.left_out[member, j] += rest


@jit_no_alloc
def _measure_sample(
    posterior: Any, bits: Any, signed: Any, unsigned: Any, likeliest: Any, classes: Any
) -> Any:
    """Set a sample's signed I/NI, its I/NI and its likeliest class.

    classes  as in `_add_posteriors_of_sample`, or empty
    """
    n = len(classes) or bits.shape[0]
    for j in range(BLOCK):
        signed_sum = unsigned_sum = likeliest_class = 0.0
        greatest = -1.0
        for i in range(n):
            here = posterior[i * BLOCK + j]
            signed_sum += here * bits[i]
            unsigned_sum += here * abs(bits[i])
            likeliest_class = float(i) if here > greatest else likeliest_class
            greatest = max(greatest, here)
        signed[j], unsigned[j], likeliest[j] = signed_sum, unsigned_sum, likeliest_class


@jit_no_alloc
def _add_exact_members(sums: Any, left_out: Any) -> Any:
    """Add the members as `add_members` does, with what their roundings leave out."""
    step = 1
    while step < sums.shape[0]:
        for member in range(0, sums.shape[0], 2 * step):
            for j in range(BLOCK):
                total, rest = exact_sum(sums[member, j], sums[member + step, j])
                sums[member, j] = total
                left_out[member, j] = left_out[member, j] + left_out[member + step, j] + rest
        step *= 2


@jit_no_alloc
def _put_sample(rows: Any, first: Any, k: Any, work: Any, out: Any) -> Any:
    """Put the answers of sample k into `out`."""
    for j in range(min(BLOCK, rows.shape[0] - first)):
        row = rows[first + j]
        out.sini[k, row] = work.signed[j]
        out.cn_index[k, row] = np.int8(work.likeliest[j])
        if out.posterior.shape[0]:
            for i in range(out.posterior.shape[1]):
                out.posterior[row, i, k] = work.weighted[i * BLOCK + j]


@jit_no_alloc
def put_levels(rows: Any, first: Any, work: Any, out: Any) -> Any:
    """Put levels and weights into `out`."""
    for j in range(min(BLOCK, rows.shape[0] - first)):
        row = rows[first + j]
        out.level[row] = work.level[j]
        for i in range(out.alpha.shape[1]):
            out.alpha[row, i] = work.alpha[i, j]
