"""Poses that are apart, against the distances of all their atoms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import rotation_cases as cases
from support.examples import examples

from multigpu.kernels.rotation import cpu, thinning
from multigpu.kernels.rotation.rotations import EulerRotations, Shifts
from multigpu.kernels.rotation.thinning import apart, cross_moments, thin
from multigpu.kernels.rotation.types import Placements, Poses, PoseSearch, placed


@examples(40)
@given(st.integers(0, 2**32 - 1), st.floats(0, 5), st.integers(1, 60))
def test_kept__are_apart_and_the_others_are_not(seed: int, min_rmsd: float, most: int) -> None:
    rng = np.random.default_rng(seed)
    bodies = cases.random_ligands(rng, [int(rng.integers(1, 9))] * 4)
    search = cases.random_search(rng, listed=True, shifts=True)
    poses = Poses(rng.integers(1, 4, 50), rng.integers(0, search.count, 50), np.zeros(50))
    found = Placements.of(bodies, search, poses)
    atoms = placed(bodies, found).reshape(50, -1, 3)
    expected: list[int] = []
    for row in range(50):
        squared = ((atoms[row] - atoms[expected]) ** 2).sum(axis=2).mean(axis=1)
        if (squared >= min_rmsd**2 - 1e-9).all() and len(expected) < most:
            expected.append(row)
    assert thin(bodies, found, min_rmsd, most).tolist() == expected
    taken = found.take(np.arange(5))
    squared = ((atoms[:, None] - atoms[:5]) ** 2).sum(axis=3).mean(axis=2)
    far = (squared >= min_rmsd**2 - 1e-9).all(axis=1)
    assert (apart(bodies, found, taken, min_rmsd) == far).all()
    assert len(thin(bodies, found.take(np.arange(0)), min_rmsd, most)) == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 150))
def test_moments__of_one_body_are_those_that_the_kernels_read(seed: int, atoms: int) -> None:
    """To the last bit, so that all backends agree on who is too close."""
    bodies = cases.random_ligands(np.random.default_rng(seed), [atoms, 3, atoms, atoms])
    numbers = np.array([0, 2, 3])
    found = cross_moments(bodies, numbers)
    np.testing.assert_array_equal(found[range(3), range(3)], bodies.moments[numbers])
    np.testing.assert_array_equal(found, found.transpose(1, 0, 3, 2))


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many poses each call scores; fewer at once than there are."""
    found: list[int] = []
    plain = cpu.PoseSearcher.score

    def score(self: Any, body: Any, part: range, room: Any) -> Any:
        found.append(len(part))
        return plain(self, body, part, room)

    monkeypatch.setattr(cpu, "AT_ONCE", 100)
    monkeypatch.setattr(cpu.PoseSearcher, "score", score)
    return found


@pytest.mark.parametrize("top", [2, 10, 40])
def test_search__of_shifts_scores_every_pose_once(scored: list[int], top: int) -> None:
    """However many poses of a ligand are asked for."""
    rng = np.random.default_rng(1)
    search = PoseSearch(EulerRotations(60), Shifts(0.4, 0.4), top=top, min_rmsd=0.6)
    ligands = cases.random_ligands(rng, [8, 3], 2, 2)
    field = cases.random_field(rng, 2, outside="penalty", steep=True)
    assert cases.assert_right(cpu, field, ligands, search) == 2 * top
    assert sum(scored) == len(ligands) * search.stop == 2 * 2916


@pytest.mark.parametrize("listed", [1, 7, 60])
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
@pytest.mark.parametrize("outside", ["clamp", "zero", "penalty"])
def test_answer__does_not_depend_on_how_many_poses_are_listed(
    scored: list[int],
    monkeypatch: pytest.MonkeyPatch,
    interpolation: str,
    outside: str,
    listed: int,
) -> None:
    """A short list is filled by the poses near the first ones, and another pass is needed."""
    rng = np.random.default_rng(2)
    monkeypatch.setattr(thinning, "MOST_LISTED", listed)
    monkeypatch.setattr(thinning, "FIRST_COMPARED", 5)
    field = cases.random_field(rng, 1, interpolation, outside, steep=listed == 7)
    search = PoseSearch(EulerRotations(60), Shifts(0.3, 0.3), top=6, min_rmsd=1.6)
    assert cases.assert_right(cpu, field, cases.random_ligands(rng, [9]), search) == 6
    passes = sum(scored) / search.stop
    assert 1 < passes <= 6 if listed == 1 else passes < 6


@pytest.mark.parametrize("apart", [0.0, 0.7])
def test_search__ends_where_no_more_poses_are_apart(scored: list[int], apart: float) -> None:
    field, search = cases.poses_on_the_border(apart)
    ligands = cases.random_ligands(np.random.default_rng(10), [12])
    assert cases.assert_right(cpu, field, ligands, search) == (27 if apart else 5)
    assert sum(scored) == search.stop


def test_search__takes_lowest_indices_where_all_poses_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "MOST_LISTED", 4)
    rng = np.random.default_rng(3)
    field = cases.random_field(rng, outside="zero")
    search = PoseSearch(EulerRotations(60), Shifts(0.3, 0.3), (900.0, 0.0, 0.0), 9, 0.5)
    assert cases.assert_right(cpu, field, cases.random_ligands(rng, [6]), search) == 9
