"""Errors of single precision: the bound holds, and is narrow enough to be of use."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.backends import DEVICES, backend_of
from support.examples import examples
from support.rotation_bounds import bounds_of
from support.rotation_cases import (
    golden_case,
    hair_splitting_case,
    random_field,
    random_ligands,
    random_search,
)

from multigpu.kernels.rotation import EulerRotations, Field, Ligands, PoseSearch, reference
from multigpu.kernels.rotation.bounds import SHORTFALLS, threshold_above

pytestmark = pytest.mark.parametrize("device", DEVICES[1:])


def single(device: str, field: Field, ligands: Ligands, search: PoseSearch) -> Any:
    """The scores of all poses of the one ligand in single precision."""
    cuda = backend_of("rotation", device)
    span = range(search.stop)
    with cuda.cupy.cuda.Stream():
        scores = cuda.Scores(cuda.PoseSearcher(field, search), ligands, span, len(span))
        scores.score(span)
        return scores.held.get()


def assert_within_bounds(device: str, field: Field, ligands: Ligands, search: PoseSearch) -> None:
    """The error of every pose that counts as decided; those that repeat others are -inf."""
    found = single(device, field, ligands, search)
    exact = reference.scores(field, ligands, 0, search, np.arange(search.stop))
    bounds, decided = bounds_of(field, ligands, search), np.isfinite(found)
    shortfall = bounds.top - np.minimum(found, exact)[decided]
    power = np.searchsorted(SHORTFALLS, 2 * shortfall).clip(0, len(SHORTFALLS) - 1)
    assert (np.abs(found - exact)[decided] <= bounds.errors[power]).all()
    for floor in np.quantile(exact, [0, 0.5, 0.99]):
        threshold = threshold_above(bounds.errors, bounds.top, floor)
        assert (found[decided & (exact >= floor)] >= threshold).all()


@examples(25)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["linear", "nearest"]),
    st.sampled_from(["clamp", "zero", "penalty"]),
    st.booleans(),
)
def test_error__of_every_decided_pose_is_within_the_bound(
    device: str, seed: int, interpolation: str, outside: str, steep: bool
) -> None:
    rng = np.random.default_rng(seed)
    field = random_field(rng, 2, interpolation, outside, steep)
    ligands = random_ligands(rng, [int(rng.integers(1, 60))], 2, 2)
    search = random_search(rng, listed=True, shifts=False)
    assert_within_bounds(device, field, ligands, search)


@examples(15)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["linear", "nearest"]),
    st.sampled_from(["clamp", "zero", "penalty"]),
)
def test_error__is_within_the_bound_where_single_precision_cannot_tell(
    device: str, seed: int, interpolation: str, outside: str
) -> None:
    case = hair_splitting_case(np.random.default_rng(seed), interpolation, outside)
    assert_within_bounds(device, case.field, case.ligands, case.search)


@pytest.mark.parametrize("steep", [False, True])
def test_threshold__leaves_few_poses_to_double_precision(device: str, steep: bool) -> None:
    rng = np.random.default_rng(1)
    counts = []
    for _ in range(10):
        field = random_field(rng, steep=steep)
        ligands = random_ligands(rng, [30])
        search = PoseSearch(EulerRotations(20))
        found = single(device, field, ligands, search)
        threshold = bounds_of(field, ligands, search).threshold(found[np.isfinite(found)].max())
        counts.append(int((found >= threshold).sum()))
    assert min(counts) >= 1
    assert np.median(counts) <= (30 if steep else 2)


def test_threshold__in_a_real_pocket_leaves_a_tenth_at_most(device: str, golden: Path) -> None:
    case = golden_case(golden / "dock" / "real_1stp")
    found = single(device, case.field, case.ligands, case.search)
    threshold = bounds_of(case.field, case.ligands, case.search).threshold(found.max())
    assert 0 < (found >= threshold).mean() < 0.1


def test_undecided__are_few(device: str, golden: Path) -> None:
    case = golden_case(golden / "dock" / "grid_nearest_clamp")
    found = single(device, case.field, case.ligands, case.search)
    assert 0 < (found == np.inf).mean() < 0.02


@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_error__of_the_penalty_is_within_the_bound(device: str, interpolation: Any) -> None:
    """Nothing else errs; places along it are known least well."""
    values = np.zeros((1, 4001, 2, 2), np.float32)
    field = Field(values, np.zeros(3), np.full(3, 0.7), interpolation, "penalty")
    rng = np.random.default_rng(3)
    center = (0.7 * 2000.123, 0.31, 0.37)
    for _ in range(20):
        ligands = Ligands.plain([rng.normal(0, 2, (2, 3))])
        assert_within_bounds(device, field, ligands, PoseSearch(EulerRotations(30), center=center))
