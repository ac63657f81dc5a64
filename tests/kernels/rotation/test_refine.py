"""Rigid minimisation: the same bytes everywhere, and what "refined" promises."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.backends import DEVICES, backend_of
from support.examples import examples
from support.rotation_cases import RULES, golden_case, plain_ligands, random_field, random_ligands

from multigpu.kernels.rotation.reference import scores_at
from multigpu.kernels.rotation.refine import reference
from multigpu.kernels.rotation.rotations import near_uniform
from multigpu.kernels.rotation.types import Field, Ligands, Placements

FARTHEST, WIDEST, LEAST = 0.02, math.radians(0.2), 0.01  # Å, radian, score


def refiner(backend: str, field: Field) -> Any:
    return backend_of("rotation/refine", backend).Refiner(field)


def random_placements(
    rng: np.random.Generator, field: Field, bodies: Ligands, count: int, spread: float = 1
) -> Placements:
    """Return placements of random bodies, turned at random, within `spread` Å of the middle."""
    middle = field.origin + field.spacing * field.middle
    return Placements(
        ligand=np.sort(rng.integers(0, len(bodies), count)),
        pose=rng.integers(0, 1000, count),
        score=np.zeros(count),
        unrefined=rng.normal(size=count),
        matrix=near_uniform(1000).matrices(rng.integers(0, 1000, count)),
        place=middle + rng.uniform(-spread, spread, (count, 3)),
    )


def scores_near(
    rng: np.random.Generator, field: Field, bodies: Ligands, found: Placements, k: int, count: int
) -> NDArray[np.float64]:
    """Return the scores of a placement, and of `count` moves of it by what "refined" allows."""
    shifts, axes = (rng.normal(size=(count, 3)) for _ in range(2))
    lengths = np.cbrt(rng.random((2, count, 1)))
    shifts *= FARTHEST * lengths[0] / np.linalg.norm(shifts, axis=1, keepdims=True)
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    shifts[0] = axes[0] = 0
    across = np.cross(np.eye(3), axes[:, None, :])
    sine, cosine = np.sin(WIDEST * lengths[1]), np.cos(WIDEST * lengths[1])
    outer = axes[:, :, None] * axes[:, None, :]
    turns = cosine[..., None] * (np.eye(3) - outer) + outer + sine[..., None] * across
    turns[0] = np.eye(3)
    starts = (found.place[k] + shifts - field.origin) / field.spacing
    return scores_at(field, bodies, int(found.ligand[k]), turns @ found.matrix[k], starts)


def assert_refined(field: Field, bodies: Ligands, found: Placements, moves: int = 20_000) -> None:
    rng = np.random.default_rng(1)
    for k in range(len(found)):
        scores = scores_near(rng, field, bodies, found, k, moves)
        assert scores[0] == pytest.approx(found.score[k], rel=1e-9, abs=1e-6)
        assert scores.max() <= found.score[k] + LEAST
    turned = found.matrix @ np.swapaxes(found.matrix, 1, 2)
    np.testing.assert_allclose(turned, np.tile(np.eye(3), (len(found), 1, 1)), atol=1e-12)


def assert_same(found: Placements, expected: Placements) -> None:
    """Compare to the last bit."""
    for column in ("ligand", "pose", "unrefined", "score", "matrix", "place"):
        assert getattr(found, column).tobytes() == getattr(expected, column).tobytes(), column


@pytest.mark.parametrize("backend", DEVICES)
@examples(8)
@given(st.integers(0, 2**32 - 1), *RULES, st.booleans())
def test_backends__agree_to_the_last_bit(
    backend: str, seed: int, interpolation: str, outside: str, steep: bool
) -> None:
    rng = np.random.default_rng(seed)
    channels, terms = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    field = random_field(rng, channels, interpolation, outside, steep)
    bodies = random_ligands(rng, [1, *rng.integers(1, 40, 2).tolist()], channels, terms)
    found = random_placements(rng, field, bodies, 2)
    expected = reference.Refiner(field).refine(bodies, found)
    assert_same(refiner(backend, field).refine(bodies, found), expected)


@pytest.mark.parametrize("outside", ["clamp", "penalty"])
@pytest.mark.parametrize("steep", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_refined__no_small_move_scores_higher(seed: int, steep: bool, outside: str) -> None:
    """On fields much rougher than a pocket; a steep one has cliffs of 100,000."""
    rng = np.random.default_rng(seed)
    field = random_field(rng, 2, "linear", outside, steep)
    bodies = random_ligands(rng, [2, 9, 30], 2, 2)
    found = random_placements(rng, field, bodies, 5)
    assert_refined(field, bodies, refiner("cpu", field).refine(bodies, found))


def test_refined__in_a_pocket(golden: Path) -> None:
    """From within 1 Å of the crystal pose, turned at random, the best is that near the crystal."""
    case = golden_case(golden / "dock" / "real_1stp")
    field = Field(case.field.values, case.field.origin, case.field.spacing, "linear", "penalty")
    rng, bodies = np.random.default_rng(2), case.ligands
    found = random_placements(rng, field, bodies, 60)
    offset = found.place - found.place.mean(axis=0)
    found.place[:] = case.given["crystal"].mean(axis=0) + offset
    refined = refiner("cpu", field).refine(bodies, found)
    assert_refined(field, bodies, refined, 2000)
    assert refined.score.max() == pytest.approx(9.5449, abs=2e-4)
    np.testing.assert_array_equal(refined.unrefined, found.unrefined)


@pytest.mark.parametrize("axis", range(3))
def test_refined__follows_a_narrow_ridge(axis: int) -> None:
    """One atom, on a ridge that rises by 1 an Å and falls by 1,000 to all sides, to its end."""
    along, *across = np.roll(np.indices((21, 21, 21)) - 10.0, axis, axis=0)
    values = along - 1000 * (np.abs(across[0]) + np.abs(across[1]))
    values = np.ascontiguousarray(values[None], np.float32)
    field, bodies = Field(values, np.full(3, -10.0), np.ones(3)), plain_ligands([np.zeros((1, 3))])
    found = random_placements(np.random.default_rng(3), field, bodies, 4, spread=3)
    assert refiner("cpu", field).refine(bodies, found).score.min() > 9.98


@pytest.mark.parametrize("backend", DEVICES)
def test_placements__are_refined_each_by_itself(backend: str) -> None:
    rng = np.random.default_rng(4)
    field, bodies = random_field(rng, 2), random_ligands(rng, [3, 70, 1], 2, 2)
    found = random_placements(rng, field, bodies, 5)
    refine = refiner(backend, field).refine
    parts = [refine(bodies, found.take(np.array([k]))) for k in range(5)]
    assert_same(Placements.joined(parts, [0] * 5), refine(bodies, found))
    none = found.take(np.empty(0, np.int64))
    assert_same(refine(bodies, none), none)
