"""The cycles of the model in Numba, a region at a time; `numbers` says in which order sums add.

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

from multigpu.kernels.cnmops.numbers import LEAST_MOST, REACH, Numbers
from multigpu.kernels.cnmops.types import LEAST_LEVEL, Floats
from multigpu.kernels.compiled.jit import inlined, lean
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
from multigpu.kernels.numerics.medians import middle_of


class Constants(NamedTuple):
    """Numbers that are the same for all regions."""

    model: Numbers
    is_level_given: bool
    weights: Floats  # [samples, classes], where levels are given
    scale: Floats  # [samples]
    cov: Floats
    log_cov: Floats  # to base 2
    is_unit: bool  # all coverages are 1
    team: int  # members of a sum, see `numbers`
    cycles: int
    floor: float


class Work(NamedTuple):
    """Arrays for one region; float64."""

    x: Floats  # [samples] counts
    over_cov: Floats  # [samples] counts over coverages
    constant: Floats  # [samples] log2(x!) - x log2(cov)
    floor: Floats  # [samples] under the weighted densities
    density: Floats  # [samples, classes] at the anchor
    alpha: Floats  # [classes]
    factor: Floats  # [classes] weight, and the way from the anchor to the level
    weighted: Floats  # [classes] of one sample: weighted densities, in the last cycle posteriors
    total: Floats  # [team, classes] sums of posteriors; in the end [0] has those of all samples
    sums: Floats  # [team] other sums
    informative: Floats  # [team] sums of I/NI
    left_out: Floats  # [team] what rounding left out of them


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
    arrays = [
        *np.empty((4, samples)),
        np.empty((samples, classes)),
        *np.empty((3, classes)),
        np.empty((team, classes)),
        *np.empty((3, team)),
    ]
    return Work(*arrays)


@lean
def estimate(x: Any, rows: Any, constants: Any, work: Any, out: Any) -> Any:
    """Estimate levels and classes of the regions `rows`; the others are left as they are."""
    model = constants.model
    for row in rows:
        greatest = _gather(x[row], constants, work)
        reads = _sum(work.x, work.sums)
        level = anchor = _start(constants, work)
        for cycle in range(constants.cycles):
            is_kept = constants.is_unit and cycle > 1
            if not is_kept or _is_far(level, anchor, greatest, model.widest):
                anchor = level
                _set_densities(anchor, cycle == 0, constants, work)
            _set_factors(work.alpha, anchor - level, model.falls, work.factor)
            rate = -log2_of_ratio(level, anchor)
            if cycle < constants.cycles - 1:
                level = reads * reciprocal(_add_posteriors(rate, constants, work))
                for i in range(work.alpha.shape[0]):
                    work.alpha[i] = fma(work.total[0, i], model.sample_weight, model.prior[i])
            else:
                out.level[row] = reads / _finish(row, rate, constants, work, out)
                for i in range(work.alpha.shape[0]):
                    prior = model.impact if i == model.main else 0.0
                    mean = work.total[0, i] / work.x.shape[0]
                    out.alpha[row, i] = (prior + mean) / (1.0 + model.impact)


@lean
def compare(x: Any, rows: Any, floor: Any, constants: Any, work: Any, out: Any) -> Any:
    """Find the posteriors of the regions `rows` at the levels in `out`; constants.floor is 0."""
    samples, n = work.density.shape
    work.factor[:] = 1.0
    for row in rows:
        _gather(x[row], constants, work)
        _set_densities(out.level[row], False, constants, work)
        for k in range(samples):
            for i in range(n):  # R floors before it weighs
                work.density[k, i] = max(work.density[k, i], floor) * constants.weights[k, i]
        _finish(row, 0.0, constants, work, out)
        for i in range(n):
            out.alpha[row, i] = work.total[0, i] / samples


# ---- before the first cycle -------------------------------------------------------------------


@lean
def _gather(counts: Any, constants: Any, work: Any) -> Any:
    """Set the counts of a region and what they determine; return the greatest."""
    greatest = LEAST_MOST
    for k in range(counts.shape[0]):
        count = counts[k] * constants.scale[k]
        work.x[k] = count
        work.constant[k] = log2_factorial(count) - count * constants.log_cov[k]
        greatest = max(greatest, count)
    return greatest


@lean
def _start(constants: Any, work: Any) -> Any:
    """Set the first weights; return the first level: a median, or a mean, 1 or more."""
    for i in range(work.alpha.shape[0]):
        work.alpha[i] = constants.model.start[i]
    samples = work.x.shape[0]
    for k in range(samples):
        work.over_cov[k] = work.x[k] / constants.cov[k]
    mean = _sum(work.over_cov, work.sums) / samples
    below, above = middle_of(work.over_cov, samples)
    level = (below + above) / 2
    return level if level >= LEAST_LEVEL else max(mean, 1.0)


# ---- a cycle ----------------------------------------------------------------------------------


@lean
def _is_far(level: Any, anchor: Any, greatest: Any, widest: Any) -> Any:
    """Whether densities at the level may not be taken from those at the anchor."""
    distance, least = abs(level - anchor), min(anchor, level)
    # |log(level / anchor)| is no more than distance / least.
    return distance * fma(widest, least, greatest) > REACH * least


@lean
def _set_densities(level: Any, is_first: Any, constants: Any, work: Any) -> Any:
    """Set the densities at the rates level * changes; in the first cycle these count twice."""
    changes = constants.model.squares if is_first else constants.model.changes
    power = 2.0 if is_first else 1.0
    log_level = log2_of(level)
    for k in range(work.density.shape[0]):
        mean = level * LOG2E * constants.cov[k]
        for i in range(work.density.shape[1]):
            rest = fma(-mean, changes[i], -work.constant[k])
            exponent = fma(work.x[k], log_level + power * constants.model.bits[i], rest)
            work.density[k, i] = exp2_or_little(exponent)


@lean
def _set_factors(alpha: Any, fall: Any, falls: Any, factor: Any) -> Any:
    """Set what leads from densities at the anchor to weighted ones at a level lower by `fall`."""
    for i in range(factor.shape[0]):
        factor[i] = alpha[i] * exp2_of(fall * falls[i])


@inlined
def _add_posteriors(rate: Any, constants: Any, work: Any) -> Any:
    """Add the posteriors of all samples; return the counts that they let expect at level 1.

    A sample's floor moves by `rate` bits for each of its reads.
    """
    samples, n = work.density.shape
    weighted = work.weighted
    for k in range(samples):
        work.floor[k] = constants.floor * exp2_of(work.x[k] * rate)
    for member in range(constants.team):
        total, expected = work.total[member], 0.0
        for i in range(n):
            total[i] = 0.0
        for k in range(member, samples, constants.team):
            density, floor = work.density[k], work.floor[k]
            even = odd = 0.0
            for i in range(n):
                weighted[i] = max(density[i] * work.factor[i], floor)
            for i in range(0, n, 2):
                even += weighted[i]
            for i in range(1, n, 2):
                odd += weighted[i]
            share = reciprocal(even + odd)
            for i in range(n):
                total[i] = fma(weighted[i], share, total[i])
            if not constants.is_unit:
                here = _expected(weighted, constants.model.changes) * share
                expected = fma(here, constants.cov[k], expected)
        work.sums[member] = expected
    return _all_expected(constants, work)


@lean
def _expected(weighted: Any, changes: Any) -> Any:
    """Return the counts that a sample's weighted densities let expect, but for their sum."""
    expected = 0.0
    for i in range(weighted.shape[0]):
        expected = fma(weighted[i], changes[i], expected)
    return expected


@inlined
def _all_expected(constants: Any, work: Any) -> Any:
    """Add the totals of all members into those of the first; return the counts they let expect."""
    total, team, n = work.total, work.total.shape[0], work.total.shape[1]
    step = 1
    while step < team:
        for member in range(0, team, 2 * step):
            for i in range(n):
                total[member, i] += total[member + step, i]
        step *= 2
    if constants.is_unit:
        for member in range(team):
            work.sums[member] = 0.0
            for i in range(member, n, team):
                work.sums[member] = fma(total[0, i], constants.model.changes[i], work.sums[member])
    return _sum_members(work.sums)


@lean
def _sum(values: Any, sums: Any) -> Any:
    """Return the sum of values of samples."""
    for member in range(sums.shape[0]):
        sums[member] = 0.0
        for k in range(member, values.shape[0], sums.shape[0]):
            sums[member] += values[k]
    return _sum_members(sums)


@lean
def _sum_members(sums: Any) -> Any:
    """Return the sum of all members': neighbours, neighbouring pairs, ...; they are used up."""
    step = 1
    while step < sums.shape[0]:
        for member in range(0, sums.shape[0], 2 * step):
            sums[member] += sums[member + step]
        step *= 2
    return sums[0]


# ---- the last cycle ---------------------------------------------------------------------------


@lean
def _finish(row: Any, rate: Any, constants: Any, work: Any, out: Any) -> Any:
    """Put each sample's answers into `out`; return what `_add_posteriors` does."""
    samples, n = work.density.shape
    for member in range(constants.team):
        total, expected = work.total[member], 0.0
        informative = left_out = 0.0
        for i in range(n):
            total[i] = 0.0
        for k in range(member, samples, constants.team):
            to_level = exp2_of(0.0 - work.x[k] * rate)
            _divide(work.density[k], to_level, constants, work)
            for i in range(n):
                total[i] += work.weighted[i]
            here = _expected(work.weighted, constants.model.changes)
            expected = fma(here, constants.cov[k], expected)
            here = _put_sample(row, k, work.weighted, constants.model.bits, out)
            informative, rest = exact_sum(informative, here)
            left_out += rest
        work.sums[member] = expected
        work.informative[member], work.left_out[member] = informative, left_out
    _sum_exactly(work.informative, work.left_out)
    out.ini[row] = exact_mean(work.informative[0], work.left_out[0], float(samples))
    return _all_expected(constants, work)


@lean
def _divide(density: Any, to_level: Any, constants: Any, work: Any) -> Any:
    """Set a sample's posteriors, as R adds and divides."""
    total = left_out = 0.0
    for i in range(work.weighted.shape[0]):
        here = max(density[i] * work.factor[i] * to_level, constants.floor)
        total, rest = exact_sum(total, here)
        left_out += rest
        work.weighted[i] = here
    if constants.is_level_given:
        total += in_80_bits(total, left_out)
    for i in range(work.weighted.shape[0]):
        work.weighted[i] /= total


@lean
def _put_sample(row: Any, k: Any, posteriors: Any, bits: Any, out: Any) -> Any:
    """Put the answers of sample k into `out`; return its I/NI."""
    signed = informative = 0.0
    likeliest = 0
    for i in range(bits.shape[0]):
        signed += posteriors[i] * bits[i]
        informative += posteriors[i] * abs(bits[i])
        if posteriors[i] > posteriors[likeliest]:
            likeliest = i
        if out.posterior.shape[0]:
            out.posterior[row, i, k] = posteriors[i]
    out.sini[k, row] = signed
    out.cn_index[k, row] = likeliest
    return informative


@lean
def _sum_exactly(sums: Any, left_out: Any) -> Any:
    """Add the members as `_sum_members` does, with what their roundings leave out."""
    step = 1
    while step < sums.shape[0]:
        for member in range(0, sums.shape[0], 2 * step):
            sums[member], rest = exact_sum(sums[member], sums[member + step])
            left_out[member] = left_out[member] + left_out[member + step] + rest
        step *= 2
