"""The hidden Markov model: the plain one against all paths, and the fast ways against the plain."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.backends import GPUS, backends, on_host
from support.examples import examples
from support.hmm_cases import Case, random_case

from multigpu.kernels.hmm import cpu, reference
from multigpu.kernels.hmm.types import STATES, ExpectedCounts

backend = backends("hmm")
cuda = backends("hmm", GPUS)


def assert_as_reference(backend: Any, case: Case, **how: Any) -> None:
    counts, model, ways, inside = case
    expected = reference.expect(counts, model, inside)
    got = backend.expect(counts, model, inside, **how)
    for name in ("mean", "dispersion"):
        np.testing.assert_array_equal(on_host(getattr(got, name)), getattr(expected, name), name)
    found = on_host(backend.paths(counts, got, model, ways, inside, **how))
    np.testing.assert_array_equal(found, reference.paths(counts, expected, model, ways, inside))
    assert found.dtype == np.int8
    for samples in {1, model.samples}:
        ratios = on_host(backend.log2_ratios(counts, got, samples, **how))
        np.testing.assert_array_equal(ratios, reference.log2_ratios(counts, expected, samples))


def path_score(path: tuple[int, ...], emitted: Any, steps: Any) -> int:
    ways = sum(steps[row, path[row - 1], path[row]] for row in range(1, len(path)))
    first = 0 if path[0] == 2 else steps[0, 2, path[0]]
    return int(first + ways + sum(emitted[row, state] for row, state in enumerate(path)))


@pytest.mark.parametrize("seed", range(20))
def test_reference__path_is_the_best_of_all(seed: int) -> None:
    case = random_case(seed, regions=6, samples=1)
    counts, model, ways, inside = case
    expected = reference.expect(counts, model, inside)
    emitted = reference.scores(counts, expected, model, inside)[:, 0].astype(np.int64)
    steps = reference.all_moves(ways)
    every = product(range(STATES), repeat=6)
    best = max(path_score(path, emitted, steps) for path in every)
    found = reference.paths(counts, expected, model, ways, inside)[:, 0]
    assert path_score(tuple(found), emitted, steps) == best


@examples(15)
@given(
    st.sampled_from([1, 2, 127, 128, 129, 255, 256, 257, 700]), st.sampled_from([1, 2, 5]),
    st.sampled_from([0, 3]), st.sampled_from([1, 4, 5, 10, 64]), st.integers(0, 2**32),
)  # fmt: skip
def test_cpu__is_as_plain(regions: int, samples: int, controls: int, k: int, seed: int) -> None:
    case = random_case(seed, regions, samples, controls, k)
    assert_as_reference(cpu, case, threads=1 + seed % 2)


def test_paths__of_some_samples_are_those_of_all(backend: Any) -> None:
    counts, model, ways, inside = random_case(10, regions=400, samples=5, controls=2)
    expected = backend.expect(counts, model, inside)
    every = on_host(backend.paths(counts, expected, model, ways, inside))
    first = on_host(backend.paths(counts, expected, model.of(slice(0, 3)), ways, inside))
    np.testing.assert_array_equal(first, every[:, :3])
    some, means = slice(1, 4), on_host(expected.mean)
    part = ExpectedCounts(means[:, some], on_host(expected.dispersion))
    found = on_host(backend.paths(counts[:, some], part, model.of(some), ways, inside))
    np.testing.assert_array_equal(found, every[:, some])
    assert len(np.unique(every)) >= 4


def test_paths__of_no_regions(backend: Any) -> None:
    case = random_case(5, regions=1, samples=2)
    counts, ways = case.counts[:0], case.moves[:0]
    expected = backend.expect(counts, case.model)
    assert on_host(backend.paths(counts, expected, case.model, ways)).shape == (0, 2)


@pytest.mark.parametrize(
    ("regions", "samples", "controls", "k"),
    [(1, 1, 0, 1), (127, 3, 0, 4), (128, 2, 2, 10), (129, 5, 0, 3), (1300, 2, 1, 25)],
)
def test_cuda__has_the_bytes(cuda: Any, regions: int, samples: int, controls: int, k: int) -> None:
    for seed in range(3):
        assert_as_reference(cuda, random_case(seed, regions, samples, controls, k))


@pytest.mark.slow
def test_cuda__has_the_bytes_of_the_reference_over_many_blocks(cuda: Any) -> None:
    """More blocks than a thread block has threads."""
    assert_as_reference(cuda, random_case(8, regions=40_000, samples=1))
