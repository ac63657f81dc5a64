"""The hidden Markov model in Numba, in several threads, without the GIL.

Scores of a block of regions are made for a sample at a time, in loops that become vector
instructions, and used at once: those of a chromosome are never held.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.parallel import over_spans
from multigpu.kernels.hmm.types import (
    ENTER,
    FORBIDDEN,
    LEAST_DISPERSION,
    LEAST_MEAN,
    LEAVE,
    NORMAL_MAD,
    SHRINKAGE,
    STATES,
    STAY,
    UNIT,
    USUAL,
    ExpectedCounts,
    Floats,
    SampleModel,
    Scores,
    States,
    rows_inside,
)
from multigpu.kernels.numerics.log2_exp2 import LOG2E, ROUND, log2_of

BLOCK = 256  # regions
LANES = 256  # regions and samples whose reference depths are sorted at once
LEAST_SPAN = 1024  # regions, for a thread
PER_BIT = UNIT / LOG2E  # scores
IMPOSSIBLE = -1e18  # bits


class Emissions(NamedTuple):
    """Numbers of all samples that scores are made of."""

    folds: Floats  # [2, samples, states], 0: impossible
    log_folds: Floats  # to base 2
    noise: Floats
    worth: float
    cap: float  # bits


def emissions_of(model: SampleModel, folds: Floats) -> Emissions:
    """Return what scores of states with these shares are made of."""
    logs = np.array([log2_of(fold) if fold > 0 else 0.0 for fold in folds.ravel()])
    return Emissions(
        np.ascontiguousarray(folds),
        logs.reshape(folds.shape),
        np.ascontiguousarray(model.noise),
        model.worth,
        model.cap * LOG2E,
    )


def evidence(
    counts: NDArray[Any], expected: ExpectedCounts, model: SampleModel, folds: Floats, inside: Any
) -> tuple[Any, ...]:
    """Return counts, means, dispersions, rows of the model and `Emissions`: all for `set_bits`."""
    arrays = map(np.ascontiguousarray, (expected.mean, expected.dispersion))
    rows = rows_inside(inside, len(counts))
    return usable(counts), *arrays, rows, emissions_of(model, folds)


def expect(
    counts: NDArray[Any], model: SampleModel, inside: Any = None, threads: int = 1
) -> ExpectedCounts:
    """Return what `reference.expect` does."""
    counts, inside = usable(counts), rows_inside(inside, len(counts))
    given = (model.weights, model.references, model.sizes, model.spread)
    *arrays, spread = map(np.ascontiguousarray, given)
    mean = np.empty((len(counts), model.samples), np.float32)
    dispersion = np.empty(len(counts), np.float32)

    def work(begin: int, stop: int) -> None:
        samples, listed = model.references.shape
        lanes = max(1, LANES // samples) * samples
        depths, total = np.empty((listed, lanes), np.float32), np.empty(lanes)
        _set_means(counts, begin, stop, inside, *arrays, model.cut, depths, total, mean)
        values, medians = np.empty((3, len(spread), LANES), np.float32), np.empty((2, LANES))
        numbers = (model.worth, model.dispersion)
        _set_dispersions(counts, begin, stop, mean, spread, *numbers, values, medians, dispersion)

    over_spans(work, len(counts), threads, LEAST_SPAN)
    return ExpectedCounts(mean, dispersion)


def usable(counts: NDArray[Any]) -> NDArray[Any]:
    """Return the counts as int32 or float64, C-contiguous."""
    return np.ascontiguousarray(counts, np.int32 if counts.dtype == np.int32 else np.float64)


@jit_no_alloc
def _set_means(counts, begin, stop, inside, weights, references, sizes, cut, depths, total, mean):  # type: ignore[no-untyped-def]
    """Write means of regions [begin, stop), of several at once.

    depths  float32[K, lanes]: a lane is a region and a sample
    """
    samples, listed = references.shape
    rows = len(total) // samples
    for first in range(begin, stop, rows):
        lanes = min(rows, stop - first) * samples
        for row in range(first, first + lanes // samples):
            for sample in range(samples):
                for k in range(listed):
                    column = references[sample, k]
                    depth = counts[row, column] * weights[inside[row], column]
                    depths[k, (row - first) * samples + sample] = depth
        _sort_lanes(depths, lanes, cut)
        total[:lanes] = 0
        for k in range(cut, listed - cut):
            for lane in range(lanes):
                total[lane] += depths[k, lane]
        for row in range(first, first + lanes // samples):
            for sample in range(samples):
                typical = total[(row - first) * samples + sample] / (listed - 2 * cut)
                mean[row, sample] = max(typical * sizes[inside[row], sample], LEAST_MEAN)


@jit_no_alloc
def _sort_lanes(values, lanes, least):  # type: ignore[no-untyped-def]
    """Put the rows from `least` on in order, each lane by itself, in vector instructions."""
    for last in range(len(values) - 1, max(least, 1) - 1, -1):
        for k in range(last):
            for lane in range(lanes):
                low, high = values[k, lane], values[k + 1, lane]
                values[k, lane] = min(low, high)
                values[k + 1, lane] = max(low, high)


@jit_no_alloc
def _set_dispersions(counts, begin, stop, mean, spread, worth, typical, values, middle, dispersion):  # type: ignore[no-untyped-def]
    """Write dispersions of regions [begin, stop), of several at once: of each one in a lane."""
    n, lanes = len(spread), middle.shape[1]
    means, ratios, off = values[0], values[1], values[2]
    base = (1 - SHRINKAGE) * typical + LEAST_DISPERSION
    for first in range(begin, stop, lanes):
        rows = min(lanes, stop - first)
        for i in range(rows):
            for k in range(n):
                means[k, i] = mean[first + i, spread[k]]
                off[k, i] = counts[first + i, spread[k]] / np.float64(means[k, i])
                ratios[k, i] = off[k, i]
        _set_medians(ratios, rows, middle[0])
        for k in range(n):
            for i in range(rows):
                off[k, i] = abs(off[k, i] - middle[0, i])
        _set_medians(off, rows, middle[0])
        _set_medians(means, rows, middle[1])
        for i in range(rows):
            deviation, poisson = NORMAL_MAD * middle[0, i], 1 / middle[1, i] * (1 + 1 / worth)
            beyond = max(deviation * deviation - poisson, 0.0)
            dispersion[first + i] = SHRINKAGE * beyond + base


@jit_no_alloc
def _set_medians(values, lanes, out):  # type: ignore[no-untyped-def]
    n = len(values)
    _sort_lanes(values, lanes, (n - 1) // 2)
    for lane in range(lanes):
        low, high = values[(n - 1) // 2, lane], values[n // 2, lane]
        out[lane] = (np.float64(low) + np.float64(high)) * 0.5


@jit_no_alloc
def set_bits(given, sample, begin, stop, bits):  # type: ignore[no-untyped-def]
    """Write the log-likelihoods of a sample's states in regions [begin, stop) to float64 bits.

    They are those less that of the usual share, in the first rows, a state each. Counts are
    negative binomial with mean m and variance m + d m², so it is, but for what all states share,
    x log(f) - (x + 1 / d) log((1 + d f m) / (1 + d m)) for f times the usual mean. Where no reads
    are expected they tell nothing: all are 0, of which rates of 0 are the sign.
    """
    x, mean, dispersion, inside, emissions = given
    folds, log_folds, noise, worth, _ = emissions
    n, states = stop - begin, folds.shape[2]
    rates, usual, more = bits[states], bits[states + 1], bits[states + 2]
    for i in range(n):
        row = begin + i
        m = np.float64(mean[row, sample])
        d = np.float64(dispersion[row]) * noise[sample] + 1 / (worth * m)
        rates[i] = d * m if m > LEAST_MEAN else 0.0
        usual[i] = log2_of(1 + d * m)
        more[i] = x[row, sample] + 1 / d
    for state in range(states):
        one = bits[state]
        for i in range(n):
            where, count = inside[begin + i], np.float64(x[begin + i, sample])
            fold = folds[where, sample, state]
            off = log2_of(1 + rates[i] * fold) - usual[i]
            value = count * log_folds[where, sample, state] - more[i] * off
            one[i] = (value if rates[i] > 0 else 0.0) if fold > 0 else IMPOSSIBLE


@jit_no_alloc
def set_scores(given, sample, begin, stop, bits, out):  # type: ignore[no-untyped-def]
    """Write the scores of a sample in regions [begin, stop) to int32 out[STATES, regions]."""
    set_bits(given, sample, begin, stop, bits)
    cap, n = given[4].cap, stop - begin
    floor, base = bits[STATES], bits[STATES + 1]
    for i in range(n):
        best = max(max(bits[0, i], bits[1, i]), max(bits[3, i], bits[4, i]))
        floor[i] = max(best, 0.0) - cap
        base[i] = max(0.0, floor[i])
    for state in range(STATES):
        one, scored = bits[state], out[state]
        for i in range(n):
            nearest = ((max(one[i], floor[i]) - base[i]) * PER_BIT + ROUND) - ROUND
            scored[i] = np.int32(nearest) if one[i] > IMPOSSIBLE else FORBIDDEN


def paths(
    counts: NDArray[Any],
    expected: ExpectedCounts,
    model: SampleModel,
    moves: Scores,
    inside: Any = None,
    threads: int = 1,
) -> States:
    """Return what `reference.paths` does, with a thread for each share of the samples."""
    given = evidence(counts, expected, model, model.folds, inside)
    out = np.empty((len(counts), model.samples), np.int8)

    def work(begin: int, end: int) -> None:
        back = np.empty((len(counts), end - begin), np.uint16)
        best = np.full((end - begin, STATES), FORBIDDEN, np.int32)
        best[:, USUAL] = 0
        work_of_block = (np.empty((STATES + 3, BLOCK)), np.empty((STATES, BLOCK), np.int32))
        find(given, moves, begin, *work_of_block, best, back)
        walk_back(back, best, out[:, begin:end])

    if len(counts):
        over_spans(work, model.samples, threads, 1)
    return out


@jit_no_alloc
def find(given, ways, first, bits, emitted, best, back):  # type: ignore[no-untyped-def]
    """Write where the best ways to each state come from, and what they score in the end.

    best  int32[samples, states], at the start and in the end; of the usual state it is 0
    back  uint16[regions, samples]: three bits for each state, the state before
    """
    regions, samples = back.shape
    for begin in range(0, regions, BLOCK):
        stop = min(begin + BLOCK, regions)
        for sample in range(samples):
            set_scores(given, first + sample, begin, stop, bits, emitted)
            for row in range(begin, stop):
                back[row, sample] = advance(best[sample], ways[row], emitted[:, row - begin])


@jit_no_alloc
def advance(best, ways, emitted):  # type: ignore[no-untyped-def]
    """Take best scores to the next region; return the state before each, three bits a state."""
    enter, stay, leave = ways[ENTER], ways[STAY], ways[LEAVE]
    none, one, usual, more, two = best[0], best[1], best[2], best[3], best[4]
    back = 0
    for state in range(STATES):
        if state == USUAL:
            score, source = likeliest(none + leave, one + leave, usual, more + leave, two + leave)
        else:
            score, source = likeliest(
                none + (stay if state == 0 else enter),
                one + (stay if state == 1 else enter),
                usual + enter,
                more + (stay if state == 3 else enter),
                two + (stay if state == 4 else enter),
            )
        best[state] = score + emitted[state]
        back |= source << 3 * state
    best -= best[USUAL]
    return back


@jit_no_alloc
def likeliest(none, one, usual, more, two):  # type: ignore[no-untyped-def]
    """Return the greatest score and its state, the first where several are as great."""
    best, state = usual, USUAL
    if one > best:
        best, state = one, 1
    if more > best:
        best, state = more, 3
    if none > best:
        best, state = none, 0
    if two > best:
        best, state = two, 4
    return best, state


@jit_no_alloc
def walk_back(back, best, out):  # type: ignore[no-untyped-def]
    """Write the states of the best ways."""
    last, samples = len(back) - 1, back.shape[1]
    for sample in range(samples):
        scores = best[sample]
        _, out[last, sample] = likeliest(scores[0], scores[1], scores[2], scores[3], scores[4])
    for row in range(last, 0, -1):
        for sample in range(samples):
            out[row - 1, sample] = back[row, sample] >> 3 * out[row, sample] & 7


def log2_ratios(
    counts: NDArray[Any], expected: ExpectedCounts, samples: int, threads: int = 1
) -> Any:
    """Return what `reference.log2_ratios` does."""
    counts, mean = usable(counts), np.ascontiguousarray(expected.mean)
    ratios = np.empty((len(mean), samples), np.float32)
    over_spans(lambda begin, stop: _set_ratios(counts, begin, stop, mean, ratios),
               len(mean), threads, LEAST_SPAN)  # fmt: skip
    return ratios


@jit_no_alloc
def _set_ratios(counts, begin, stop, mean, ratios):  # type: ignore[no-untyped-def]
    for row in range(begin, stop):
        for sample in range(ratios.shape[1]):
            quotient = (counts[row, sample] + 0.5) / (np.float64(mean[row, sample]) + 0.5)
            ratios[row, sample] = log2_of(quotient) if mean[row, sample] > LEAST_MEAN else 0.0
