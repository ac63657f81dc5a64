"""Sets of rotations: which there are, which are the same, and how far apart they lie."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from multigpu.kernels.rotation import rotations as rotation
from multigpu.kernels.rotation.rotations import EulerRotations, ListedRotations, Shifts, cos_sin


@pytest.mark.parametrize(
    ("precision", "n"),
    [(360, 1), (1000, 1), (180, 2), (179, 3), (90, 4), (25, 15), (10, 36), (0.1, 3600), (0.7, 515)],
)
def test_euler__has_as_many_steps_as_fit(precision: float, n: int) -> None:
    rotations = EulerRotations(precision)
    assert (rotations.n, rotations.count) == (n, n**3)
    assert (n - 1) * Fraction(str(precision)) < 360 <= n * Fraction(str(precision))


@pytest.mark.parametrize("precision", [
    *(*range(13, 361, 7), 13.5, 16.875, 359.5, 1000, 360, 180, 120, 100, 60, 50, 45, 36, 30),
    *(22.5, 24, 270, 135, 67.5, 54, 33.75, 27),  # 270° is a multiple of p, 90° is none
])  # fmt: skip
def test_euler__misses_no_rotation_and_tries_none_twice(precision: float) -> None:
    """Rotations are rotation.quaternions q and -q, the nearest of which are looked for."""
    rotations = EulerRotations(precision)
    indices = np.arange(rotations.count)
    tried = rotations.is_first(indices)
    found = rotation.quaternions(rotations.matrices(indices))
    tree = cKDTree(np.concatenate([found[tried], -found[tried]]))
    distance, nearest = tree.query(found)
    assert distance.max() < 1e-7
    first = indices[tried][nearest % tried.sum()]
    assert (first <= indices).all()
    np.testing.assert_array_equal(first[tried], indices[tried])
    pairs = tree.query_pairs(1e-7, output_type="ndarray") % tried.sum()
    assert (pairs[:, 0] == pairs[:, 1]).all()


def test_euler__skips_nearly_half_where_the_precision_divides_180() -> None:
    stops = {1: 360**3 // 2, 25: 15**3, 72: 5**3}
    assert {precision: EulerRotations(precision).stop for precision in stops} == stops


def test_euler__matrix_is_the_product_of_three_turns() -> None:
    rotations = EulerRotations(25)
    alpha, beta, gamma = np.radians(rotations.angles(np.array([1234]))[0])
    x = [[1, 0, 0], [0, math.cos(alpha), -math.sin(alpha)], [0, math.sin(alpha), math.cos(alpha)]]
    y = [[math.cos(beta), 0, math.sin(beta)], [0, 1, 0], [-math.sin(beta), 0, math.cos(beta)]]
    z = [[math.cos(gamma), -math.sin(gamma), 0], [math.sin(gamma), math.cos(gamma), 0], [0, 0, 1]]
    product = np.array(z) @ np.array(y) @ np.array(x)
    np.testing.assert_allclose(rotations.matrices(np.array([1234]))[0], product, atol=1e-15)


@given(st.fractions(0, 720))
def test_cosine_and_sine__are_those_of_the_angle_and_exact_at_right_ones(degrees: Fraction) -> None:
    angle = math.radians(degrees)
    assert cos_sin(degrees) == pytest.approx((math.cos(angle), math.sin(angle)), abs=1e-14)
    right = [cos_sin(Fraction(90 * turns)) for turns in range(5)]
    assert right == [(1, 0), (0, 1), (-1, 0), (0, -1), (1, 0)]


@given(st.integers(0, 2**32 - 1))
def test_quaternions__and_matrices_are_each_other_s_inverse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_ones = rng.normal(size=(20, 4)) * rng.choice([0, 1e-3, 1], (20, 4))
    given_ones[~given_ones.any(axis=1)] = (0, 0, 1, 0)
    listed = ListedRotations(given_ones)
    matrices = listed.matrices(np.arange(20))
    np.testing.assert_allclose(matrices @ matrices.transpose(0, 2, 1), [np.eye(3)] * 20, atol=1e-14)
    again = rotation.quaternions(matrices)
    assert (again[:, 0] >= 0).all()
    same = np.abs((again * listed.quaternions).sum(axis=1))
    np.testing.assert_allclose(same, 1, atol=1e-14)


def test_quaternion__turns_as_it_should() -> None:
    half = math.sqrt(0.5)
    matrix = ListedRotations(np.array([[half, 0, 0, half]])).matrices(np.array([0]))[0]
    np.testing.assert_allclose(matrix @ [1, 0, 0], [0, 1, 0], atol=1e-15)


def test_covering_radius__of_one_rotation_and_of_the_cube() -> None:
    one = ListedRotations(np.array([[1.0, 0, 0, 0]]))
    assert rotation.covering_radius(one) == pytest.approx(180, abs=0.1)
    turns = EulerRotations(90)
    cube = ListedRotations(rotation.quaternions(turns.matrices(np.arange(turns.count))))
    # A rotation about (1, 1, 0) by an angle t: cos t = (2 √2 - 1) / 4.
    exact = math.degrees(math.acos((2 * math.sqrt(2) - 1) / 4))
    assert exact - 0.1 < rotation.covering_radius(cube) <= exact + 1e-3
    assert rotation.covering_radius(rotation.near_uniform(10_000)) == pytest.approx(10.22, abs=0.02)


@pytest.mark.parametrize("n", [100, 1000])
def test_near_uniform__leaves_smaller_gaps_than_angles_do(n: int) -> None:
    rotations = rotation.near_uniform(n)
    assert rotations.count == n
    assert rotation.covering_radius(rotations) < 245 * n ** (-1 / 3)
    rng = np.random.default_rng(n)
    random = ListedRotations(rng.normal(size=(n, 4)))
    assert rotation.covering_radius(rotations) < 0.8 * rotation.covering_radius(random)


@pytest.mark.parametrize(
    ("radius", "step", "side"), [(0, 1, 1), (1, 1, 3), (1, 0.3, 7), (0.3, 0.1, 7), (0.5, 2, 1)]
)
def test_shifts__fill_a_cube(radius: float, step: float, side: int) -> None:
    shifts = Shifts(radius, step)
    assert (shifts.sides, shifts.count) == ((side,) * 3, side**3)
    vectors = shifts.vectors(np.arange(shifts.count))
    assert len(np.unique(vectors, axis=0)) == shifts.count
    np.testing.assert_allclose(vectors[0], -step * (side // 2))
    assert (vectors[shifts.count // 2] == 0).all()
    assert np.abs(vectors).max() <= radius + 1e-9


def test_shifts__fill_a_box() -> None:
    shifts = Shifts((1, 0, 0.5), 0.5)
    vectors = shifts.vectors(np.arange(15))
    assert (shifts.sides, shifts.count, len({*map(tuple, vectors)})) == ((5, 1, 3), 15, 15)
    assert vectors[[0, 4]].tolist() == [[-1, 0, -0.5], [-0.5, 0, 0]]
