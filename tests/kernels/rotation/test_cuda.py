"""The CUDA search for poses without a GPU: its host code and its kernels, emulated.

This checks the logic, in any order of lanes, warps and blocks; `emulation/cuda_emulator.hpp` says
what it cannot check.
"""

from typing import Any

import numpy as np
import pytest
from emulation import emulated
from emulation.device import Gpu
from support.backends import machine_of
from support.rotation_cases import ORIGIN, SPACING, assert_right, random_field, random_ligands

from multigpu.kernels.rotation import memory
from multigpu.kernels.rotation.rotations import EulerRotations
from multigpu.kernels.rotation.types import Poses, PoseSearch, split

pytestmark = pytest.mark.skipif(bool(emulated.why_not()), reason=emulated.why_not())

machine = machine_of("rotation")


def test_search__of_more_atoms_than_are_in_shared_memory(cuda: Any) -> None:
    rng = np.random.default_rng(1)
    field = random_field(rng, 2)
    for sizes in ([127], [128, 129], [300]):
        assert_right(cuda, field, random_ligands(rng, sizes, 2, 2), PoseSearch(EulerRotations(90)))


@pytest.mark.parametrize("precision", [22.5, 25, 50, 54, 67.5, 90, 120, 135, 180, 270, 360])
def test_search__in_tiles_that_do_not_fit_the_angles(cuda: Any, precision: float) -> None:
    rng = np.random.default_rng(2)
    given = (random_field(rng), random_ligands(rng, [9]), PoseSearch(EulerRotations(precision)))
    assert_right(cuda, *given)


@pytest.mark.parametrize("part", [range(5, 7), range(144, 288), range(100, 400), range(6, 6)])
def test_search__of_a_span_of_the_poses(cuda: Any, part: range) -> None:
    rng = np.random.default_rng(4)
    search = PoseSearch(EulerRotations(30), top=2)
    assert_right(cuda, random_field(rng), random_ligands(rng, [9, 3]), search, span=part)


@pytest.mark.parametrize("most", [1, 300, 1000])
def test_search__holds_as_many_scores_as_it_may(
    cuda: Any, gpu: Gpu, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    rng = np.random.default_rng(7)
    monkeypatch.setattr(cuda, "MOST_SCORES", most)
    precision = 120 if most == 1 else 45
    search = PoseSearch(EulerRotations(precision), top=2, min_rmsd=0.3)
    assert_right(cuda, random_field(rng), random_ligands(rng, [4, 5, 6]), search)
    # One pass for both poses where all scores are held.
    assert gpu.launched["score"] == {1: 2 * 3 * 27, 300: 3, 1000: 1}[most]


@pytest.mark.parametrize(("limit", "batches"), [("MOST_ATOMS", 3), ("MOST_LIGANDS", 1)])
def test_search__batches_atoms_and_ligands(
    cuda: Any, gpu: Gpu, monkeypatch: pytest.MonkeyPatch, limit: str, batches: int
) -> None:
    rng = np.random.default_rng(9)
    search = PoseSearch(EulerRotations(90), top=2)
    ligands = random_ligands(rng, [4, 5, 20, 1, 3, 6])
    monkeypatch.setattr(cuda, limit, 10)
    assert_right(cuda, random_field(rng), ligands, search)
    assert gpu.launched["score"] == batches
    monkeypatch.setattr(cuda, limit, 2)
    assert_right(cuda, random_field(rng), ligands, search)


def test_scores__wait_for_nothing_but_the_winners_of_a_round(cuda: Any, gpu: Gpu) -> None:
    """Work that is queued on the emulated GPU is done when somebody waits."""
    rng = np.random.default_rng(14)
    ligands, search = random_ligands(rng, [4, 7]), PoseSearch(EulerRotations(45))
    with cuda.cupy.cuda.Stream():
        searcher = cuda.PoseSearcher(random_field(rng), search)
        scores = cuda.Scores(searcher, ligands, range(search.stop), 100)
        gpu.launched.clear()
        scores.begin()
        for part in split(range(search.stop), 100):
            scores.score(part)
            scores.strike(Poses(np.array([0, 1]), np.array([17, 4]), np.zeros(2)))
            scores.settle()
        assert not gpu.launched
        assert len(scores.winners()) == 2
        assert gpu.launched["settle"] == 3


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 300), (40, 2, 2)])
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_search__in_odd_grids(cuda: Any, interpolation: str, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(11)
    field = random_field(rng, 2, interpolation, shape=shape)
    middle = tuple((ORIGIN + SPACING * (np.array(shape) - 1) / 2).tolist())
    search = PoseSearch(EulerRotations(45), center=middle)
    assert_right(cuda, field, random_ligands(rng, [7], 2), search)


def test_memory__is_what_was_said(cuda: Any, gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(13)
    for interpolation in ("linear", "nearest"):
        field = random_field(rng, 3, interpolation)
        before = gpu.used()
        searcher = cuda.PoseSearcher(field, PoseSearch(EulerRotations(90)))
        taken = gpu.used() - before - searcher.search.rotations.table.nbytes
        assert 0 < taken <= memory.fixed_bytes(field)
        ligands, before = random_ligands(rng, [3, 5]), gpu.used()
        with cuda.cupy.cuda.Stream():
            scores = cuda.Scores(searcher, ligands, range(32), 32)
        taken = gpu.used() - before - scores._copied.nbytes
        monkeypatch.setattr(memory, "MOST_LIGANDS", 2)
        assert taken == memory.working_bytes(2 * 32)
        del searcher, scores
