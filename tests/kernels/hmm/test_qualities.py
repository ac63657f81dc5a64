"""Genotypes and qualities against sums over all paths and plain likelihoods."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from support.hmm_cases import random_case

from multigpu.kernels.hmm import cpu, reference
from multigpu.kernels.hmm.moves import without_memory
from multigpu.kernels.hmm.qualities import copies_and_quality, genotypes, qualities
from multigpu.kernels.hmm.types import CLASSES, LEAST_MEAN, STATES, UNIT, USUAL


def share_of_paths(emitted: Any, steps: Any, is_excluded: Any) -> float:
    """Return the share of all paths' likelihoods that those have which are not excluded."""
    kept = total = 0.0
    for path in product(range(STATES), repeat=len(emitted)):
        before = (USUAL, *path[:-1])
        ways = sum(steps[row, a, b] for row, (a, b) in enumerate(zip(before, path, strict=True)))
        here = np.exp((ways + emitted[range(len(path)), path].sum()) / UNIT)
        total += here
        kept += 0 if is_excluded(path) else here
    return kept / total


@pytest.mark.parametrize("seed", range(6))
def test_qualities__are_shares_of_all_paths(seed: int) -> None:
    counts, model, ways, inside = random_case(seed, regions=6, samples=1)
    expected = reference.expect(counts, model, inside)
    emitted = reference.scores(counts, expected, model, inside)[:, 0].astype(np.float64)
    steps = reference.all_moves(ways)
    calls = [np.array(each) for each in ([0, 0], [1, 2], [4, 3], [1, 4])]
    found = qualities(counts, expected, model, ways, (*calls,), inside)
    for quality, first, stop, state in zip(found, *calls[1:], strict=True):
        side = -1 if state < USUAL else 1

        def is_excluded(path: Any, span: slice = slice(first, stop), side: int = side) -> bool:
            return any((each - USUAL) * side > 0 for each in path[span])

        share = share_of_paths(emitted, steps, is_excluded)
        assert quality == pytest.approx(min(-10 * np.log10(share), 999), rel=1e-6, abs=1e-6)


def test_qualities__depend_on_fifty_regions_around_and_not_beyond_a_break() -> None:
    counts, model, ways, inside = random_case(1, regions=300, samples=2)
    ways = without_memory(ways, np.arange(300) == 140)
    expected = cpu.expect(counts, model, inside)
    call = tuple(np.array([each]) for each in (1, 150, 153, 1))
    whole = qualities(counts, expected, model, ways, call, inside)
    rows = slice(140, 203)
    few = type(expected)(expected.mean[rows], expected.dispersion[rows])
    part = tuple(np.array([each]) for each in (1, 10, 13, 1))
    assert qualities(counts[rows], few, model, ways[rows], part, inside[rows]) == whole


def test_genotypes__are_sums_of_capped_likelihoods() -> None:
    counts, model, _, inside = random_case(2, regions=600, samples=4)
    expected = reference.expect(counts, model, inside)
    first, stop = np.array([0, 5, 100]), np.array([1, 9, 600])
    found = genotypes(counts, expected, model, first, stop, inside)
    folds = model.folds_of_classes[inside.astype(int)]
    mean = expected.mean[:, :, None].astype(np.float64)
    d = expected.dispersion[:, None, None] * model.noise[:, None] + 1 / (model.worth * mean)
    x = counts[:, :4, None]
    shares = np.where(folds > 0, folds, 1)
    logs = x * np.log(shares) - (x + 1 / d) * np.log1p(d * mean * folds)
    logs = np.where(mean > LEAST_MEAN, logs, 0)
    least = logs.max(axis=2, keepdims=True) - model.cap
    logs = np.where(folds > 0, np.maximum(logs, least), -np.inf)
    sums = np.array([logs[a:b].sum(axis=0) for a, b in zip(first, stop, strict=True)])
    sums -= sums.max(axis=2, keepdims=True)
    np.testing.assert_allclose(found, sums, rtol=1e-6, atol=1e-6)
    assert found.shape == (3, 4, CLASSES)


def test_copies_and_quality__weigh_likelihoods_with_the_usual_copies() -> None:
    likelihoods = np.full((1, 3, CLASSES), -50.0)
    likelihoods[0, 0, [1, 2]] = [0, -3]  # too little for a change
    likelihoods[0, 1, [1, 2]] = [0, -30]
    likelihoods[0, 2, :] = -np.inf
    likelihoods[0, 2, 0] = 0
    copies, ((first, second, third),) = copies_and_quality(likelihoods, np.array([[2, 2, 0]], "i1"))
    assert copies.tolist() == [[2, 1, 0]]
    assert first == pytest.approx(10 * np.log10(1 + 0.98 / (0.005 * np.exp(3))), abs=0.01)
    assert (second > 100, third) == (True, 999)
