"""The cycles of the model in Numba: eight regions at a time, one in each element of a vector.

The density of class i at level L is taken from that at another level, the anchor:

    poisson(x; L I) = poisson(x; anchor I) * (L / anchor)^x * exp(-(L - anchor) I)

so a cycle takes an exponential for each sample and each class, and not for each pair of them. The
factor of the sample is the same for all classes and cancels in the posterior; the floor under the
density is divided by it instead, and so remains what it is. When level and anchor have parted so
far that a number might leave the range of float64, the level becomes the anchor. With coverages
other than 1 the factors do not part, and the level is the anchor in every cycle.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.cnmops.types import LEAST_LEVEL, REACH, Floats
from kernels.jit import lean
from kernels.simd import (
    LANES,
    absolute,
    any_above,
    exp,
    fused,
    greater,
    load,
    log,
    log_factorial,
    splat,
    store,
    where_above,
)


class Constants(NamedTuple):
    """Of all regions; float64."""

    changes: Floats  # [classes]
    squares: Floats
    log_changes: Floats
    bits: Floats  # log2 of the changes
    start: Floats  # [classes] weights in the first cycle
    prior: Floats  # [classes]; with given levels [samples * classes], weights of each case
    prior_sum: float
    widest: float  # the greatest change
    scale: Floats  # [samples]
    cov: Floats
    log_cov: Floats
    unit: bool  # all coverages are 1
    cycles: int
    least: float  # no count above it: the region tells nothing
    floor: float


class Work(NamedTuple):
    """Of eight regions; float64, flat, eight values each."""

    held: Floats  # [samples, classes] densities at the anchor
    x: Floats  # [samples] counts
    constant: Floats  # [samples] log(x!) - x log(cov)
    weighted: Floats  # [classes]
    total: Floats  # [classes] posteriors of all samples
    alpha: Floats  # [classes]
    factor: Floats  # [classes] weight, and the way from the anchor to the level
    level: Floats
    sorted: Floats  # [samples] of one region


class Out(NamedTuple):
    """Arrays of `Result`, samples first; `posterior` has no rows where it is not wanted."""

    level: Floats
    alpha: Floats
    ini: Floats
    sini: Floats
    cn_index: NDArray[np.int8]
    posterior: Floats


@lean
def find_told(x: Any, scale: Any, least: Any, out: Any) -> Any:
    for row in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[row] |= x[row, k] * scale[k] > least


@lean
def estimate(x: Any, rows: Any, constants: Any, work: Any, out: Any) -> Any:
    """The expectation maximisation of the regions `rows`; the others are left as they are."""
    for first in range(0, rows.shape[0], LANES):
        _gather(x, rows, first, constants, work)
        level = _start(constants, work)
        anchor = level
        _anchor(anchor, constants.squares, 2.0, constants, work)
        for cycle in range(constants.cycles):
            if cycle == 1:
                anchor = level
                _anchor(anchor, constants.changes, 1.0, constants, work)
            elif cycle > 1:
                anchor = _kept(anchor, level, constants, work)
            log_ratio = _set_out(level, anchor, constants, work)
            if cycle < constants.cycles - 1:
                expected = _add_posteriors(log_ratio, constants, work)
            else:
                expected = _finish(rows, first, log_ratio, constants, work, out)
            level = _renew(expected, constants, work)
        store(work.level, 0, level)
        _put(rows, first, work, out)


@lean
def _gather(x: Any, rows: Any, first: Any, constants: Any, work: Any) -> Any:
    """Counts of eight regions, the last one repeated, and what else of them does not change."""
    for lane in range(LANES):
        row = rows[min(first + lane, rows.shape[0] - 1)]
        for k in range(x.shape[1]):
            work.x[k * LANES + lane] = x[row, k] * constants.scale[k]
    for k in range(x.shape[1]):
        here = load(work.x, k * LANES)
        store(work.constant, k * LANES, log_factorial(here) - here * splat(constants.log_cov[k]))


@lean
def _start(constants: Any, work: Any) -> Any:
    """Weights and level before the first cycle."""
    for i in range(constants.start.shape[0]):
        store(work.alpha, i * LANES, splat(constants.start[i]))
    for lane in range(LANES):
        total = 0.0
        for k in range(work.sorted.shape[0]):
            work.sorted[k] = work.x[k * LANES + lane] / constants.cov[k]
            total += work.x[k * LANES + lane]
        level = _median(work.sorted)
        if level < LEAST_LEVEL:
            level = max(total / work.sorted.shape[0], 1.0)
        work.level[lane] = level
    return load(work.level, 0)


@lean
def _median(values: Any) -> Any:
    """Of at least one value; they are put into another order."""
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


@lean
def _anchor(level: Any, changes: Any, power: Any, constants: Any, work: Any) -> Any:
    """The densities at the rates level * changes; `changes` are constants.changes ** power."""
    n, log_level = changes.shape[0], log(level)
    for k in range(constants.cov.shape[0]):
        here, constant = load(work.x, k * LANES), load(work.constant, k * LANES)
        mean = splat(0.0) - level * splat(constants.cov[k])
        for i in range(n):
            log_rate = log_level + splat(power * constants.log_changes[i])
            exponent = fused(here, log_rate, fused(mean, splat(changes[i]), splat(0.0) - constant))
            store(work.held, (k * n + i) * LANES, exp(exponent))


@lean
def _kept(anchor: Any, level: Any, constants: Any, work: Any) -> Any:
    """The anchor for this level: still the old one, or the level where it is too far off."""
    most, span = splat(0.0), splat(constants.widest)
    for k in range(constants.cov.shape[0]):
        most = greater(most, load(work.x, k * LANES))
    reach = most * absolute(log(level / anchor)) + span * absolute(level - anchor)
    limit = splat(REACH if constants.unit else -1.0)
    if any_above(reach, limit):
        anchor = where_above(reach, limit, level, anchor)
        _anchor(anchor, constants.changes, 1.0, constants, work)
    return anchor


@lean
def _set_out(level: Any, anchor: Any, constants: Any, work: Any) -> Any:
    """The factors of the classes at this level, totals of 0; returns log(level / anchor)."""
    back = anchor - level
    for i in range(constants.changes.shape[0]):
        way = exp(back * splat(constants.changes[i]))
        store(work.factor, i * LANES, load(work.alpha, i * LANES) * way)
        store(work.total, i * LANES, splat(0.0))
    return log(level / anchor)


@lean
def _weigh(k: Any, log_ratio: Any, constants: Any, work: Any) -> Any:
    """Sample k's weighted densities, floored, into `work`; returns 1 / their sum."""
    n = constants.changes.shape[0]
    floor = splat(constants.floor) * exp(splat(0.0) - load(work.x, k * LANES) * log_ratio)
    total = splat(0.0)
    for i in range(n):
        here = load(work.held, (k * n + i) * LANES) * load(work.factor, i * LANES)
        here = greater(here, floor)
        store(work.weighted, i * LANES, here)
        total = total + here
    return splat(1.0) / total


@lean
def _add_posteriors(log_ratio: Any, constants: Any, work: Any) -> Any:
    """Adds all samples' posteriors to the totals; returns the counts expected at level 1."""
    expected = splat(0.0)
    for k in range(constants.cov.shape[0]):
        share, of_one = _weigh(k, log_ratio, constants, work), splat(0.0)
        for i in range(constants.changes.shape[0]):
            here = load(work.weighted, i * LANES) * share
            store(work.total, i * LANES, load(work.total, i * LANES) + here)
            of_one = fused(here, splat(constants.changes[i]), of_one)
        expected = fused(of_one, splat(constants.cov[k]), expected)
    return expected


@lean
def _renew(expected: Any, constants: Any, work: Any) -> Any:
    """The weights from the totals of the posteriors; returns the level."""
    samples = constants.cov.shape[0]
    prior_sum = splat(1.0 + constants.prior_sum)
    for i in range(constants.changes.shape[0]):
        mean = load(work.total, i * LANES) / splat(float(samples))
        store(work.alpha, i * LANES, (mean + splat(constants.prior[i])) / prior_sum)
    reads = splat(0.0)
    for k in range(samples):
        reads = reads + load(work.x, k * LANES)
    return reads / expected


@lean
def _finish(rows: Any, first: Any, log_ratio: Any, constants: Any, work: Any, out: Any) -> Any:
    """As `_add_posteriors`, and what comes of each sample's posterior goes to `out`."""
    expected, informative = splat(0.0), splat(0.0)
    for k in range(constants.cov.shape[0]):
        share, of_one = _weigh(k, log_ratio, constants, work), splat(0.0)
        signed, best, likeliest = splat(0.0), splat(-1.0), splat(0.0)
        for i in range(constants.changes.shape[0]):
            here = load(work.weighted, i * LANES) * share
            store(work.weighted, i * LANES, here)
            store(work.total, i * LANES, load(work.total, i * LANES) + here)
            of_one = fused(here, splat(constants.changes[i]), of_one)
            signed = fused(here, splat(constants.bits[i]), signed)
            informative = fused(here, splat(abs(constants.bits[i])), informative)
            likeliest = where_above(here, best, splat(float(i)), likeliest)
            best = greater(here, best)
        expected = fused(of_one, splat(constants.cov[k]), expected)
        _put_sample(rows, first, k, signed, likeliest, work, out)
    store(work.factor, 0, informative / splat(float(constants.cov.shape[0])))
    for lane in range(min(LANES, rows.shape[0] - first)):
        out.ini[rows[first + lane]] = work.factor[lane]
    return expected


@lean
def _put_sample(
    rows: Any, first: Any, k: Any, signed: Any, likeliest: Any, work: Any, out: Any
) -> Any:
    """Sample k's answers; its posteriors lie in work.weighted."""
    n = out.alpha.shape[1]
    lanes = min(LANES, rows.shape[0] - first)
    store(work.level, 0, signed)
    for lane in range(lanes):
        out.sini[k, rows[first + lane]] = work.level[lane]
    store(work.level, 0, likeliest)
    for lane in range(lanes):
        out.cn_index[k, rows[first + lane]] = np.int8(work.level[lane])
    if out.posterior.shape[0]:
        for lane in range(lanes):
            for i in range(n):
                out.posterior[rows[first + lane], i, k] = work.weighted[i * LANES + lane]


@lean
def _put(rows: Any, first: Any, work: Any, out: Any) -> Any:
    """Level and weights."""
    for lane in range(min(LANES, rows.shape[0] - first)):
        row = rows[first + lane]
        out.level[row] = work.level[lane]
        for i in range(out.alpha.shape[1]):
            out.alpha[row, i] = work.alpha[i * LANES + lane]


@lean
def compare(x: Any, rows: Any, floor: Any, constants: Any, work: Any, out: Any) -> Any:
    """The posteriors of the regions `rows` at the levels in `out`; constants.floor is 0."""
    n, samples = constants.changes.shape[0], x.shape[1]
    for first in range(0, rows.shape[0], LANES):
        _gather(x, rows, first, constants, work)
        for lane in range(LANES):
            work.level[lane] = out.level[rows[min(first + lane, rows.shape[0] - 1)]]
        level = load(work.level, 0)
        _anchor(level, constants.changes, 1.0, constants, work)
        for at in range(samples * n):  # R floors before it weighs
            floored = greater(load(work.held, at * LANES), splat(floor))
            store(work.held, at * LANES, floored * splat(constants.prior[at]))
        for i in range(n):
            store(work.alpha, i * LANES, splat(1.0))
        log_ratio = _set_out(level, level, constants, work)
        _finish(rows, first, log_ratio, constants, work, out)
        for i in range(n):
            store(work.alpha, i * LANES, load(work.total, i * LANES) / splat(float(samples)))
        store(work.level, 0, level)
        _put(rows, first, work, out)
