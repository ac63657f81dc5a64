"""Genotypes of samples at calls, and qualities of calls, on the host."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.hmm.cpu import BLOCK, IMPOSSIBLE, evidence, set_bits, set_scores
from multigpu.kernels.hmm.moves import is_break
from multigpu.kernels.hmm.types import (
    CLASSES,
    ENTER,
    LEAVE,
    STATES,
    STAY,
    UNIT,
    USUAL,
    ExpectedCounts,
    Floats,
    SampleModel,
    Scores,
    States,
)
from multigpu.kernels.numerics.log2_exp2 import LOG2E, exp2_or_little, log2_of

Rows = NDArray[np.int64]

FLANK = 50  # regions on either side of a call that its quality depends on
MOST = 999.0  # Phred
PER_BIT = 3.010299956639812  # Phred
CHANGED = 0.02  # chance that a sample has other copies than usual where somebody else has


def genotypes(
    counts: NDArray[Any],
    expected: ExpectedCounts,
    model: SampleModel,
    first: Rows,
    stop: Rows,
    inside: Any = None,
) -> Floats:
    """Return float64[spans, samples, CLASSES]: log-likelihoods of 0 to 8 copies.

    They are those of regions first ≤ row < stop, added up, in nats, and 0 for the likeliest; in no
    region is one class less likely than another by more than `model.cap`. -inf: impossible copies.
    """
    given = evidence(counts, expected, model, model.folds_of_classes, inside)
    bits, out = np.empty((CLASSES + 3, BLOCK)), np.zeros((len(first), model.samples, CLASSES))
    for span in range(len(first)):
        _add_bits(given, first[span], stop[span], bits, out[span])
    out[out <= IMPOSSIBLE] = -np.inf
    if len(first):
        out -= out.max(axis=2, keepdims=True)
    return out / LOG2E


@jit_no_alloc
def _add_bits(given, first, stop, bits, out):  # type: ignore[no-untyped-def]
    samples, classes = out.shape
    for sample in range(samples):
        for begin in range(first, stop, BLOCK):
            end = min(begin + BLOCK, stop)
            set_bits(given, sample, begin, end, bits)
            for i in range(end - begin):
                best = bits[0, i]
                for k in range(1, classes):
                    best = max(best, bits[k, i])
                for k in range(classes):
                    possible = bits[k, i] > IMPOSSIBLE
                    floor = best - given[4].cap if possible else IMPOSSIBLE
                    out[sample, k] += max(bits[k, i], floor)


def copies_and_quality(
    likelihoods: Floats, copies: States, changed: float = CHANGED
) -> tuple[States, NDArray[np.float32]]:
    """Return the likeliest copies, int8[spans, samples], and their quality, float32 likewise.

    The quality is the Phred of the chance that the copies are others, at most 999.

    likelihoods  float64[spans, samples, CLASSES] of `genotypes`
    copies       int8[spans, samples]: usual ones
    changed      chance, before counts are looked at, that a sample has other copies: half of it
                 those one away, a quarter those two away, and so on
    """
    away = np.abs(np.arange(likelihoods.shape[2]) - copies[:, :, None].astype(np.int64))
    prior = np.where(away > 0, np.log(changed / 2) - away * np.log(2), np.log(1 - changed))
    logs = likelihoods + prior
    best = logs.argmax(axis=2)[:, :, None]
    logs -= np.take_along_axis(logs, best, axis=2)
    chances = np.exp(logs)
    np.put_along_axis(chances, best, 0, axis=2)
    others = chances.sum(axis=2)
    quality = -10 * np.log10(np.maximum(others / (1 + others), 10 ** (-MOST / 10)))
    return best[:, :, 0].astype(np.int8), quality.astype(np.float32)


def qualities(
    counts: NDArray[Any],
    expected: ExpectedCounts,
    model: SampleModel,
    moves: Scores,
    calls: tuple[NDArray[Any], ...],
    inside: Any = None,
) -> Floats:
    """Return float64[calls]: the Phred of there being no such change in a call's regions.

    That is the chance of all paths that have no loss (for a call that is one; else no gain) in
    these regions, by all paths, both by the forward algorithm. Paths go over the call and 50
    regions on either side, or to where there is no memory. At most 999.

    calls  sample, first region, last one plus one, and state, int[calls] each
    """
    given = evidence(counts, expected, model, model.folds, inside)
    breaks = np.append(np.flatnonzero(is_break(moves)), len(counts))
    work = (np.empty((STATES + 3, BLOCK)), np.empty((STATES, BLOCK), np.int32), np.empty(STATES))
    out = np.empty(len(calls[0]))
    for k, (sample, first, stop, state) in enumerate(zip(*calls, strict=True)):
        begin = max(first - FLANK, breaks[np.searchsorted(breaks, first, "right") - 1])
        end = min(stop + FLANK, breaks[np.searchsorted(breaks, stop)])
        where = (sample, begin, end, first, stop)
        every, others = (
            _forward(given, moves, where, side, *work) for side in (0, -1 if state < USUAL else 1)
        )
        out[k] = min(max((every - others) * PER_BIT, 0.0), MOST)
    return out


@jit_no_alloc
def _forward(given, ways, where, side, bits, emitted, chances):  # type: ignore[no-untyped-def]
    """Return log2 of the sum over paths, without those that are on one side within a call.

    side  -1: losses, 1: gains, 0: none
    """
    sample, start, stop, first, last = where
    chances[:] = 0
    chances[USUAL] = 1
    total = 0.0
    for row in range(start, stop):
        i = (row - start) % BLOCK
        if i == 0:
            end = min(row + BLOCK, stop)
            set_scores(given, sample, row, end, bits, emitted)
        changed = chances.sum() - chances[USUAL]
        enter, stay = _chance(ways[row, ENTER]), _chance(ways[row, STAY])
        entered, left = chances[USUAL] * enter, _chance(ways[row, LEAVE])
        for state in range(STATES):
            before = chances[state]
            chances[state] = entered + before * stay + (changed - before) * enter
            if state == USUAL:
                chances[state] = before + changed * left
            if first <= row < last and (state - USUAL) * side > 0:
                chances[state] = 0
            chances[state] *= _chance(emitted[state, i])
        scale = chances.sum()
        chances /= scale
        total += log2_of(scale)
    return total


@jit_no_alloc
def _chance(score):  # type: ignore[no-untyped-def]
    return exp2_or_little(score * (LOG2E / UNIT))
