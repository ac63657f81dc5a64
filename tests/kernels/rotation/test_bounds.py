"""Errors of single precision: the bound holds, is narrow enough, and is what a GPU finds.

What `bounds.cuh` finds are the errors and thresholds that docs/dock.md proves, here in plain NumPy.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import rotation_cases as cases
from support.backends import DEVICES, backend_of
from support.examples import examples

from multigpu.kernels.rotation import reference
from multigpu.kernels.rotation.bounds import (
    KAPPAS,
    LEAST,
    MOST,
    SHORTFALLS,
    SLACK,
    UNIT,
    FieldBounds,
    place_errors,
)
from multigpu.kernels.rotation.rotations import EulerRotations, Floats
from multigpu.kernels.rotation.types import Field, Ligands, PoseSearch

pytestmark = pytest.mark.parametrize("device", DEVICES[1:])


@dataclass(frozen=True)
class Bounds:
    """Bounds of one ligand: E(b), float64[powers], inf where none was found, and T."""

    errors: Floats
    top: float

    def threshold_above(self, score: float) -> np.float32:
        """Return what no pose is below in single precision whose score is at least this."""
        at_most = self.top - np.r_[0.0, SHORTFALLS[:-1]] + self.errors
        possible = self.errors[at_most >= score]
        threshold = np.float32(score - possible.max() if len(possible) else -np.inf)
        return np.nextafter(threshold, np.float32(-np.inf))

    def threshold(self, greatest: np.float32) -> np.float32:
        """Return the score below which no pose can win, from the greatest of a decided pose."""
        highest = float(greatest)
        at_most = self.top - np.r_[0.0, SHORTFALLS[:-1]] + self.errors
        at_least = self.top - SHORTFALLS - self.errors
        possible = self.errors[(at_most >= highest) & (at_least <= highest)]
        lowest = highest - possible.max() if len(possible) else -np.inf
        return self.threshold_above(lowest)


def bounds_of(field: Field, ligand: Ligands, search: PoseSearch) -> Bounds:
    """Return the bounds of one ligand."""
    found = FieldBounds(field)
    channels, weights = ligand.channels.ravel(), ligand.weights.ravel()
    (delta,) = place_errors(field, ligand, search)
    rounding = (len(weights) + 32) * UNIT
    is_jumpy = field.interpolation == "nearest" and field.outside != "penalty"
    change = rounding if is_jumpy else rounding + delta
    powers = np.frexp(weights)[1][:, None]  # weight >= 2^(power - 1)
    # top - M <= 2^(b + 1) / weight <= 2^(b + 2 - power) < 2^(b + 3 - power)
    reach = (np.arange(len(SHORTFALLS)) + 3 - powers).clip(0, MOST - LEAST)
    steep = found.steepness[channels[:, None], reach]  # [terms, powers, kappas]
    tops = found.tops[channels].astype(float)
    rounded = rounding * (weights @ np.abs(tops) + SHORTFALLS)
    sums = np.einsum("t,tpk->pk", weights, steep) + KAPPAS * SHORTFALLS[:, None]
    left = 1 - delta * KAPPAS
    errors = sums * change + rounded[:, None]
    errors = np.where(left > 0.1, errors * SLACK / np.maximum(left, 0.1), np.inf).min(axis=1)
    fits = (SLACK * delta * steep[:, :, 0] <= SHORTFALLS * 2.0 ** (1 - powers)).all(axis=0)
    errors[~fits | (delta >= 0.5)] = np.inf
    return Bounds(np.minimum.accumulate(errors[::-1])[::-1], float(weights @ tops))


def single(device: str, field: Field, ligands: Ligands, search: PoseSearch) -> Any:
    """The scores of all poses of the one ligand in single precision, and its threshold."""
    cuda, span = backend_of("rotation", device), range(search.stop)
    with cuda.cupy.cuda.Stream():
        scores = cuda.Scores(cuda.PoseSearcher(field, search), ligands, span, len(span))
        scores.score(span)
        found = scores.held.get()
        scores.settle()
        return found, scores.thresholds.get()


def assert_within_bounds(device: str, field: Field, ligands: Ligands, search: PoseSearch) -> None:
    """The error of every pose that counts as decided; those that repeat others are -inf."""
    found, _ = single(device, field, ligands, search)
    exact = reference.scores(field, ligands, 0, search, np.arange(search.stop))
    bounds, decided = bounds_of(field, ligands, search), np.isfinite(found)
    shortfall = bounds.top - np.minimum(found, exact)[decided]
    power = np.searchsorted(SHORTFALLS, 2 * shortfall).clip(0, len(SHORTFALLS) - 1)
    assert (np.abs(found - exact)[decided] <= bounds.errors[power]).all()
    for floor in np.quantile(exact, [0, 0.5, 0.99]):
        threshold = bounds.threshold_above(floor)
        assert (found[decided & (exact >= floor)] >= threshold).all()


@examples(40)
@given(cases.SEEDS, *cases.RULES, st.sampled_from(["flat", "steep", "hair-splitting"]))
def test_error__of_every_decided_pose_is_within_the_bound(
    device: str, seed: int, interpolation: str, outside: str, kind: str
) -> None:
    """Also where single precision cannot tell."""
    rng = np.random.default_rng(seed)
    if kind == "hair-splitting":
        case = cases.hair_splitting_case(rng, interpolation, outside)
        assert_within_bounds(device, case.field, case.ligands, case.search)
        return
    field = cases.random_field(rng, 2, interpolation, outside, steep=kind == "steep")
    ligands = cases.random_ligands(rng, [int(rng.integers(1, 60))], 2, 2)
    search = cases.random_search(rng, listed=True, shifts=False)
    assert_within_bounds(device, field, ligands, search)


@pytest.mark.parametrize("steep", [False, True])
def test_threshold__leaves_few_poses_to_double_precision(device: str, steep: bool) -> None:
    rng = np.random.default_rng(1)
    counts = []
    for _ in range(10):
        field = cases.random_field(rng, steep=steep)
        ligands = cases.random_ligands(rng, [30])
        search = PoseSearch(EulerRotations(20))
        found, thresholds = single(device, field, ligands, search)
        threshold = bounds_of(field, ligands, search).threshold(found[np.isfinite(found)].max())
        np.testing.assert_allclose(thresholds, threshold, rtol=2**-22)
        counts.append(int((found >= threshold).sum()))
    assert min(counts) >= 1
    assert np.median(counts) <= (30 if steep else 2)


@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_error__of_the_penalty_is_within_the_bound(device: str, interpolation: Any) -> None:
    """Nothing else errs; places along it are known least well."""
    values = np.zeros((1, 4001, 2, 2), np.float32)
    field = Field(values, np.zeros(3), np.full(3, 0.7), interpolation, "penalty")
    rng = np.random.default_rng(3)
    center = (0.7 * 2000.123, 0.31, 0.37)
    for _ in range(20):
        ligands = cases.plain_ligands([rng.normal(0, 2, (2, 3))])
        assert_within_bounds(device, field, ligands, PoseSearch(EulerRotations(30), center=center))


FIELDS = list(product(["linear", "nearest"], ["clamp", "zero", "penalty"], [False, True]))
# Of a cell, places may then be off by next to nothing, 0.03, 0.4, 0.8 and more than 100.
CENTERS = [None, *((far, 0.0, 0.0) for far in (2e4, 3e5, 6e5, 1e8))]


def odd_ligands(rng: np.random.Generator, sizes: list[int], channels: int, terms: int) -> Ligands:
    """Weights of 0, of any size, and usual ones; the last ligand scores nothing at all."""
    plain = cases.random_ligands(rng, sizes, channels, terms)
    kind = rng.integers(0, 3, plain.weights.shape)
    kind[plain.offsets[-2] :] = 0
    weights = np.choose(kind, [0, 10 ** rng.uniform(-15, 3, kind.shape), plain.weights])
    return Ligands(plain.positions, plain.offsets, plain.channels, weights)


@pytest.mark.parametrize("center", CENTERS)
@pytest.mark.parametrize(("interpolation", "outside", "steep"), FIELDS)
def test_errors__are_those_of_the_proof(
    device: str, interpolation: str, outside: str, steep: bool, center: Any
) -> None:
    cuda = backend_of("rotation", device)
    rng = np.random.default_rng([steep, CENTERS.index(center)])
    terms = int(rng.integers(1, 4))
    field = cases.random_field(rng, 3, interpolation, outside, steep)
    ligands = odd_ligands(rng, [1, 40, 7, 12, 3], 3, terms)
    search = PoseSearch(EulerRotations(90), center=center)
    bounds = [bounds_of(field, ligands[i : i + 1], search) for i in range(len(ligands))]
    with cuda.cupy.cuda.Stream():
        scores = cuda.Scores(cuda.PoseSearcher(field, search), ligands, range(1), 1)
        errors, tops = scores.errors.get(), scores.tops.get()
    expected = np.array([each.errors for each in bounds])
    assert np.isinf(expected).all() == (center in CENTERS[3:])
    np.testing.assert_allclose(errors, expected, rtol=1e-13)
    np.testing.assert_allclose(tops, [each.top for each in bounds], rtol=1e-13, atol=1e-13)
