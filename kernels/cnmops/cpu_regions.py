"""The cycles of the model in Numba: a block of regions at a time, in plain loops over the block.

The density of class i at level L is taken from that at another level, the anchor:

    poisson(x; L I) = poisson(x; anchor I) * (L / anchor)^x * exp(-(L - anchor) I)

so a cycle takes an exponential for each sample and each class, and not for each pair of them. The
factor of the sample is the same for all classes and cancels in the posterior; the floor under the
density is divided by it instead, and so remains what it is. When level and anchor are so far apart
that a number might leave the range of float64, the level becomes the anchor. With coverages other
than 1 the factors cannot be separated, and the level is the anchor in every cycle.

The last cycle, whose numbers are the answers, is R's to the bit wherever R's are exact: densities
are brought to the floor, not the floor to them, a posterior is a true quotient, sums over classes
go from the first to the last, and I/NI is a mean of sums with 64 bits. So where one class is
certain its posterior is 1 and signed I/NI the logarithm of its fold change, and regions whose
classes all lie on the floor have equal numbers. Earlier cycles take shorter ways.

R adds the classes of a sample in float64 where it estimates levels, and in 80 bits where they are
given: so do we, by sums that keep what rounding leaves out.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.cnmops.numbers import LEAST_MOST, REACH
from multigpu.kernels.cnmops.types import LEAST_LEVEL, Floats
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import fma
from multigpu.kernels.numerics.exact_sums import exact_mean, exact_sum, in_80_bits
from multigpu.kernels.numerics.log2_exp2 import (
    LOG2E,
    exp2_of,
    exp2_or_little,
    log2_factorial,
    log2_of,
    log2_of_ratio,
    reciprocal,
)

BLOCK = 128  # regions; the compiler makes vector instructions of loops over so many
# Numbers of classes for which the compiler unrolls the loops over classes: those of the models as
# they are unless told otherwise. Each takes it some 10 s, once.
UNROLLED = (9, 13)


class Constants(NamedTuple):
    """Numbers that are the same for all regions: the model's and the samples'."""

    changes: Floats  # [classes], see `Numbers`
    squares: Floats
    falls: Floats
    bits: Floats
    start: Floats
    prior: Floats
    sample_weight: float
    widest: float
    main: int
    impact: float
    is_level_given: bool
    weights: Floats  # [samples, classes], where levels are given
    scale: Floats  # [samples]
    cov: Floats
    log_cov: Floats  # to base 2
    is_unit: bool  # all coverages are 1
    team: int  # members of a sum, see `numbers`
    cycles: int
    least: float  # a region needs a count above it
    floor: float
    classes: tuple[int, ...]  # 0, 1, ... where their number is in UNROLLED, else empty


class Work(NamedTuple):
    """Arrays for a block of regions, which is the last axis of all but one; float64.

    Where that axis is [classes * BLOCK], region j of class i is at i * BLOCK + j.
    """

    density: Floats  # [samples, classes * BLOCK] at the anchor
    x: Floats  # [samples] counts
    over_cov: Floats  # [samples] counts over coverages
    constant: Floats  # [samples] log2(x!) - x log2(cov)
    total: Floats  # [team, classes * BLOCK] sums of posteriors; added up, [0] has those of all
    sums: Floats  # [team] other sums, likewise
    informative: Floats  # [team] sums of I/NI
    left_out: Floats  # [team] what rounding left out of them
    alpha: Floats  # [classes]
    factor: Floats  # [classes * BLOCK] weight, and the way from the anchor to the level
    weighted: Floats  # [classes * BLOCK] of one sample: weighted densities, then posteriors
    level: Floats
    anchor: Floats
    log_anchor: Floats  # to base 2
    greatest: Floats  # count
    reads: Floats  # sum of the counts
    rate: Floats  # bits that the floor moves for each read of a sample
    floor: Floats  # of one sample
    share: Floats  # 1 / the sum of its weighted densities
    odd: Floats  # sum of those of classes 1, 3, ...
    expected: Floats  # count of one sample
    to_level: Floats  # from one sample's densities at the anchor to those at the level
    signed: Floats  # I/NI of one sample
    unsigned: Floats  # likewise
    likeliest: Floats  # class of one sample
    sorted: Floats  # [samples] of one region


class Out(NamedTuple):
    """Arrays of `Result`, samples first; `posterior` has no rows where it is not wanted."""

    level: Floats
    alpha: Floats
    ini: Floats
    sini: Floats
    cn_index: NDArray[np.int8]
    posterior: Floats


def work_for(samples: int, classes: int, team: int) -> Work:
    """Return arrays for a model of this size."""
    shapes: dict[str, tuple[int, ...]] = {
        "density": (samples, classes * BLOCK),
        "total": (team, classes * BLOCK),
        "factor": (classes * BLOCK,),
        "sorted": (samples,),
        **dict.fromkeys(("x", "over_cov", "constant"), (samples, BLOCK)),
        **dict.fromkeys(("sums", "informative", "left_out"), (team, BLOCK)),
        "weighted": (classes * BLOCK,),
        "alpha": (classes, BLOCK),
    }
    return Work(*(np.empty(shapes.get(name, (BLOCK,))) for name in Work._fields))


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
            _set_anchor(cycle, is_moved, constants, work)
            _set_factors(is_moved, constants, work)
            if cycle < constants.cycles - 1:
                _add_posteriors(is_moved, constants, work)
                _add_expected(constants, work)
                for j in range(BLOCK):
                    work.level[j] = work.reads[j] * reciprocal(work.sums[0, j])
                _renew_weights(constants, work)
            else:
                _finish(rows, first, is_moved, constants, work, out)
                _add_expected(constants, work)
                for j in range(BLOCK):
                    work.level[j] = work.reads[j] / work.sums[0, j]
                _divide_weights(constants, work)
        _put_levels(rows, first, work, out)


@jit_no_alloc
def compare(x: Any, rows: Any, floor: Any, constants: Any, work: Any, out: Any) -> Any:
    """Find the posteriors of the regions `rows` at the levels in `out`; constants.floor is 0."""
    n, samples = constants.changes.shape[0], x.shape[1]
    for first in range(0, rows.shape[0], BLOCK):
        _gather(x, rows, first, constants, work)
        for j in range(BLOCK):
            work.level[j] = out.level[rows[min(first + j, rows.shape[0] - 1)]]
            work.rate[j] = 0.0
        _set_anchor(1, False, constants, work)
        for k in range(samples):
            for i in range(n):
                for j in range(BLOCK):  # R floors before it weighs
                    floored = _larger(work.density[k, i * BLOCK + j], floor)
                    work.density[k, i * BLOCK + j] = floored * constants.weights[k, i]
        work.factor[:] = 1.0
        _finish(rows, first, False, constants, work, out)
        for i in range(n):
            for j in range(BLOCK):
                work.alpha[i, j] = work.total[0, i * BLOCK + j] / samples
        _put_levels(rows, first, work, out)


@jit_no_alloc
def _larger(a: Any, b: Any) -> Any:
    return max(b, a)


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
            work.greatest[j] = _larger(count, work.greatest[j])


@jit_no_alloc
def _sum_samples(values: Any, constants: Any, work: Any) -> Any:
    """Add [samples, BLOCK] values into work.sums[0]."""
    for member in range(constants.team):
        work.sums[member] = 0.0
        for k in range(member, values.shape[0], constants.team):
            for j in range(BLOCK):
                work.sums[member, j] += values[k, j]
    _add_members(work.sums)


@jit_no_alloc
def _add_members(sums: Any) -> Any:
    """Add the sums of all members into those of the first: neighbours, neighbouring pairs, ..."""
    step = 1
    while step < sums.shape[0]:
        for member in range(0, sums.shape[0], 2 * step):
            for j in range(sums.shape[1]):
                sums[member, j] += sums[member + step, j]
        step *= 2


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
            work.level[j] = _larger(work.sums[0, j] / samples, 1.0)


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


# ---- a cycle ----------------------------------------------------------------------------------


@jit_no_alloc
def _set_anchor(cycle: Any, is_moved: Any, constants: Any, work: Any) -> Any:
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
def _set_factors(is_moved: Any, constants: Any, work: Any) -> Any:
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
def _add_posteriors(is_moved: Any, constants: Any, work: Any) -> Any:
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
                _add_expected_of_sample(k, member, constants, work)
    _add_members(work.total)


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
    return _larger(density[i * BLOCK + j] * factor[i * BLOCK + j], floor[j])


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
def _add_expected_of_sample(k: Any, member: Any, constants: Any, work: Any) -> Any:
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
def _add_expected(constants: Any, work: Any) -> Any:
    """Add up the counts that the totals let expect at level 1, into work.sums[0]."""
    if constants.is_unit:
        for member in range(constants.team):
            work.sums[member] = 0.0
            for i in range(member, constants.changes.shape[0], constants.team):
                change = constants.changes[i]
                for j in range(BLOCK):
                    here = fma(work.total[0, i * BLOCK + j], change, work.sums[member, j])
                    work.sums[member, j] = here
    _add_members(work.sums)


@jit_no_alloc
def _renew_weights(constants: Any, work: Any) -> Any:
    """Set the weights by the totals of the posteriors."""
    for i in range(constants.changes.shape[0]):
        prior = constants.prior[i]
        for j in range(BLOCK):
            work.alpha[i, j] = fma(work.total[0, i * BLOCK + j], constants.sample_weight, prior)


# ---- the last cycle ---------------------------------------------------------------------------


@jit_no_alloc
def _divide_weights(constants: Any, work: Any) -> Any:
    """Set the weights as `_renew_weights` does, by true quotients."""
    samples = float(constants.cov.shape[0])
    for i in range(constants.changes.shape[0]):
        prior = constants.impact if i == constants.main else 0.0
        for j in range(BLOCK):
            mean = work.total[0, i * BLOCK + j] / samples
            work.alpha[i, j] = (prior + mean) / (1.0 + constants.impact)


@jit_no_alloc
def _finish(rows: Any, first: Any, is_moved: Any, constants: Any, work: Any, out: Any) -> Any:
    """Add posteriors as `_add_posteriors` does, and put each sample's answers into `out`."""
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
                _add_expected_of_sample(k, member, constants, work)
            _measure(member, constants, work)
            _put_sample(rows, first, k, work, out)
    _add_members(work.total)
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
            weighted[i * BLOCK + j] = here = _larger(here, floor)
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
    """Add the members as `_add_members` does, with what their roundings leave out."""
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
def _put_levels(rows: Any, first: Any, work: Any, out: Any) -> Any:
    """Put levels and weights into `out`."""
    for j in range(min(BLOCK, rows.shape[0] - first)):
        row = rows[first + j]
        out.level[row] = work.level[j]
        for i in range(out.alpha.shape[1]):
            out.alpha[row, i] = work.alpha[i, j]
