"""RMSD of poses to a reference pose of the same molecule, with its symmetries."""

from collections.abc import Sequence
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
    """The largest fragment of a molecule, in the pose that others are compared with."""

    path: str
    molecule: Molecule

    def rmsds(self, molecule: Molecule, poses: Sequence[Positions]) -> NDArray[np.float64]:
        """Return the least RMSD of each pose over all symmetries, Å; NaN for another molecule.

        poses: float64[atoms, 3] of each, Å; nothing is aligned

        Heavy atoms correspond that have the same element and bonds to corresponding atoms; the
        orders of bonds, which differ between files of one molecule, are not compared.
        """
        (reference, kept), (graph, heavy) = self._graph, _heavy_graph(molecule)
        rmsds = np.full(len(poses), np.nan)
        same = reference.GetNumAtoms() == graph.GetNumAtoms() > 0
        if not same or reference.GetNumBonds() != graph.GetNumBonds():
            return rmsds
        found = graph.GetSubstructMatches(reference, uniquify=False, maxMatches=MOST_SYMMETRIES)
        ways, each = np.array(found, np.int64), np.arange(len(kept))
        for row, positions in enumerate(poses if found else ()):
            apart = positions[heavy][:, None] - self.molecule.positions[kept]
            sums = (apart**2).sum(axis=2)[ways, each].sum(axis=1)
            rmsds[row] = np.sqrt(sums.min() / len(kept))
        return rmsds

    @cached_property
    def _graph(self) -> tuple[Any, list[int]]:
        return _heavy_graph(self.molecule)


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
