"""Electrostatics without a cutoff: blocks and nodes against the plain sum over all atoms."""

import numpy as np
import pytest

from multigpu.kernels.maps import GridBox, Receptor, compute_maps


@pytest.mark.parametrize("spacing", [0.2, 0.375, 1.0, 4.0])
def test_electrostatics__of_far_atoms_are_the_plain_sum(spacing: float) -> None:
    rng = np.random.default_rng(1)
    places = rng.uniform(-40, 40, (3000, 3))
    charges = rng.uniform(-1, 1, 3000)
    box = GridBox((12.0, -9.0, 3.0), (19, 12, 9), spacing)
    axes = [start + spacing * np.arange(n) for start, n in zip(box.origin, box.shape, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    r = np.sqrt(((points - places) ** 2).sum(axis=-1))
    entry = np.floor(r * 100) / 100
    dielectric = -8.5525 + 86.9525 / (1 + 7.7839 * np.exp(-0.003627 * 86.9525 * entry))
    dielectric[entry == 0] = 1.0
    plain = (332 * 0.1406 * charges / (np.maximum(r, 0.5) * dielectric)).sum(axis=1)
    got = compute_maps(Receptor(places, charges, ("C",) * 3000), box, [])["e"]
    np.testing.assert_allclose(got.ravel(), plain, rtol=1e-6, atol=0.003)
