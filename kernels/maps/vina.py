"""Vina's maps of a receptor: sums over its heavy atoms of what each pair scores.

Terms, weights and radii: Trott and Olson 2010 (doi:10.1002/jcc.21334), Eberhardt and others 2021
(doi:10.1021/acs.jcim.1c00203). Vina looks the terms up in a table with steps of 1/32 Å² of the
squared distance, each the mean of its ends, and so do these maps: the table belongs to what is
compared with Vina.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.maps.cpu import in_slabs, reach
from multigpu.kernels.maps.types import Floats, GridBox, Maps, Receptor, require_types

RADII = {  # Å
    **dict.fromkeys(("C_H", "C_P"), 1.9),
    **dict.fromkeys(("N_P", "N_D", "N_A", "N_DA"), 1.8),
    **dict.fromkeys(("O_P", "O_D", "O_A", "O_DA"), 1.7),
    "S_P": 2.0, "P_P": 2.1, "F_H": 1.5, "Cl_H": 1.8, "Br_H": 2.0, "I_H": 2.2, "Si": 2.2, "At": 2.3,
    "Met_D": 1.2,
}  # fmt: skip
TYPES = tuple(RADII)
HYDROPHOBIC = ("C_H", "F_H", "Cl_H", "Br_H", "I_H")
DONORS = ("N_D", "N_DA", "O_D", "O_DA", "Met_D")
ACCEPTORS = ("N_A", "N_DA", "O_A", "O_DA")
CUTOFF = 8.0  # Å
STEPS = 32  # of the table, per Å² of the squared distance
TORSION_WEIGHT = 0.05846


def compute_maps(receptor: Receptor, box: GridBox, types: Sequence[str]) -> Maps:
    """Return the map of each of Vina's types, float32[box.shape] in kcal/mol, with three decimals.

    receptor: its types are Vina's, "" for hydrogens, which score nothing

    Raises ValueError for a type that Vina lacks.
    """
    require_types(receptor, types, ("", *TYPES), "Vina")
    numbers = {"": -1, **{kind: number for number, kind in enumerate(TYPES)}}
    kinds = np.array([numbers[kind] for kind in receptor.types], np.int32)
    places, kinds, table = receptor.positions[kinds >= 0], kinds[kinds >= 0], pair_table(types)
    x, y, z = box.axes

    def fill(ix: int, energies: Floats) -> None:
        _add_pairs(places, kinds, table, x[ix], y, z, energies)

    return in_slabs(box, types, fill)


def pair_table(types: Sequence[str]) -> Floats:
    """Return float64[len(TYPES), steps, types], kcal/mol: the receptor's type, squared distance."""
    steps = int(STEPS * CUTOFF**2)
    distances = np.sqrt(np.arange(steps + 1) / STEPS)
    pairs = [[pair_energies(kind, probe, distances) for probe in types] for kind in TYPES]
    ends = np.array(pairs).transpose(0, 2, 1)
    return np.ascontiguousarray((ends[:, :-1] + ends[:, 1:]) / 2)


def pair_energies(one: str, other: str, distances: Floats) -> Floats:
    """Return float64[n], kcal/mol, lower is better, of two types at distances in Å."""
    pair, d = {one, other}, distances - (RADII[one] + RADII[other])  # between surfaces
    energies = -0.035579 * np.exp(-((d / 0.5) ** 2)) - 0.005156 * np.exp(-(((d - 3) / 2) ** 2))
    energies += 0.840245 * np.minimum(d, 0) ** 2  # repulsion
    if pair.issubset(HYDROPHOBIC):
        energies -= 0.035069 * np.clip(1.5 - d, 0, 1)
    if (one in DONORS and other in ACCEPTORS) or (one in ACCEPTORS and other in DONORS):
        energies -= 0.587439 * np.clip(d / -0.7, 0, 1)
    return np.where(distances < CUTOFF, energies, 0.0)


@jit
def _add_pairs(
    positions: Any, kinds: Any, table: Any, x: Any, ys: Any, zs: Any, energies: Any
) -> Any:
    """Add the pairs to the energies of the points at x, float64[ny, nz, types]."""
    for atom in range(len(positions)):
        dx = positions[atom, 0] - x
        for iy in range(len(ys)):
            dy = positions[atom, 1] - ys[iy]
            level = dx * dx + dy * dy
            if level >= CUTOFF * CUTOFF:
                continue
            low, high = reach(positions[atom, 2], math.sqrt(CUTOFF * CUTOFF - level), zs)
            for iz in range(low, high):
                dz = positions[atom, 2] - zs[iz]
                squared = level + dz * dz
                if squared < CUTOFF * CUTOFF:
                    pair = table[kinds[atom], int(squared * STEPS)]
                    for kind in range(len(pair)):
                        energies[iy, iz, kind] += pair[kind]
