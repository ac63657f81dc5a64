"""Differences of the scorings of pockets: plain grids, AutoDock 4's maps, and Vina's.

The atom types of a pocket's maps say which it is; a plain grid, as which all atoms score alike, has
none.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules import autodock_types, vina_types
from multigpu.formats.molecules.columns import AtomColumns
from multigpu.formats.molecules.molecule import Molecule, MoleculeError
from multigpu.kernels.maps.vina import TORSION_WEIGHT, TYPES
from multigpu.kernels.rotation.types import MOST_WEIGHT, energy_channels, energy_terms

Scoring = Literal["grid", "autodock4", "vina"]
VINA_ONLY = {kind for kind in TYPES if "_" in kind}  # Si and At are AutoDock's, too


def scoring_of(types: Collection[str]) -> Scoring:
    """Return the scoring of a pocket by the atom types of its maps."""
    if not types:
        return "grid"
    return "autodock4" if VINA_ONLY.isdisjoint(types) else "vina"


def atom_columns(molecule: Molecule, types: Sequence[str]) -> AtomColumns:
    """Return the atoms of a molecule for maps of these types, or for one grid without types.

    Raises MoleculeError.
    """
    sizes = np.array([len(molecule.positions)], np.int64)
    atoms, torsions = AtomColumns.untyped(molecule.positions, sizes), np.zeros(1)
    if not types:
        return atoms
    if scoring_of(types) == "vina":
        found = vina_types.types_for_maps(molecule, types)
        torsions[:] = vina_types.count_torsions(molecule)
    else:
        found = autodock_types.types_for_maps(molecule, types)
    odd = ~(np.abs(found.charges) <= MOST_WEIGHT)
    if odd.any():
        atom = int(odd.argmax())
        raise MoleculeError(f"atom {atom + 1} has a charge of {found.charges[atom]:g}")
    number = {name: i for i, name in enumerate(types)}
    kinds = np.array([number.get(kind, -1) for kind in found.types], np.int32)
    return replace(atoms, types=kinds, charges=found.charges, torsions=torsions)


def score_channels(values: NDArray[np.float32], types: Sequence[str]) -> NDArray[np.float32]:
    """Return the maps of a pocket as channels of scores, float32[channels, nx, ny, nz].

    values: as `Pocket` has them
    """
    if scoring_of(types) == "autodock4":
        return energy_channels(values[:-2], values[-2], values[-1])
    return -values if types else values


def score_terms(
    atoms: AtomColumns, types: Sequence[str]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return channels int32[atoms, terms] and their weights, float64, for `score_channels`.

    Vina divides the energy of a ligand by its torsions. The weights of its atoms are divided, so
    every score is the divided one.
    """
    kinds, scoring = np.maximum(atoms.types, 0), scoring_of(types)
    if scoring == "autodock4":
        channels, weights = energy_terms(kinds, atoms.charges, len(types))
    else:
        divisors = np.repeat(1 + TORSION_WEIGHT * atoms.torsions, atoms.sizes)
        channels, weights = kinds[:, None], 1 / divisors[:, None]
    weights[atoms.types < 0] = 0
    return channels, weights
