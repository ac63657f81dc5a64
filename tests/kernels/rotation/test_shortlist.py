"""Several poses of one ligand: found in one pass over all of its poses, or in as few as may be."""

from typing import Any

import numpy as np
import pytest
from support.rotation_cases import assert_right, poses_on_the_border, random_field, random_ligands

from multigpu.kernels.rotation import EulerRotations, PoseSearch, Shifts, cpu, shortlist, thinning


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
    ligands = random_ligands(rng, [8, 3], 2, 2)
    field = random_field(rng, 2, outside="penalty", steep=True)
    assert assert_right(cpu, field, ligands, search) == 2 * top
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
    monkeypatch.setattr(shortlist, "MOST_LISTED", listed)
    monkeypatch.setattr(thinning, "FIRST_COMPARED", 5)
    field = random_field(rng, 1, interpolation, outside, steep=listed == 7)
    search = PoseSearch(EulerRotations(60), Shifts(0.3, 0.3), top=6, min_rmsd=1.6)
    assert assert_right(cpu, field, random_ligands(rng, [9]), search) == 6
    passes = sum(scored) / search.stop
    assert 1 < passes <= 6 if listed == 1 else passes < 6


@pytest.mark.parametrize("apart", [0.0, 0.7])
def test_search__ends_where_no_more_poses_are_apart(scored: list[int], apart: float) -> None:
    field, search = poses_on_the_border(apart)
    ligands = random_ligands(np.random.default_rng(10), [12])
    assert assert_right(cpu, field, ligands, search) == (27 if apart else 5)
    assert sum(scored) == search.stop


def test_search__takes_the_lowest_indices_where_all_poses_tie(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shortlist, "MOST_LISTED", 4)
    rng = np.random.default_rng(3)
    field = random_field(rng, outside="zero")
    search = PoseSearch(EulerRotations(60), Shifts(0.3, 0.3), (900.0, 0.0, 0.0), 9, 0.5)
    assert assert_right(cpu, field, random_ligands(rng, [6]), search) == 9
