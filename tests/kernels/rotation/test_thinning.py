"""Poses that are apart, against the distances of all their atoms."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.rotation_cases import random_ligands, random_search

from multigpu.kernels.rotation import Placements, Poses, placed
from multigpu.kernels.rotation.thinning import apart, cross_moments, thin


@examples(40)
@given(st.integers(0, 2**32 - 1), st.floats(0, 5), st.integers(1, 60))
def test_kept__are_apart_over_all_atoms_and_the_others_are_not(
    seed: int, min_rmsd: float, most: int
) -> None:
    rng = np.random.default_rng(seed)
    bodies = random_ligands(rng, [int(rng.integers(1, 9))] * 4)
    search = random_search(rng, listed=True, shifts=True)
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
    bodies = random_ligands(np.random.default_rng(seed), [atoms, 3, atoms, atoms])
    numbers = np.array([0, 2, 3])
    found = cross_moments(bodies, numbers)
    np.testing.assert_array_equal(found[range(3), range(3)], bodies.moments[numbers])
    np.testing.assert_array_equal(found, found.transpose(1, 0, 3, 2))
