"""The hidden Markov model in plain NumPy. The tests' oracle."""

from typing import Any

import numpy as np

from multigpu.kernels.hmm.types import (
    ENTER,
    FORBIDDEN,
    LEAST_DISPERSION,
    LEAST_MEAN,
    LEAVE,
    NORMAL_MAD,
    PREFERENCE,
    SHRINKAGE,
    STATES,
    STAY,
    UNIT,
    USUAL,
    Counts,
    ExpectedCounts,
    Floats,
    SampleModel,
    Scores,
    States,
    rows_inside,
)


def expect(counts: Counts, model: SampleModel, inside: Any = None) -> ExpectedCounts:
    """Return what every sample should have with its usual copies, and how far that is off.

    A mean is the mean of the sample's middle reference depths, times the sample's size. A
    region's dispersion is what the spread of counts over means (by MAD, so that
    carriers do not count) has beyond Poisson's, shrunk towards the typical one.

    counts  int32 or float64[regions, columns], not negative; rows do not depend on each other
    inside  uint8[regions]: row of the model's arrays; None: 0
    """
    inside = rows_inside(inside, len(counts))
    depths = (counts * model.weights[inside]).astype(np.float32)
    mean = np.empty((len(counts), model.samples), np.float32)
    for sample in range(model.samples):
        columns = model.references[sample]
        middle = np.sort(depths[:, columns], axis=1)[:, model.cut : len(columns) - model.cut]
        total = np.zeros(len(counts))
        for column in middle.T:
            total += column
        typical = total / middle.shape[1] * model.sizes[inside, sample]
        mean[:, sample] = np.maximum(typical, LEAST_MEAN)
    return ExpectedCounts(mean, _dispersions(counts, mean, model))


def _dispersions(counts: Counts, mean: Any, model: SampleModel) -> Any:
    means = mean[:, model.spread].astype(np.float64)
    ratios = (counts[:, model.spread] / means).astype(np.float32)
    off = np.abs(ratios - _medians(ratios)[:, None]).astype(np.float32)
    poisson = 1 / _medians(mean[:, model.spread]) * (1 + 1 / model.worth)
    beyond = np.maximum((NORMAL_MAD * _medians(off)) ** 2 - poisson, 0)
    typical = (1 - SHRINKAGE) * model.dispersion + LEAST_DISPERSION
    return (SHRINKAGE * beyond + typical).astype(np.float32)


def _medians(values: Any) -> Floats:
    """float64[rows] of float32[rows, n]."""
    ordered = np.sort(values, axis=1).astype(np.float64)
    n = ordered.shape[1]
    return np.asarray((ordered[:, (n - 1) // 2] + ordered[:, n // 2]) * 0.5)


def scores(
    counts: Counts, expected: ExpectedCounts, model: SampleModel, inside: Any = None
) -> Scores:
    """int32[regions, samples, STATES]: log-likelihoods of states less that of the usual one.

    Counts are negative binomial. Before the difference is taken, a state is at most `model.cap`
    less likely than the likeliest one. Where no reads are expected, all states are alike.
    """
    folds = model.folds[rows_inside(inside, len(counts))]
    x = counts[:, : model.samples, None].astype(np.float64)
    mean = expected.mean[:, : model.samples, None].astype(np.float64)
    dispersion = expected.dispersion.astype(np.float64)[:, None, None] * model.noise[:, None]
    dispersion = dispersion + 1 / (model.worth * mean)
    possible = folds > 0
    rate = dispersion * mean
    off = np.log2(1 + rate * folds) - np.log2(1 + rate)
    logs = x * np.log2(np.where(possible, folds, 1)) - (x + 1 / dispersion) * off
    logs = np.where(possible, np.where(mean > LEAST_MEAN, logs, 0), -np.inf)
    floor = logs.max(axis=2, keepdims=True) - model.cap / np.log(2)
    nats = (np.maximum(logs, floor) - np.maximum(0, floor)) * (UNIT * np.log(2))
    return np.where(possible, np.rint(nats), FORBIDDEN).astype(np.int32)


def paths(
    counts: Counts, expected: ExpectedCounts, model: SampleModel, moves: Scores, inside: Any = None
) -> States:
    """Return int8[regions, samples]: the likeliest path of each sample through the states.

    Of several states that are as likely, the path has the first of `PREFERENCE`: the nearest to the
    usual one, then the lower.

    Samples of the model may be fewer than the columns of counts and means: they are the first.

    moves  int32[regions, 3] of `moves.moves`
    """
    emitted = scores(counts, expected, model, inside).astype(np.int64)
    steps = all_moves(moves)
    order = np.array(PREFERENCE)
    best = np.full((emitted.shape[1], STATES), FORBIDDEN, np.int64)
    best[:, USUAL] = 0
    back = np.empty(emitted.shape, np.int8)
    for row in range(len(counts)):
        ways = best[:, order, None] + steps[row][order]
        back[row] = order[ways.argmax(axis=1)]
        best = ways.max(axis=1) + emitted[row]
    states = np.empty(emitted.shape[:2], np.int8)
    state = order[best[:, order].argmax(axis=1)]
    for row in range(len(counts) - 1, -1, -1):
        states[row] = state
        state = back[row, np.arange(len(state)), state]
    return states


def all_moves(moves: Scores) -> Any:
    """int64[regions, STATES, STATES]: scores of all ways from a state to a state."""
    out = np.repeat(moves[:, ENTER, None, None].astype(np.int64), STATES, 1).repeat(STATES, 2)
    out[:, range(STATES), range(STATES)] = moves[:, STAY, None]
    out[:, :, USUAL] = moves[:, LEAVE, None]
    out[:, USUAL, USUAL] = 0
    return out


def log2_ratios(counts: Counts, expected: ExpectedCounts, samples: int) -> Any:
    """Return how counts of the first samples relate to means, float32[regions, samples].

    That is log2((count + 0.5) / (mean + 0.5)), 0 with usual copies and where none are expected.
    """
    x, mean = counts[:, :samples], expected.mean[:, :samples].astype(np.float64)
    ratios = np.log2((x + 0.5) / (mean + 0.5)).astype(np.float32)
    return np.where(mean > LEAST_MEAN, ratios, np.float32(0))
