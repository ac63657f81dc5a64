"""Vina's terms of a pair, and their sums over a receptor."""

import numpy as np
import pytest

from multigpu.kernels.maps import GridBox, Receptor
from multigpu.kernels.maps.vina import CUTOFF, STEPS, TYPES, compute_maps, pair_energies


@pytest.mark.parametrize(("one", "other", "distance", "energy"), [
    ("C_P", "C_P", 3.8, -0.035579 - 0.005156 * np.exp(-2.25)),
    ("C_P", "C_P", 6.8, -0.005156 - 0.035579 * np.exp(-36)),
    ("C_P", "O_A", 2.6, 0.840245 - 0.035579 * np.exp(-4) - 0.005156 * np.exp(-4)),
    ("C_H", "Br_H", 4.9, -0.035069 / 2 - 0.035579 * np.exp(-4) - 0.005156 * np.exp(-1)),
    ("O_A", "Met_D", 2.55, -0.587439 / 2 + 0.35**2 * 0.840245
     - 0.035579 * np.exp(-0.49) - 0.005156 * np.exp(-(3.35 / 2) ** 2)),
    ("N_D", "N_D", 3.6, -0.035579 - 0.005156 * np.exp(-2.25)),
    ("S_P", "I_H", 8.0, 0),
])  # fmt: skip
def test_pairs__have_their_energies(one: str, other: str, distance: float, energy: float) -> None:
    for pair in ((one, other), (other, one)):
        assert pair_energies(*pair, np.array([distance])) == pytest.approx(energy, abs=1e-12)


@pytest.mark.parametrize(("atoms", "types"), [(1, 1), (300, 5), (129, len(TYPES))])
def test_maps__sum_the_pairs(atoms: int, types: int) -> None:
    box = GridBox((1.0, -2.0, 30.0), (7, 5, 6), 0.75)
    random = np.random.default_rng(atoms)
    places = random.uniform(-11, 11, (atoms, 3)).round(3) + box.center
    places[::50] = box.origin + box.spacing * random.integers(0, 5, (len(places[::50]), 3))
    places[1::50] = box.origin + np.array([CUTOFF, 0, 0])
    kinds = [*random.choice(np.array([*TYPES, ""]), atoms)]
    expected = np.zeros((types, *box.shape))
    for place, kind in zip(places, kinds, strict=True):
        dx, dy, dz = (p - axis for p, axis in zip(place, box.axes, strict=True))
        steps = np.floor(((dx**2)[:, None, None] + (dy**2)[:, None] + dz**2) * STEPS)
        ends = np.sqrt(steps / STEPS), np.sqrt((steps + 1) / STEPS)
        for probe in range(types) if kind else ():
            expected[probe] += sum(pair_energies(kind, TYPES[probe], end) for end in ends) / 2
    maps = compute_maps(Receptor(places, np.zeros(atoms), tuple(kinds)), box, TYPES[:types])
    assert [*maps] == [*TYPES[:types]]
    np.testing.assert_allclose([*maps.values()], expected, rtol=1e-6, atol=6e-4)
