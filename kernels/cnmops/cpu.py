"""The model in Numba, in several threads, without the GIL.

A block of regions at a time, in loops that become vector instructions. Densities at a level are
taken from those at an anchor, as `model.cu` says. The last cycle's numbers are the answers, R's to
the bit wherever R's are exact: densities are brought to the floor, not the floor to them, a
posterior is a true quotient, sums over classes go from the first to the last, and I/NI is a mean of
sums with 64 bits. So a certain class has posterior 1, and signed I/NI then is the logarithm of its
fold change. Earlier cycles take shorter ways.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.cnmops.numbers import LEAST_MOST, REACH, WARP, lanes_of, log2, numbers_of
from multigpu.kernels.cnmops.types import (
    LEAST_LEVEL,
    LEAST_REFERENCE,
    Floats,
    Model,
    Result,
    checked,
    checked_level,
    ones_or,
)
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import fma
from multigpu.kernels.compiled.parallel import over_spans
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

LEAST_SPAN = 1024  # regions, for a thread
BLOCK = 128  # regions


def model(
    counts: NDArray[Any],
    cov: Floats,
    options: Model,
    scale: Floats | None = None,
    threads: int = 1,
    level: Floats | None = None,
) -> Result:
    """Do what `reference.model` does or, where levels are given, `reference.model_against`."""
    checked(counts, cov, scale, options)
    x = np.ascontiguousarray(counts, np.int32 if counts.dtype == np.int32 else np.float64)
    (regions, samples), coverages = x.shape, np.array(cov, np.float64)
    team, is_given = lanes_of(samples, options.classes), level is not None
    weights = np.ones((samples, options.classes))
    constants = Constants(
        *numbers_of(samples, options),
        is_level_given=is_given,
        weights=np.ascontiguousarray(options.weights(samples).T) if is_given else weights,
        least_density=options.floor if is_given else 0.0,
        floor=0.0 if is_given else options.floor,
        scale=ones_or(scale, samples),
        cov=coverages,
        log_cov=log2(coverages),
        ones=np.ones(samples),
        is_unit=bool((coverages == 1).all()),
        first_cycle=1 if is_given else 0,
        cycles=2 if is_given else options.cycles,
        least=float(options.min_read_count),
        classes=tuple(range(options.classes)),
    )
    if is_given:  # posteriors alone make the weights
        constants = constants._replace(start=np.ones(options.classes), impact=0.0)
    # Answers of regions that are not covered.
    out = Out(
        level=np.zeros(regions) if level is None else np.array(level, np.float64),
        alpha=np.zeros((regions, options.classes)),
        ini=np.zeros(regions),
        sini=np.zeros((samples, regions)),
        cn_index=np.full((samples, regions), options.main, np.int8),
        posterior=np.zeros((regions if options.posterior else 0, options.classes, samples)),
    )
    out.alpha[:, options.main] = 1
    out.posterior[:, options.main] = 1

    def work(begin: int, stop: int) -> None:
        estimate(x, begin, stop, constants, work_for(samples, options.classes, team), out)

    over_spans(work, regions, threads, LEAST_SPAN)
    return Result(
        level=out.level,
        alpha=out.alpha,
        ini=out.ini,
        sini=out.sini.T,
        cn_index=out.cn_index.T,
        posterior=out.posterior if options.posterior else None,
        fold_changes=options.changes(),
    )


def model_against(
    counts: NDArray[Any],
    level: Floats,
    cov: Floats,
    options: Model,
    scale: Floats | None = None,
    threads: int = 1,
) -> Result:
    """Do what `reference.model_against` does."""
    return model(counts, cov, options, scale, threads, checked_level(level, counts))


def level_of_controls(
    controls: NDArray[Any], scale: Floats | None = None, cov: Floats | None = None
) -> Floats:
    """Return what `reference.level_of_controls` does; counts are added in order, as on GPUs."""
    total, samples = np.zeros(len(controls)), controls.shape[1]
    factors, coverages = ones_or(scale, samples), ones_or(cov, samples)
    for k in range(samples):
        total += controls[:, k] * factors[k] / coverages[k]
    return np.asarray(np.maximum(total / samples, LEAST_REFERENCE))


class Constants(NamedTuple):
    """Numbers that are the same for all regions: the model's and the samples'."""

    changes: Floats  # [classes], see `ModelNumbers`
    squares: Floats
    falls: Floats
    bits: Floats
    start: Floats
    prior: Floats
    sample_weight: float
    widest: float
    main: int
    impact: float
    is_level_given: bool  # and alpha is 1
    weights: Floats  # [samples, classes] where levels are given, else 1
    least_density: float  # before it is weighted
    floor: float  # of weighted densities
    scale: Floats  # [samples]
    cov: Floats
    log_cov: Floats  # to base 2
    ones: Floats
    is_unit: bool  # all coverages are 1
    first_cycle: int
    cycles: int
    least: float  # a region needs a count above it
    # 0, 1, …: the type says how many, so the compiler unrolls loops over classes and makes vector
    # instructions of the loop over regions around them.
    classes: tuple[int, ...]


class Work(NamedTuple):
    """Arrays for a block of regions: of row i, region j is at i * BLOCK + j."""

    density: Floats  # [samples, rows: classes] at the anchor
    x: Floats  # [rows: samples] counts
    constant: Floats  # [rows: samples] log2(x!) - x log2(cov); at first counts over coverages
    total: Floats  # [team, rows: classes, expected counts] sums over samples; [0] those of all
    sums: Floats  # [team, one row] other sums, likewise
    informative: Floats  # [team, one row] sums of I/NI
    left_out: Floats  # [team, one row] what rounding left out of them
    answers: Floats  # [rows: posteriors of the classes, signed I/NI, likeliest class] of a sample
    alpha: Floats  # [rows: classes]
    factor: Floats  # [rows: classes] weight, and the way from the anchor to the level
    rate: Floats  # bits that the floor moves for each read of a sample
    level: Floats
    anchor: Floats
    log_anchor: Floats  # to base 2
    most: Floats  # greatest count, or a given level
    reads: Floats  # sum of the counts
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
    shapes = {
        "density": (samples, classes * BLOCK), "total": (team, (classes + 1) * BLOCK),
        "x": (samples * BLOCK,), "constant": (samples * BLOCK,), "sorted": (samples,),
        "sums": (team, BLOCK), "informative": (team, BLOCK), "left_out": (team, BLOCK),
        "answers": ((classes + 2) * BLOCK,), "alpha": (classes * BLOCK,),
        "factor": (classes * BLOCK,),
    }  # fmt: skip
    return Work(*(np.empty(shapes.get(name, (BLOCK,))) for name in Work._fields))


@jit_no_alloc
def estimate(x: Any, begin: Any, stop: Any, constants: Any, work: Any, out: Any) -> Any:
    """Find the answers of regions [begin, stop) that have a count, or given level, above `least`.

    Those of the others are left as they are.
    """
    for first in range(begin, stop, BLOCK):
        if not _gather(x, first, stop, constants, work, out):
            continue
        for cycle in range(constants.first_cycle, constants.cycles):
            is_last = cycle == constants.cycles - 1
            is_moved = constants.is_unit and cycle > 1
            _set_anchor(cycle, is_moved, constants, work)
            if is_last:
                _finish(first, stop, constants, work, out)
            else:
                _add_posteriors(constants, work)
            _renew(is_last, constants, work)
        for j in range(min(BLOCK, stop - first)):
            if work.most[j] > constants.least:
                out.level[first + j] = work.level[j]
                for i in range(out.alpha.shape[1]):
                    out.alpha[first + j, i] = work.alpha[i * BLOCK + j]


@jit_no_alloc
def _gather(x: Any, first: Any, stop: Any, constants: Any, work: Any, out: Any) -> Any:
    """Gather counts, the last region's repeated, and set what cycles start from.

    Returns whether there is a region to model.
    """
    samples, is_any = x.shape[1], False
    for j in range(BLOCK):
        row = min(first + j, stop - 1)
        work.level[j] = most = out.level[row]
        for k in range(samples):
            work.x[k * BLOCK + j] = count = x[row, k] * constants.scale[k]
            most = max(most, count)
        work.most[j] = most
        is_any |= most > constants.least
    if not is_any:
        return False
    if not constants.is_level_given:
        _add_rows(work.x, constants.ones, work.sums)
        for j in range(BLOCK):
            work.reads[j] = work.sums[0, j]
            for k in range(samples):
                over_cov = work.x[k * BLOCK + j] / constants.cov[k]
                work.sorted[k] = work.constant[k * BLOCK + j] = over_cov
            low, high = middle_of(work.sorted, samples)
            work.level[j] = (low + high) / 2
        _add_rows(work.constant, constants.ones, work.sums)
        for j in range(BLOCK):
            if work.level[j] < LEAST_LEVEL:
                work.level[j] = max(1.0, work.sums[0, j] / samples)
    for i in range(constants.start.shape[0]):
        work.alpha[i * BLOCK : (i + 1) * BLOCK] = constants.start[i]
    for k in range(samples):
        for j in range(BLOCK):
            count = work.x[k * BLOCK + j]
            work.constant[k * BLOCK + j] = log2_factorial(count) - count * constants.log_cov[k]
    return True


@jit_no_alloc
def _set_anchor(cycle: Any, is_moved: Any, constants: Any, work: Any) -> Any:
    """Set factors and rates; bring anchors to levels that are too far off, or not `is_moved`."""
    is_far = not is_moved
    for j in range(BLOCK):
        level, anchor = work.level[j], work.anchor[j]
        least = min(anchor, level)
        # |log(level / anchor)| is no more than |level - anchor| / least.
        most = max(LEAST_MOST, work.most[j])
        reach = abs(level - anchor) * fma(constants.widest, least, most)
        if not is_moved or reach > REACH * least:
            work.anchor[j] = level
            is_far = True
    if is_far:
        # In the first cycle fold changes count twice.
        changes, power = (constants.squares, 2.0) if cycle == 0 else (constants.changes, 1.0)
        for j in range(BLOCK):
            work.log_anchor[j] = log2_of(work.anchor[j])
        for k in range(constants.cov.shape[0]):
            for i in range(changes.shape[0]):
                cov, weight = constants.cov[k], constants.weights[k, i]
                change, log_change = changes[i], power * constants.bits[i]
                for j in range(BLOCK):
                    mean = work.anchor[j] * LOG2E * cov
                    rest = fma(-mean, change, -work.constant[k * BLOCK + j])
                    exponent = fma(work.x[k * BLOCK + j], work.log_anchor[j] + log_change, rest)
                    here = max(constants.least_density, exp2_or_little(exponent))
                    work.density[k, i * BLOCK + j] = here * weight
    for j in range(BLOCK):
        work.rate[j] = -log2_of_ratio(work.level[j], work.anchor[j]) if is_moved else 0.0
    for i in range(constants.falls.shape[0]):
        for j in range(BLOCK):
            to_level = exp2_of((work.anchor[j] - work.level[j]) * constants.falls[i])
            work.factor[i * BLOCK + j] = work.alpha[i * BLOCK + j] * to_level


@jit_no_alloc
def _add_posteriors(constants: Any, work: Any) -> Any:
    """Add the posteriors of all samples and, with coverages, the counts that they let expect."""
    n, team, factor = len(constants.classes), work.total.shape[0], work.factor
    for member in range(team):
        total = work.total[member]
        total[:] = 0.0
        for k in range(member, constants.cov.shape[0], team):
            density, x = work.density[k], work.x[k * BLOCK : (k + 1) * BLOCK]
            for j in range(BLOCK):
                floor = constants.floor * exp2_of(x[j] * work.rate[j])
                even = odd = expected = 0.0
                for i in range(n):
                    here = max(floor, density[i * BLOCK + j] * factor[i * BLOCK + j])
                    even, odd = odd, even + here  # in turns
                    expected = fma(here, constants.changes[i], expected)
                share = reciprocal(even + odd)
                for i in range(n):
                    here = max(floor, density[i * BLOCK + j] * factor[i * BLOCK + j])
                    total[i * BLOCK + j] = fma(here, share, total[i * BLOCK + j])
                expected = fma(expected * share, constants.cov[k], total[n * BLOCK + j])
                total[n * BLOCK + j] = expected
    _add_members(work.total)


@jit_no_alloc
def _finish(first: Any, stop: Any, constants: Any, work: Any, out: Any) -> Any:
    """Add posteriors as `_add_posteriors` does, and put each sample's answers into `out`."""
    n, team, factor, bits = len(constants.classes), work.total.shape[0], work.factor, constants.bits
    answers = work.answers
    for member in range(team):
        total, informative = work.total[member], work.informative[member]
        left_out = work.left_out[member]
        total[:] = informative[:] = left_out[:] = 0.0
        for k in range(member, constants.cov.shape[0], team):
            density, x = work.density[k], work.x[k * BLOCK : (k + 1) * BLOCK]
            for j in range(BLOCK):
                to_level = exp2_of(0.0 - x[j] * work.rate[j])
                whole = lost = expected = 0.0
                for i in range(n):
                    here = density[i * BLOCK + j] * factor[i * BLOCK + j] * to_level
                    answers[i * BLOCK + j] = here = max(constants.floor, here)
                    whole, rest = exact_sum(whole, here)
                    lost += rest
                # R adds in 80 bits where levels are given.
                whole += in_80_bits(whole, lost) if constants.is_level_given else 0.0
                for i in range(n):
                    answers[i * BLOCK + j] = here = answers[i * BLOCK + j] / whole
                    total[i * BLOCK + j] += here
                    expected = fma(here, constants.changes[i], expected)
                expected = fma(expected, constants.cov[k], total[n * BLOCK + j])
                total[n * BLOCK + j] = expected
            # A loop of its own: with more in one, the compiler would not unroll the inner loops.
            for j in range(BLOCK):
                signed = unsigned = likeliest = 0.0
                greatest = -1.0
                for i in range(n):
                    here = answers[i * BLOCK + j]
                    signed += here * bits[i]
                    unsigned += here * abs(bits[i])
                    likeliest = float(i) if here > greatest else likeliest
                    greatest = max(greatest, here)
                answers[n * BLOCK + j], answers[(n + 1) * BLOCK + j] = signed, likeliest
                informative[j], rest = exact_sum(informative[j], unsigned)
                left_out[j] += rest
            for j in range(min(BLOCK, stop - first)):
                if work.most[j] > constants.least:
                    out.sini[k, first + j] = answers[n * BLOCK + j]
                    out.cn_index[k, first + j] = np.int8(answers[(n + 1) * BLOCK + j])
                    for i in range(n if out.posterior.shape[0] else 0):
                        out.posterior[first + j, i, k] = answers[i * BLOCK + j]
    _add_members(work.total)
    step = 1  # as in `_add_members`
    while step < team:
        for member in range(0, team, 2 * step):
            for j in range(BLOCK):
                sums, left_out = work.informative[:, j], work.left_out[:, j]
                sums[member], rest = exact_sum(sums[member], sums[member + step])
                left_out[member] = left_out[member] + left_out[member + step] + rest
        step *= 2
    for j in range(min(BLOCK, stop - first)):
        if work.most[j] > constants.least:
            total, left_out = work.informative[0, j], work.left_out[0, j]
            out.ini[first + j] = exact_mean(total, left_out, float(constants.cov.shape[0]))


@jit_no_alloc
def _renew(is_last: Any, constants: Any, work: Any) -> Any:
    """Set levels and weights by the totals, the last ones by true quotients."""
    n, samples, impact = len(constants.classes), constants.cov.shape[0], constants.impact
    if not constants.is_level_given:
        # Each warp of a block adds classes on its own.
        _add_rows(work.total[0], constants.changes, work.sums[:WARP])
        for j in range(BLOCK):
            expected = work.sums[0, j] if constants.is_unit else work.total[0, n * BLOCK + j]
            reads = work.reads[j]
            work.level[j] = reads / expected if is_last else reads * reciprocal(expected)
    for i in range(n):
        prior = constants.prior[i]
        if is_last:
            prior = impact if i == constants.main else 0.0
        for j in range(i * BLOCK, (i + 1) * BLOCK):
            total = work.total[0, j]
            renewed = fma(total, constants.sample_weight, prior)
            work.alpha[j] = (prior + total / samples) / (1.0 + impact) if is_last else renewed


@jit_no_alloc
def _add_rows(rows: Any, factors: Any, sums: Any) -> Any:
    """Add rows times factors, as a team does, into sums[0]."""
    for member in range(sums.shape[0]):
        sums[member] = 0.0
        for i in range(member, factors.shape[0], sums.shape[0]):
            for j in range(BLOCK):
                sums[member, j] = fma(rows[i * BLOCK + j], factors[i], sums[member, j])
    _add_members(sums)


@jit_no_alloc
def _add_members(sums: Any) -> Any:
    """Add the sums of all members into those of the first: neighbours, neighbouring pairs, ...."""
    step = 1
    while step < sums.shape[0]:
        for member in range(0, sums.shape[0], 2 * step):
            for j in range(sums.shape[1]):
                sums[member, j] += sums[member + step, j]
        step *= 2
