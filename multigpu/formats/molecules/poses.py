"""Poses as text, the ligand's own record with new coordinates or SDF; RMSD to a reference.

In its own format a record keeps all that stands in it. In SDF it keeps atoms, order, elements,
coordinates, bonds and charges. Notes on the pose go where the format has room for them: data items,
remarks, comments.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError, quoted
from multigpu.formats.molecules.bonds import bonds_of
from multigpu.formats.molecules.elements import is_element, is_heavy
from multigpu.formats.molecules.molecule import Bond, Molecule, MoleculeError, PoseNotes, Positions
from multigpu.formats.molecules.registry import POSE_FORMATS, SUFFIXES
from multigpu.formats.molecules.sdf import NO_ELEMENT, SDF, build
from multigpu.formats.optional import quiet_rdkit
from multigpu.formats.storage.suffixes import uncompressed_suffix

ANY_ORDER = 8  # of a bond, as SDF has it
MOST_SYMMETRIES = 1 << 16  # ways to lay a molecule on itself, of which the first are tried


def format_of(path: str) -> str:
    """Return the format of a poses file by its suffix. Raises UsageError for another suffix."""
    suffix = uncompressed_suffix(path)
    if suffix in SUFFIXES and SUFFIXES[suffix].has_poses:
        return SUFFIXES[suffix].name
    *others, last = (each.suffixes[0] for each in POSE_FORMATS if each.has_poses)
    raise UsageError(f"{path}: poses are written as {', '.join(others)} or {last}, all in one")


def render(
    molecule: Molecule, name: str, fmt: str, positions: Positions, notes: PoseNotes
) -> bytes:
    """Return one pose. PDB and PDBQT are without the lines of MODEL and ENDMDL.

    name       of the ligand, where the record does not say one
    positions  float64[n, 3], Å
    notes      what to say about the pose, as text

    Raises MoleculeError where the format has no room for it: as for atoms that are no element,
    which stay as they are in their own format.
    """
    if fmt == molecule.format.name:
        return molecule.format.rewrite(molecule, name, positions, notes)
    if fmt != SDF.name:
        only = fmt.upper()
        raise MoleculeError(f"poses in {only} can be written of {only} only: choose .sdf")
    real = _real_atoms(molecule)
    molecule, positions = _part(molecule, real), positions[real]
    for number, symbol in enumerate(molecule.elements, 1):
        if not is_element(symbol):
            raise MoleculeError(
                f"atom {number} is {quoted(symbol)}, which is no element: its poses can be written"
                f" in its own format only, choose .{molecule.format.name}"
            )
    return build(molecule, name, positions, notes)


def drawing_of(molecule: Molecule) -> tuple[list[int], list[str], list[Bond]]:
    """Return atoms that are drawn, their elements (`*` for none) and bonds, some of any order."""
    drawn = _real_atoms(molecule)
    part = _part(molecule, drawn)
    try:
        bonds = part.format.bond_graph(part).bonds
    except MoleculeError:
        bonds = [(a, b, ANY_ORDER) for a, b, _ in bonds_of(part)]
    elements = [each if is_element(each) else NO_ELEMENT for each in part.elements]
    return drawn, elements, [*bonds]


def _real_atoms(molecule: Molecule) -> list[int]:
    """Return all atoms but what only AutoDock has: glue of opened macrocycles, its waters."""
    pseudo, kinds = molecule.format.pseudo_types, molecule.types or molecule.elements
    return [i for i, kind in enumerate(kinds) if kind not in pseudo]


def _part(molecule: Molecule, atoms: list[int]) -> Molecule:
    if len(atoms) == len(molecule.elements):
        return molecule
    return replace(
        molecule,
        rows=[molecule.rows[i] for i in atoms],
        positions=molecule.positions[atoms],
        elements=[molecule.elements[i] for i in atoms],
        types=[molecule.types[i] for i in atoms],
        charges=molecule.charges[atoms],
    )


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
