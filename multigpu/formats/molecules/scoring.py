"""Differences of the scorings of pockets: plain grids, AutoDock 4's maps, and Vina's.

The atom types of a pocket's maps say which it is; a plain grid, as which all atoms score alike, has
none.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules import autodock_types, vina_types
from multigpu.formats.molecules.molecule import Molecule, MoleculeError
from multigpu.kernels.maps.vina import TORSION_WEIGHT, TYPES
from multigpu.kernels.rotation.types import MOST_WEIGHT, energy_channels, energy_terms

Scoring = Literal["grid", "autodock4", "vina"]
VINA_ONLY = {kind for kind in TYPES if "_" in kind}  # Si and At are AutoDock's, too


@dataclass(frozen=True, kw_only=True, eq=False)
class AtomColumns:
    """The atoms of ligands, one ligand after the other.

    positions  float64[atoms, 3], Å
    types      int32[atoms]: index into the pocket's maps, -1 where an atom scores nothing
    charges    float64[atoms], e
    sizes      int64[n]: atoms of each ligand
    torsions   float64[n]: by which its energies are divided, as Vina's; else 0
    """

    positions: NDArray[np.float64]
    types: NDArray[np.int32]
    charges: NDArray[np.float64]
    sizes: NDArray[np.int64]
    torsions: NDArray[np.float64]

    @classmethod
    def untyped(cls, positions: NDArray[np.float64], sizes: NDArray[np.int64]) -> "AtomColumns":
        """Return atoms that all score as one, for a pocket that is one grid."""
        types, charges = np.zeros(len(positions), np.int32), np.zeros(len(positions))
        return cls(
            positions=positions,
            types=types,
            charges=charges,
            sizes=sizes,
            torsions=np.zeros(len(sizes)),
        )

    @classmethod
    def empty(cls, ligands: int) -> "AtomColumns":
        """Return ligands without atoms."""
        return cls.untyped(np.empty((0, 3)), np.zeros(ligands, np.int64))

    @classmethod
    def joined(cls, parts: Sequence["AtomColumns"]) -> "AtomColumns":
        """Return the ligands of all parts; there must be a part."""
        if len(parts) == 1:
            return parts[0]
        names = [field.name for field in fields(cls)]
        return cls(**{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})

    def __getitem__(self, span: slice) -> "AtomColumns":
        """Return consecutive ligands."""
        first, last, _ = span.indices(len(self.sizes))
        atoms = slice(self.borders[first], self.borders[max(first, last)])
        return AtomColumns(
            positions=self.positions[atoms],
            types=self.types[atoms],
            charges=self.charges[atoms],
            sizes=self.sizes[first:last],
            torsions=self.torsions[first:last],
        )

    @cached_property
    def borders(self) -> NDArray[np.int64]:
        """int64[n + 1]: first atom of each ligand, and the number of all atoms."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])

    def replace(self, others: Mapping[int, "AtomColumns"]) -> "AtomColumns":
        """Return the ligands with others, of one each and in order, in these places."""
        parts, begin = [], 0
        for i, other in others.items():
            parts += [self[begin:i], other]
            begin = i + 1
        return AtomColumns.joined([*parts, self[begin:]])


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
