"""A cycle of the model in Numba, for a block of regions.

The density of class i at level L is taken from that at another level, the anchor:

    poisson(x; L I) = poisson(x; anchor I) * (L / anchor)^x * exp(-(L - anchor) I)

so a cycle takes an exponential for each sample and each class, and not for each pair of them. The
factor of the sample is the same for all classes and cancels in the posterior; the floor under the
density is divided by it instead, and so remains what it is. When level and anchor are so far apart
that a number might leave the range of float64, the level becomes the anchor. With coverages other
than 1 the factors cannot be separated, and the level is the anchor in every cycle.
"""

from typing import Any

from multigpu.kernels.cnmops.cpu_blocks import BLOCK, add_members, larger
from multigpu.kernels.cnmops.numbers import REACH
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import fma
from multigpu.kernels.numerics.log2_exp2 import (
    LOG2E,
    exp2_of,
    exp2_or_little,
    log2_of,
    log2_of_ratio,
    reciprocal,
)


@jit_no_alloc
def set_anchor(cycle: Any, is_moved: Any, constants: Any, work: Any) -> Any:
    """Bring anchors to the levels that are too far off, or without `is_moved` to all levels."""
    is_far = not is_moved
    for j in range(BLOCK):
        level, anchor = work.level[j], work.anchor[j]
        distance = abs(level - anchor)
        least = min(anchor, level)
        # |log(level / anchor)| is no more than distance / least.
        reach = distance * fma(constants.widest, least, work.greatest[j])
        if not is_moved or reach > REACH * least:
            work.anchor[j] = level
            is_far = True
    if is_far:
        _set_densities(cycle == 0, constants, work)


@jit_no_alloc
def _set_densities(is_first: Any, constants: Any, work: Any) -> Any:
    """Set the densities at the rates anchor * changes; in the first cycle these count twice."""
    changes = constants.squares if is_first else constants.changes
    power = 2.0 if is_first else 1.0
    for j in range(BLOCK):
        work.log_anchor[j] = log2_of(work.anchor[j])
    for k in range(constants.cov.shape[0]):
        for i in range(changes.shape[0]):
            cov, change, log_change = constants.cov[k], changes[i], power * constants.bits[i]
            for j in range(BLOCK):
                mean = work.anchor[j] * LOG2E * cov
                rest = fma(-mean, change, -work.constant[k, j])
                exponent = fma(work.x[k, j], work.log_anchor[j] + log_change, rest)
                work.density[k, i * BLOCK + j] = exp2_or_little(exponent)


@jit_no_alloc
def set_factors(is_moved: Any, constants: Any, work: Any) -> Any:
    """Set what leads from densities at the anchors to weighted ones at the levels."""
    for j in range(BLOCK):
        work.rate[j] = -log2_of_ratio(work.level[j], work.anchor[j]) if is_moved else 0.0
    for i in range(constants.changes.shape[0]):
        fall = constants.falls[i]
        for j in range(BLOCK):
            back = work.anchor[j] - work.level[j]
            to_level = exp2_of(back * fall) if is_moved else 1.0
            work.factor[i * BLOCK + j] = work.alpha[i, j] * to_level


@jit_no_alloc
def add_posteriors(is_moved: Any, constants: Any, work: Any) -> Any:
    """Add the posteriors of all samples and, with coverages, the counts that they let expect."""
    n = constants.changes.shape[0]
    for member in range(constants.team):
        work.total[member] = 0.0
        work.sums[member] = 0.0
        for k in range(member, constants.cov.shape[0], constants.team):
            for j in range(BLOCK):
                to_anchor = exp2_of(work.x[k, j] * work.rate[j]) if is_moved else 1.0
                work.floor[j] = constants.floor * to_anchor
            arrays = work.density[k], work.factor, work.floor, work.share, work.total[member]
            if len(constants.classes):
                _add_posteriors_of_sample(*arrays, constants.classes)
            else:
                _add_posteriors_class_by_class(*arrays, work.odd, n)
            if not constants.is_unit:
                for i in range(n):
                    for j in range(BLOCK):
                        here = _weighted(work.density[k], work.factor, work.floor, i, j)
                        work.weighted[i * BLOCK + j] = here
                add_expected_of_sample(k, member, constants, work)
    add_members(work.total)


@jit_no_alloc
def _add_posteriors_of_sample(
    density: Any, factor: Any, floor: Any, share: Any, total: Any, classes: Any
) -> Any:
    """Add one sample's posteriors to a member's totals: weighted densities * share.

    density, factor, total  float64[classes * BLOCK]
    share                   takes 1 / the sum of the weighted densities
    classes                 a tuple with an element for each class

    The compiler sees in the tuple's type how many there are, so it unrolls the inner loops and
    makes vector instructions of the outer one, whose sums stay in registers. That takes half of the
    time of one loop over the block for each class.
    """
    for j in range(BLOCK):
        even = odd = 0.0
        for i in range(len(classes)):
            here = _weighted(density, factor, floor, i, j)
            if i % 2:
                odd += here
            else:
                even += here
        share[j] = inverse = reciprocal(even + odd)
        for i in range(len(classes)):
            here = _weighted(density, factor, floor, i, j)
            total[i * BLOCK + j] = fma(here, inverse, total[i * BLOCK + j])


@jit_no_alloc
def _weighted(density: Any, factor: Any, floor: Any, i: Any, j: Any) -> Any:
    """Return the weighted density of class i in region j, not below the floor."""
    return larger(density[i * BLOCK + j] * factor[i * BLOCK + j], floor[j])


@jit_no_alloc
def _add_posteriors_class_by_class(
    density: Any, factor: Any, floor: Any, share: Any, total: Any, odd: Any, n: Any
) -> Any:
    """Do what `_add_posteriors_of_sample` does, with a loop over the block for each class.

    odd  takes the sums of classes 1, 3, ...; share first has those of the others
    """
    share[:] = odd[:] = 0.0
    for i in range(n):
        sums = odd if i % 2 else share
        for j in range(BLOCK):
            sums[j] += _weighted(density, factor, floor, i, j)
    for j in range(BLOCK):
        share[j] = reciprocal(share[j] + odd[j])
    for i in range(n):
        for j in range(BLOCK):
            here = _weighted(density, factor, floor, i, j)
            total[i * BLOCK + j] = fma(here, share[j], total[i * BLOCK + j])


@jit_no_alloc
def add_expected_of_sample(k: Any, member: Any, constants: Any, work: Any) -> Any:
    """Add the counts that sample k's posteriors, weighted * share, let expect to its member's."""
    work.expected[:] = 0.0
    for i in range(constants.changes.shape[0]):
        change = constants.changes[i]
        for j in range(BLOCK):
            work.expected[j] = fma(work.weighted[i * BLOCK + j], change, work.expected[j])
    for j in range(BLOCK):
        expected = work.expected[j] * work.share[j]
        work.sums[member, j] = fma(expected, constants.cov[k], work.sums[member, j])


@jit_no_alloc
def add_expected(constants: Any, work: Any) -> Any:
    """Add up the counts that the totals let expect at level 1, into work.sums[0]."""
    if constants.is_unit:
        for member in range(constants.team):
            work.sums[member] = 0.0
            for i in range(member, constants.changes.shape[0], constants.team):
                change = constants.changes[i]
                for j in range(BLOCK):
                    here = fma(work.total[0, i * BLOCK + j], change, work.sums[member, j])
                    work.sums[member, j] = here
    add_members(work.sums)


@jit_no_alloc
def renew_weights(constants: Any, work: Any) -> Any:
    """Set the weights by the totals of the posteriors."""
    for i in range(constants.changes.shape[0]):
        prior = constants.prior[i]
        for j in range(BLOCK):
            work.alpha[i, j] = fma(work.total[0, i * BLOCK + j], constants.sample_weight, prior)
