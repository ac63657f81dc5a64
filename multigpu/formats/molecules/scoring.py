"""Differences of the scorings of pockets: plain grids, AutoDock 4's maps, and Vina's.

The atom types of a pocket's maps say which it is; a plain grid, as which all atoms score alike, has
none.
"""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules import autodock_types, vina_types
from multigpu.formats.molecules.molecule import Molecule, MoleculeError
from multigpu.kernels.maps.vina import TORSION_WEIGHT, TYPES
from multigpu.kernels.rotation.types import MOST_WEIGHT, energy_channels, energy_terms

Scoring = Literal["grid", "autodock4", "vina"]
VINA_ONLY = {kind for kind in TYPES if "_" in kind}  # Si and At are AutoDock's, too


class AtomTerms(NamedTuple):
    """Terms of atoms, which score the sum of weight × channel of `score_channels`.

    types     int32[atoms]: index into the pocket's maps, -1 where an atom scores nothing
    channels  int32[atoms, terms]
    weights   float64[atoms, terms]
    """

    types: NDArray[np.int32]
    channels: NDArray[np.int32]
    weights: NDArray[np.float64]


NO_TERMS = AtomTerms(np.empty(0, np.int32), np.empty((0, 1), np.int32), np.empty((0, 1)))


def scoring_of(types: Collection[str]) -> Scoring:
    """Return the scoring of a pocket by the atom types of its maps."""
    if not types:
        return "grid"
    return "autodock4" if VINA_ONLY.isdisjoint(types) else "vina"


def score_channels(values: NDArray[np.float32], types: Sequence[str]) -> NDArray[np.float32]:
    """Return a pocket's values as channels of scores, float32[channels, nx, ny, nz]."""
    if scoring_of(types) == "autodock4":
        return energy_channels(values[:-2], values[-2], values[-1])
    return -values if types else values


def atom_terms(molecule: Molecule, types: Sequence[str]) -> AtomTerms:
    """Return what the atoms of a molecule score in maps of these types, or in one grid without any.

    Vina divides the energy of a ligand by its torsions. The weights of its atoms are divided, so
    every score is the divided one. Raises MoleculeError.
    """
    if not types:
        return terms_of(np.zeros(len(molecule.positions), np.int32), molecule.charges, types)
    is_vina = scoring_of(types) == "vina"
    found = (vina_types if is_vina else autodock_types).types_for_maps(molecule, types)
    odd = ~(np.abs(found.charges) <= MOST_WEIGHT)
    if odd.any():
        atom = int(odd.argmax())
        raise MoleculeError(f"atom {atom + 1} has a charge of {found.charges[atom]:g}")
    number = {name: i for i, name in enumerate(types)}
    kinds = np.array([number.get(kind, -1) for kind in found.types], np.int32)
    terms = terms_of(kinds, found.charges, types)
    if not is_vina:
        return terms
    divisor = 1 + TORSION_WEIGHT * vina_types.count_torsions(molecule)
    weights = np.where(kinds < 0, 0, 1 / divisor)
    return AtomTerms(kinds, terms.channels[:, :1], weights[:, None])


def terms_of(
    kinds: NDArray[np.int32], charges: NDArray[np.float64], types: Sequence[str]
) -> AtomTerms:
    """Return what atoms score in AutoDock 4's maps or one grid. kinds: index of the type, or -1."""
    if not types:
        return AtomTerms(kinds, kinds[:, None], np.ones((len(kinds), 1)))
    channels, weights = energy_terms(np.maximum(kinds, 0), charges, len(types))
    weights[kinds < 0] = 0
    return AtomTerms(kinds, channels, weights)
