"""RMSD of poses to a reference pose of the same molecule, with its symmetries."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.bonds import bonds_of
from multigpu.formats.molecules.elements import is_heavy
from multigpu.formats.molecules.molecule import Molecule, Positions
from multigpu.formats.optional import quiet_rdkit

MOST_SYMMETRIES = 1 << 16  # ways to lay a molecule on itself, of which the first are tried


@dataclass(frozen=True, kw_only=True, eq=False)
class ReferencePose:
    """A molecule in the pose that others are compared with.

    path      of its file
    molecule  its largest fragment
    """

    path: str
    molecule: Molecule

    def symmetries(self, molecule: Molecule) -> "Symmetries | None":
        """Return how the heavy atoms of a molecule may lie on those of the reference.

        Atoms correspond that have the same element and bonds to corresponding atoms; the orders of
        bonds, which differ between files of one molecule, are not compared. None: it is another
        molecule.
        """
        (reference, kept), (graph, heavy) = self._graph, _heavy_graph(molecule)
        same = reference.GetNumAtoms() == graph.GetNumAtoms() > 0
        if not same or reference.GetNumBonds() != graph.GetNumBonds():
            return None
        found = graph.GetSubstructMatches(reference, uniquify=False, maxMatches=MOST_SYMMETRIES)
        if not found:
            return None
        places = self.molecule.positions[kept]
        return Symmetries(places=places, atoms=np.array(heavy)[np.array(found, np.int64)])

    @cached_property
    def _graph(self) -> tuple[Any, list[int]]:
        return _heavy_graph(self.molecule)


@dataclass(frozen=True, kw_only=True, eq=False)
class Symmetries:
    """Ways to lay a molecule on a reference.

    places  float64[heavy, 3], Å: of the reference
    atoms   int64[ways, heavy]: the atom of the molecule for each of these
    """

    places: Positions
    atoms: NDArray[np.int64]

    def rmsd(self, positions: Positions) -> float:
        """Return the least RMSD of all ways, Å, without any alignment.

        positions: float64[atoms, 3] of a pose of the molecule, Å
        """
        squares = ((positions[:, None] - self.places) ** 2).sum(axis=2)
        sums = squares[self.atoms, np.arange(len(self.places))].sum(axis=1)
        return float(np.sqrt(sums.min() / len(self.places)))


def _heavy_graph(molecule: Molecule) -> tuple[Any, list[int]]:
    """Return RDKit's molecule of the heavy atoms with single bonds, and which atoms these are."""
    heavy = [i for i, element in enumerate(molecule.elements) if is_heavy(element)]
    number = {atom: k for k, atom in enumerate(heavy)}
    with quiet_rdkit() as chem:
        graph = chem.RWMol()
        for atom in heavy:
            graph.AddAtom(chem.Atom(molecule.elements[atom]))
        for a, b, _ in bonds_of(molecule):
            if a in number and b in number:
                graph.AddBond(number[a], number[b], chem.BondType.SINGLE)
    return graph, heavy
