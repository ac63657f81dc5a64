"""Atoms outside of the grid with AutoDock's penalty: what they score, and how well it is known."""

import importlib
from typing import Any

import numpy as np
import pytest
from support.backends import DEVICES, backend_of
from support.rotation_cases import random_field, random_ligands

from multigpu.kernels.rotation import (
    EulerRotations,
    Field,
    Ligands,
    ListedRotations,
    PoseSearch,
    reference,
)

BACKENDS = ["reference", *DEVICES]
AS_IT_IS = ListedRotations(np.array([[1.0, 0, 0, 0]]))
CENTER, LENGTHS = np.array([11.0, -4.5, 7.0]), np.array([3.0, 4.0, 5.0])  # of the grid below, Å


def module_of(backend: str) -> Any:
    if backend == "reference":
        return importlib.import_module("multigpu.kernels.rotation.reference")
    return backend_of("rotation", backend)


def small_grid(channels: int, interpolation: Any = "linear", outside: Any = "penalty") -> Field:
    """Values of 2 and 0.25, in the first channel and the second."""
    values = np.broadcast_to(np.array([2, 0.25], np.float32)[:channels, None, None, None],
                             (channels, 7, 5, 11))  # fmt: skip
    spacing = LENGTHS / (6, 4, 10)
    origin = CENTER - LENGTHS / 2
    return Field(np.ascontiguousarray(values), origin, spacing, interpolation, outside)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_penalty__is_that_of_autodock(backend: str, interpolation: Any) -> None:
    """1000 kcal/mol/Å² × squared distance from the middle of the grid, in place of all terms."""
    ways = np.array([[0, 0, 1.0], [0, 0, 4.0], [-1.6, 0, 0], [9, -12, 20], [1.4, 1.9, 2.4]])
    charge = 0.5  # of every atom, which is the weight of its second term
    channels = np.tile(np.array([0, 1], np.int32), (len(ways), 1))
    weights = np.tile([1.0, charge], (len(ways), 1))
    ligands = Ligands(CENTER + ways, np.arange(len(ways) + 1), channels, weights)
    searcher = module_of(backend).PoseSearcher(small_grid(2, interpolation), PoseSearch(AS_IT_IS))
    inside = 2 + charge * 0.25
    expected = [inside, -16_000.0, -2_560.0, -625_000.0, inside]
    np.testing.assert_allclose(searcher.best(ligands).score, expected, rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_penalty__is_none_for_atoms_that_score_nothing(backend: str) -> None:
    """Hydrogens on carbon are such atoms, which ligands of AutoDock do not have."""
    places = CENTER + np.array([[0, 0, 0], [0, 0, 4.0]])
    weights = np.array([[1.0], [0.0]])
    ligands = Ligands(places, np.array([0, 2]), np.zeros((2, 1), np.int32), weights)
    search = PoseSearch(AS_IT_IS)
    assert module_of(backend).PoseSearcher(small_grid(1), search).best(ligands).score == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_penalty__keeps_a_body_inside(backend: str) -> None:
    """Clamped, a rod scores as well across the grid as along it."""
    rod = CENTER + np.linspace(-2.3, 2.3, 9)[:, None] * [1, 0, 0]
    ligands, search = Ligands.plain([rod]), PoseSearch(EulerRotations(90))
    module = module_of(backend)
    clamped = module.PoseSearcher(small_grid(1, outside="clamp"), search).best(ligands)
    assert (clamped.pose.tolist(), clamped.score.tolist()) == ([0], [18])
    turned = module.PoseSearcher(small_grid(1), search).best(ligands)
    assert turned.score == 18
    along = search.placements(turned.pose)[0][0] @ [1, 0, 0]
    np.testing.assert_allclose(np.abs(along), [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
@pytest.mark.parametrize("far", [0.0, 3.0, 40.0, 1e4, 1e8])
def test_penalty__of_bodies_anywhere(backend: str, interpolation: Any, far: float) -> None:
    """Answers are the reference's, however many poses single precision cannot tell apart."""
    rng = np.random.default_rng(int(far))
    field = random_field(rng, 3, interpolation, "penalty", steep=True)
    ligands = random_ligands(rng, [9, 1, 20], 3, 2)
    center = field.origin + field.spacing * field.middle + (far, 0, 0)
    search = PoseSearch(EulerRotations(60), center=tuple(center.tolist()), top=2)
    found = module_of(backend).PoseSearcher(field, search).best(ligands)
    expected = reference.PoseSearcher(field, search).best(ligands)
    for column in ("ligand", "pose", "score"):
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))
