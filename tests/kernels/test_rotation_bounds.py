"""Errors of single precision: the bound holds, and is narrow enough to be of use."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.rotation_cases import (
    golden_case,
    hair_splitting_case,
    random_field,
    random_ligands,
    random_search,
)

from multigpu.kernels.rotation import EulerRotations, Field, Ligands, Search, cpu, reference
from multigpu.kernels.rotation.bounds import SHORTFALLS, FieldBounds, LigandBounds


def bounds_of(field: Field, ligands: Ligands, search: Search) -> LigandBounds:
    return LigandBounds(FieldBounds(field), ligands, search)


def single(field: Field, ligands: Ligands, search: Search) -> Any:
    """The scores of all poses of the one ligand as the CPU has them."""
    searcher = cpu.Searcher(field, search)
    bounds = bounds_of(field, ligands, search)
    (body,) = cpu.bodies_of(ligands, searcher, bounds.doubt)
    scores = cpu.Scores(searcher, body, bounds, 0)
    scores.score(range(search.stop))
    return scores.held


def assert_within_bounds(field: Field, ligands: Ligands, search: Search) -> None:
    """The error of every pose that counts as decided; those that repeat others are -inf."""
    found = single(field, ligands, search)
    exact = reference.scores(field, ligands, 0, search, np.arange(search.stop))
    bounds, decided = bounds_of(field, ligands, search), np.isfinite(found)
    shortfall = bounds.top[0] - np.minimum(found, exact)[decided]
    power = np.searchsorted(SHORTFALLS, 2 * shortfall).clip(0, len(SHORTFALLS) - 1)
    assert (np.abs(found - exact)[decided] <= bounds.errors[0, power]).all()


@examples(150)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["linear", "nearest"]),
    st.sampled_from(["clamp", "zero", "penalty"]),
    st.booleans(),
)
def test_error__of_every_decided_pose_is_within_the_bound(
    seed: int, interpolation: str, outside: str, steep: bool
) -> None:
    rng = np.random.default_rng(seed)
    field = random_field(rng, 2, interpolation, outside, steep)
    ligands = random_ligands(rng, [int(rng.integers(1, 60))], 2, 2)
    search = random_search(rng, listed=True, shifts=False)
    assert_within_bounds(field, ligands, search)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["linear", "nearest"]),
    st.sampled_from(["clamp", "zero", "penalty"]),
)
def test_error__is_within_the_bound_where_single_precision_cannot_tell(
    seed: int, interpolation: str, outside: str
) -> None:
    case = hair_splitting_case(np.random.default_rng(seed), interpolation, outside)
    assert_within_bounds(case.field, case.ligands, case.search)


@pytest.mark.parametrize("steep", [False, True])
def test_threshold__leaves_few_poses_to_double_precision(steep: bool) -> None:
    rng = np.random.default_rng(1)
    counts = []
    for _ in range(10):
        field = random_field(rng, steep=steep)
        ligands = random_ligands(rng, [30])
        search = Search(EulerRotations(20))
        found = single(field, ligands, search)
        highest = found[np.isfinite(found)].max(keepdims=True)
        threshold = bounds_of(field, ligands, search).thresholds(highest)
        counts.append(int((found >= threshold).sum()))
    assert min(counts) >= 1
    assert np.median(counts) <= (30 if steep else 2)


def test_threshold__in_a_real_pocket_leaves_a_tenth_at_most(golden: Path) -> None:
    case = golden_case(golden / "dock" / "real_1stp")
    found = single(case.field, case.ligands, case.search)
    threshold = bounds_of(case.field, case.ligands, case.search).thresholds(
        found.max(keepdims=True)
    )
    assert 0 < (found >= threshold).mean() < 0.1


def test_undecided__are_few(golden: Path) -> None:
    case = golden_case(golden / "dock" / "grid_nearest_clamp")
    found = single(case.field, case.ligands, case.search)
    assert 0 < (found == np.inf).mean() < 0.02


def test_thresholds__rule_nothing_out_where_nothing_is_known() -> None:
    rng = np.random.default_rng(2)
    field, ligands = random_field(rng), random_ligands(rng, [4])
    search = Search(EulerRotations(90))
    nothing = np.full(1, -np.inf, np.float32)
    assert bounds_of(field, ligands, search).thresholds(nothing) == -np.inf
    far = Search(EulerRotations(90), center=(1e8, 0.0, 0.0))  # δ is more than a cell
    assert bounds_of(field, ligands, far).thresholds(np.zeros(1, np.float32)) == -np.inf


@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_error__of_the_penalty_is_within_the_bound(interpolation: Any) -> None:
    """Nothing else errs; places along it are known least well."""
    values = np.zeros((1, 4001, 2, 2), np.float32)
    field = Field(values, np.zeros(3), np.full(3, 0.7), interpolation, "penalty")
    rng = np.random.default_rng(3)
    center = (0.7 * 2000.123, 0.31, 0.37)
    for _ in range(20):
        ligands = Ligands.plain([rng.normal(0, 2, (2, 3))])
        assert_within_bounds(field, ligands, Search(EulerRotations(30), center=center))
