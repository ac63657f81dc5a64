"""The cycles of the model in Numba: eight regions at a time, one in each element of a vector.

The density of class i at level L is taken from that at another level, the anchor:

    poisson(x; L I) = poisson(x; anchor I) * (L / anchor)^x * exp(-(L - anchor) I)

so a cycle takes an exponential for each sample and each class, and not for each pair of them. The
factor of the sample is the same for all classes and cancels in the posterior; the floor under the
density is divided by it instead, and so remains what it is. When level and anchor have parted so
far that a number might leave the range of float64, the level becomes the anchor. With coverages
other than 1 the factors do not part, and the level is the anchor in every cycle.

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

from multigpu.kernels.cnmops.numbers import LEAST_MOST, LOG2E, REACH
from multigpu.kernels.cnmops.types import LEAST_LEVEL, Floats
from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.compiled.simd import (
    LANES,
    absolute,
    any_above,
    exact_sum,
    exp2,
    exp2_or_little,
    fused,
    greater,
    in_80_bits,
    load,
    log2,
    log2_factorial,
    log2_of_ratio,
    reciprocal,
    splat,
    store,
    where_above,
)


class Constants(NamedTuple):
    """Of all regions; float64. Those of `Numbers`, the samples' and the model's."""

    changes: Floats  # [classes]
    squares: Floats
    falls: Floats
    bits: Floats
    start: Floats
    prior: Floats
    sample_weight: float
    widest: float
    main: int
    impact: float  # of the prior
    given: bool  # levels are
    weights: Floats  # [samples * classes], where levels are given
    scale: Floats  # [samples]
    cov: Floats
    log_cov: Floats  # to base 2
    unit: bool  # all coverages are 1
    team: int  # who adds, see `numbers`
    cycles: int
    least: float  # no count above it: the region tells nothing
    floor: float


class Work(NamedTuple):
    """Of eight regions; float64, flat, eight values each."""

    held: Floats  # [samples, classes] densities at the anchor
    x: Floats  # [samples] counts
    over_cov: Floats  # [samples] counts over coverages
    constant: Floats  # [samples] log2(x!) - x log2(cov)
    weighted: Floats  # [classes]
    total: Floats  # [team, classes] posteriors of the samples; in the end [0] has those of all
    part: Floats  # [team] another sum
    informative: Floats  # [team] a third
    left_out: Floats  # [team] what rounding left out of it
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
        most = _gather(x, rows, first, constants, work)
        reads = _sum_of_samples(work.x, constants, work)
        level = _start(constants, work)
        anchor = level
        for cycle in range(constants.cycles):
            moved = constants.unit and cycle > 1
            if moved:
                anchor = _kept(anchor, level, most, constants, work)
            else:
                anchor = level
                _anchor(anchor, cycle == 0, constants, work)
            _set_out(level, anchor, moved, constants, work)
            rate = splat(0.0)
            if moved:
                rate = rate - log2_of_ratio(level, anchor)
            if cycle < constants.cycles - 1:
                _add_posteriors(rate, moved, constants, work)
                level = reads * reciprocal(_expected(constants, work))
                _renew(constants, work)
            else:
                _finish(rows, first, rate, moved, constants, work, out)
                level = reads / _expected(constants, work)
                _divide_weights(constants, work)
        store(work.level, 0, level)
        _put(rows, first, work, out)


@lean
def _gather(x: Any, rows: Any, first: Any, constants: Any, work: Any) -> Any:
    """Counts of eight regions, the last one repeated, and what else of them does not change.

    Returns their greatest counts.
    """
    for lane in range(LANES):
        row = rows[min(first + lane, rows.shape[0] - 1)]
        for k in range(x.shape[1]):
            work.x[k * LANES + lane] = x[row, k] * constants.scale[k]
    most = splat(LEAST_MOST)
    for k in range(x.shape[1]):
        here = load(work.x, k * LANES)
        constant = log2_factorial(here) - here * splat(constants.log_cov[k])
        store(work.constant, k * LANES, constant)
        most = greater(here, most)
    return most


@lean
def _sum_of_samples(values: Any, constants: Any, work: Any) -> Any:
    for member in range(constants.team):
        reads = splat(0.0)
        for k in range(member, constants.cov.shape[0], constants.team):
            reads = reads + load(values, k * LANES)
        store(work.part, member * LANES, reads)
    return _team_sum(work.part, 1, constants.team)


@lean
def _team_sum(parts: Any, each: Any, team: Any) -> Any:
    """Sums of `each` values of all members, at the place of the first; returns the first of them.

    Neighbours are added, then neighbouring pairs, and so on.
    """
    step = 1
    while step < team:
        for member in range(0, team, 2 * step):
            here, there = member * each * LANES, (member + step) * each * LANES
            for at in range(0, each * LANES, LANES):
                store(parts, here + at, load(parts, here + at) + load(parts, there + at))
        step *= 2
    return load(parts, 0)


@lean
def _start(constants: Any, work: Any) -> Any:
    """Set the weights before the first cycle; returns the level: a median, or a mean, 1 or more."""
    for i in range(constants.start.shape[0]):
        store(work.alpha, i * LANES, splat(constants.start[i]))
    for lane in range(LANES):
        for k in range(work.sorted.shape[0]):
            work.sorted[k] = work.x[k * LANES + lane] / constants.cov[k]
            work.over_cov[k * LANES + lane] = work.sorted[k]
        work.level[lane] = _median(work.sorted)
    sum_over_cov = _sum_of_samples(work.over_cov, constants, work)
    median, mean = load(work.level, 0), sum_over_cov / splat(float(work.sorted.shape[0]))
    return where_above(splat(LEAST_LEVEL), median, greater(mean, splat(1.0)), median)


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
def _anchor(level: Any, squared: Any, constants: Any, work: Any) -> Any:
    """The densities at the rates level * changes; in the first cycle these count twice."""
    n, log_level = constants.changes.shape[0], log2(level)
    changes = constants.squares if squared else constants.changes
    power = 2.0 if squared else 1.0
    for k in range(constants.cov.shape[0]):
        here = load(work.x, k * LANES)
        rest = splat(0.0) - load(work.constant, k * LANES)
        mean = splat(0.0) - level * splat(LOG2E) * splat(constants.cov[k])
        for i in range(n):
            log_rate = log_level + splat(power * constants.bits[i])
            exponent = fused(here, log_rate, fused(mean, splat(changes[i]), rest))
            store(work.held, (k * n + i) * LANES, exp2_or_little(exponent))


@lean
def _kept(anchor: Any, level: Any, most: Any, constants: Any, work: Any) -> Any:
    """The anchor for this level: still the old one, or the level where it is too far off."""
    apart, least = absolute(level - anchor), where_above(anchor, level, level, anchor)
    # |log(level / anchor)| is no more than apart / least.
    reach = apart * fused(splat(constants.widest), least, most)
    limit = splat(REACH) * least
    if any_above(reach, limit):
        anchor = where_above(reach, limit, level, anchor)
        _anchor(anchor, False, constants, work)
    return anchor


@lean
def _set_out(level: Any, anchor: Any, moved: Any, constants: Any, work: Any) -> Any:
    """The factors of the classes at this level."""
    back = anchor - level
    for i in range(constants.changes.shape[0]):
        factor = load(work.alpha, i * LANES)
        if moved:
            factor = factor * exp2(back * splat(constants.falls[i]))
        store(work.factor, i * LANES, factor)


@lean
def _weigh(k: Any, rate: Any, moved: Any, constants: Any, work: Any) -> Any:
    """Sample k's weighted densities, floored, into `work`; returns 1 / their sum."""
    n = constants.changes.shape[0]
    floor = splat(constants.floor)
    if moved:
        floor = floor * exp2(load(work.x, k * LANES) * rate)
    even = odd = splat(0.0)
    for i in range(0, n - 1, 2):
        even = even + _weigh_class(k * n, i, floor, work)
        odd = odd + _weigh_class(k * n, i + 1, floor, work)
    if n % 2:
        even = even + _weigh_class(k * n, n - 1, floor, work)
    return reciprocal(even + odd)


@lean
def _weigh_class(begin: Any, i: Any, floor: Any, work: Any) -> Any:
    here = load(work.held, (begin + i) * LANES) * load(work.factor, i * LANES)
    here = greater(here, floor)
    store(work.weighted, i * LANES, here)
    return here


@lean
def _add_posteriors(rate: Any, moved: Any, constants: Any, work: Any) -> Any:
    """The totals of all samples' posteriors; and in `part`, with coverages, of expected counts."""
    n = constants.changes.shape[0]
    for member in range(constants.team):
        _clear(work.total, member * n, n)
        expected = splat(0.0)
        for k in range(member, constants.cov.shape[0], constants.team):
            share = _weigh(k, rate, moved, constants, work)
            expected = _add(k, member, share, expected, constants, work)
        store(work.part, member * LANES, expected)
    _team_sum(work.total, n, constants.team)


@lean
def _clear(values: Any, begin: Any, count: Any) -> Any:
    for at in range(begin, begin + count):
        store(values, at * LANES, splat(0.0))


@lean
def _add(k: Any, member: Any, share: Any, expected: Any, constants: Any, work: Any) -> Any:
    """Sample k's posteriors to its member's totals; returns `expected` with its counts."""
    n = constants.changes.shape[0]
    for i in range(n):
        at = (member * n + i) * LANES
        store(work.total, at, fused(load(work.weighted, i * LANES), share, load(work.total, at)))
    if constants.unit:
        return expected
    of_one = splat(0.0)
    for i in range(n):
        of_one = fused(load(work.weighted, i * LANES), splat(constants.changes[i]), of_one)
    return fused(of_one * share, splat(constants.cov[k]), expected)


@lean
def _expected(constants: Any, work: Any) -> Any:
    """The counts that the totals let expect at level 1."""
    if constants.unit:
        n = constants.changes.shape[0]
        for member in range(constants.team):
            expected = splat(0.0)
            for i in range(member, n, constants.team):
                change = splat(constants.changes[i])
                expected = fused(load(work.total, i * LANES), change, expected)
            store(work.part, member * LANES, expected)
    return _team_sum(work.part, 1, constants.team)


@lean
def _renew(constants: Any, work: Any) -> Any:
    """Set the weights by the totals of the posteriors."""
    for i in range(constants.changes.shape[0]):
        total, weight = load(work.total, i * LANES), splat(constants.sample_weight)
        store(work.alpha, i * LANES, fused(total, weight, splat(constants.prior[i])))


@lean
def _divide_weights(constants: Any, work: Any) -> Any:
    """Set the weights as `_renew` does, by true quotients."""
    samples = splat(float(constants.cov.shape[0]))
    for i in range(constants.changes.shape[0]):
        prior = splat(constants.impact if i == constants.main else 0.0)
        mean = load(work.total, i * LANES) / samples
        store(work.alpha, i * LANES, (prior + mean) / splat(1.0 + constants.impact))


@lean
def _finish(
    rows: Any, first: Any, rate: Any, moved: Any, constants: Any, work: Any, out: Any
) -> Any:
    """As `_add_posteriors`, and what comes of each sample's posterior goes to `out`."""
    n, samples = constants.changes.shape[0], constants.cov.shape[0]
    for member in range(constants.team):
        _clear(work.total, member * n, n)
        expected = informative = left_out = splat(0.0)
        for k in range(member, samples, constants.team):
            _divide(k, rate, moved, constants, work)
            expected = _add(k, member, splat(1.0), expected, constants, work)
            here = _put_sample(rows, first, k, constants, work, out)
            informative, rest = exact_sum(informative, here)
            left_out = left_out + rest
        store(work.part, member * LANES, expected)
        store(work.informative, member * LANES, informative)
        store(work.left_out, member * LANES, left_out)
    _team_sum(work.total, n, constants.team)
    store(work.level, 0, _mean_of_exact_sums(splat(float(samples)), constants.team, work))
    for lane in range(min(LANES, rows.shape[0] - first)):
        out.ini[rows[first + lane]] = work.level[lane]


@lean
def _divide(k: Any, rate: Any, moved: Any, constants: Any, work: Any) -> Any:
    """Sample k's posteriors into `work.weighted`, as R adds and divides."""
    n = constants.changes.shape[0]
    to_level = splat(1.0)
    if moved:
        to_level = exp2(splat(0.0) - load(work.x, k * LANES) * rate)
    total = splat(0.0)
    for i in range(n):
        here = load(work.held, (k * n + i) * LANES) * load(work.factor, i * LANES)
        here = greater(here * to_level, splat(constants.floor))
        store(work.weighted, i * LANES, here)
        total = total + here
    if constants.given:
        total = _sum_in_80_bits(work.weighted, n)
    for i in range(n):
        store(work.weighted, i * LANES, load(work.weighted, i * LANES) / total)


@lean
def _sum_in_80_bits(values: Any, count: Any) -> Any:
    total = left_out = splat(0.0)
    for i in range(count):
        total, rest = exact_sum(total, load(values, i * LANES))
        left_out = left_out + rest
    return total + in_80_bits(total, left_out)


@lean
def _mean_of_exact_sums(samples: Any, team: Any, work: Any) -> Any:
    """The mean of what the members of a team have in `informative` and `left_out`."""
    step = 1
    while step < team:
        for member in range(0, team, 2 * step):
            here, there = member * LANES, (member + step) * LANES
            total, rest = exact_sum(load(work.informative, here), load(work.informative, there))
            left_out = load(work.left_out, here) + load(work.left_out, there)
            store(work.informative, here, total)
            store(work.left_out, here, left_out + rest)
        step *= 2
    total = load(work.informative, 0)
    mean = total / samples
    left_out = in_80_bits(total, load(work.left_out, 0))
    rest = fused(splat(0.0) - mean, samples, total) + left_out
    return mean + rest / samples


@lean
def _put_sample(rows: Any, first: Any, k: Any, constants: Any, work: Any, out: Any) -> Any:
    """Sample k's answers; returns how informative it is."""
    signed, informative = splat(0.0), splat(0.0)
    best, likeliest = splat(-1.0), splat(0.0)
    for i in range(constants.changes.shape[0]):
        here = load(work.weighted, i * LANES)
        signed = signed + here * splat(constants.bits[i])
        informative = informative + here * splat(abs(constants.bits[i]))
        likeliest = where_above(here, best, splat(float(i)), likeliest)
        best = greater(here, best)
    _put_answers(rows, first, k, signed, likeliest, work, out)
    return informative


@lean
def _put_answers(
    rows: Any, first: Any, k: Any, signed: Any, likeliest: Any, work: Any, out: Any
) -> Any:
    """What is known of sample k; its posteriors lie in work.weighted."""
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
        _anchor(level, False, constants, work)
        for at in range(samples * n):  # R floors before it weighs
            floored = greater(load(work.held, at * LANES), splat(floor))
            store(work.held, at * LANES, floored * splat(constants.weights[at]))
        for i in range(n):
            store(work.factor, i * LANES, splat(1.0))
        _finish(rows, first, splat(0.0), False, constants, work, out)
        for i in range(n):
            store(work.alpha, i * LANES, load(work.total, i * LANES) / splat(float(samples)))
        store(work.level, 0, level)
        _put(rows, first, work, out)


@lean
def add_up(x: Any, scale: Any, cov: Any, out: Any) -> Any:
    """The scaled counts of each region over the coverages, in the order of the samples."""
    for row in range(x.shape[0]):
        total = 0.0
        for k in range(x.shape[1]):
            total += x[row, k] * scale[k] / cov[k]
        out[row] = total
