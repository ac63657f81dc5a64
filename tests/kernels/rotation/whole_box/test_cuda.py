"""The search of a whole box on an emulated GPU, against the plain search."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from emulation import emulated
from emulation.device import Gpu
from support.rotation_cases import ORIGIN, SPACING, assert_same, random_field, random_ligands

from multigpu.kernels.rotation import EulerRotations, Ligands, PoseSearch, Shifts, near_uniform
from multigpu.kernels.rotation.whole_box import reference

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(bool(emulated.why_not()), reason=emulated.why_not()),
]

MIDDLE = tuple((ORIGIN + SPACING * (4, 5.5, 4.5)).tolist())


@pytest.fixture(scope="session")
def machine() -> tuple[Gpu, Any]:
    gpu, rotation = emulated.load("rotation")
    there = {"multigpu.kernels.rotation.cuda": rotation}
    rotation.PACK_BLOCKS = 3
    return emulated.load("rotation/whole_box", gpu, there)


@pytest.fixture
def cuda(machine: tuple[Gpu, Any], gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `multigpu.kernels.rotation.whole_box.cuda`, with little work in a launch."""
    monkeypatch.setattr(machine[1], "ROUND_BLOCKS", 3)
    monkeypatch.setattr(machine[1], "GREEDY", 8)
    return machine[1]


def conformers(rng: np.random.Generator, atoms: int, many: int, channels: int, terms: int) -> Any:
    """Return bodies with the same atoms in different places."""
    one = random_ligands(rng, [atoms], channels, terms)
    places = one.positions + rng.normal(0, 0.6, (many, atoms, 3))
    offsets = np.arange(many + 1) * atoms
    tiled = (np.tile(each, (many, 1)) for each in (one.channels, one.weights))
    return Ligands(places.reshape(-1, 3), offsets, *tiled)


def assert_right(
    cuda: Any, about: tuple[Any, Any, float], bodies: Any, of: Any, **more: Any
) -> int:
    found = cuda.BandSearcher(*about, **more).best(bodies, of)
    assert_same(found, reference.BandSearcher(*about).best(bodies, of))
    return len(found)


@pytest.mark.parametrize(
    ("interpolation", "outside", "steep"),
    list(product(["linear", "nearest"], ["clamp", "zero", "penalty"], [False, True])),
)
def test_search__finds_the_band_of_any_grid(
    cuda: Any, interpolation: str, outside: str, steep: bool
) -> None:
    rng = np.random.default_rng(1)
    field = random_field(rng, 3, interpolation, outside, steep)
    bodies = conformers(rng, 6, 2, 3, 2)
    search = PoseSearch(near_uniform(5), Shifts((2.1, 2.9, 1.2), 0.3), MIDDLE, 9, 0.4)
    assert_right(cuda, (field, search, 1.5), bodies, np.zeros(2, np.int64))
