"""The search of a whole box on an emulated GPU, against the plain search."""

from typing import Any

import numpy as np
import pytest
from emulation import emulated
from emulation.device import Gpu
from support.backends import machine_of
from support.rotation_cases import MIDDLE, assert_same, conformers, random_field, random_ligands

from multigpu.kernels.rotation import memory, reference
from multigpu.kernels.rotation.rotations import EulerRotations, Shifts, near_uniform
from multigpu.kernels.rotation.types import PoseSearch

without = emulated.why_not()
pytestmark = [pytest.mark.emulated, pytest.mark.skipif(bool(without), reason=without)]

machine = machine_of("rotation/whole_box")


def assert_right(cuda: Any, about: Any, bodies: Any, of: Any, **more: Any) -> int:
    found = cuda.BandSearcher(*about, **more).best(bodies, of)
    field, search, width = about
    assert_same(found, reference.band_poses(field, search, width, bodies, of))
    return len(found)


@pytest.mark.parametrize(("rotations", "radius", "top"), [
    (EulerRotations(90), (0.0, 0.0, 0.0), 9),
    (EulerRotations(54), (0.3, 0.0, 0.3), 300),
    (near_uniform(1), (4.6, 2.4, 0.3), 3),
    (near_uniform(40), (0.6, 0.3, 0.9), 1),
])  # fmt: skip
def test_search__of_any_poses(cuda: Any, rotations: Any, radius: Any, top: int) -> None:
    rng = np.random.default_rng(2)
    search = PoseSearch(rotations, Shifts(radius, 0.3), MIDDLE, top, 0.2)
    field = random_field(rng, 2, outside="penalty")
    bodies = random_ligands(rng, [5, 1, 9], 2, 2)
    assert_right(cuda, (field, search, 2.0), bodies, np.arange(3))


def few_poses(rng: np.random.Generator, top: int, min_rmsd: float) -> tuple[Any, Any]:
    """Return field, search and width; and three ligands, the second of two bodies."""
    search = PoseSearch(near_uniform(9), Shifts(1.2, 0.3), MIDDLE, top, min_rmsd)
    bodies = conformers(rng, random_ligands(rng, [5], 2, 1), 4, 0.6)
    return (random_field(rng, 2), search, 1.0), bodies


@pytest.mark.parametrize(
    ("top", "min_rmsd", "found"), [(7, 0.5, 40), (300, 0.0, 600), (300, 0.3, 9000)]
)
def test_search__of_bands_that_are_longer_than_the_list(
    cuda: Any, monkeypatch: pytest.MonkeyPatch, top: int, min_rmsd: float, found: int
) -> None:
    monkeypatch.setattr("multigpu.kernels.rotation.thinning.FIRST_COMPARED", 10)
    about, bodies = few_poses(np.random.default_rng(3), top, min_rmsd)
    assert assert_right(cuda, about, bodies, np.array([0, 1, 1, 2]), found=found) > 7


@pytest.mark.parametrize("mapped", [1, 3])
def test_search__with_maps_of_some(cuda: Any, monkeypatch: pytest.MonkeyPatch, mapped: int) -> None:
    """Atoms without a map of their own count as at their best, and the answer stays."""
    about, bodies = few_poses(np.random.default_rng(4), 5, 0.5)
    windows = memory.windows_of(*about[:2])[0]
    values = int(memory.map_sides(about[0].shape, windows).prod())
    monkeypatch.setattr(cuda, "MOST_VALUES", mapped * values)
    assert_right(cuda, about, bodies, np.zeros(4, np.int64))


def test_memory__is_what_was_said(cuda: Any, gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    about, bodies = few_poses(np.random.default_rng(5), 5, 0.5)
    before = gpu.used()
    searcher = cuda.BandSearcher(*about, found=100)
    assert gpu.used() - before <= memory.fixed_bytes(about[0]) + 32 * 9
    before, peak, allocate = gpu.used(), [0], gpu.allocate

    def measured(size: int) -> Any:
        made = allocate(size)
        peak[0] = max(peak[0], gpu.used() - before)
        return made

    monkeypatch.setattr(gpu, "allocate", measured)
    kinds = len(np.unique(np.c_[bodies.channels, bodies.weights], axis=0))
    with searcher.there.stream():
        cuda.LigandSearch(searcher, bodies).poses()
    said = memory.band_bytes(about[0], about[1], kinds, 100)
    assert said / 2 < peak[0] <= said + 10_000


def test_field__is_on_a_device_once_and_no_longer_than_it_is_needed(cuda: Any, gpu: Gpu) -> None:
    """The search and the refinement share it."""
    about, _ = few_poses(np.random.default_rng(6), 5, 0.5)
    before = gpu.used()
    one, other = cuda.BandSearcher(*about), cuda.BandSearcher(*about)
    assert one.there is other.there
    del one, other
    assert gpu.used() == before
