"""Bonds and formal charges of a molecule, for another format than the one it came in."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from multigpu.formats.molecules import pdbqt_bonds, sybyl
from multigpu.formats.molecules.molecules import Bond, Molecule, is_element, mol2_head
from multigpu.formats.molecules.v3000 import joined_lines

# Covalent radii, Å: Cordero and others 2008 (doi:10.1039/b801115j). Where a file has no bonds, two
# atoms are bonded that are nearer than the sum of theirs and this tolerance.
RADII = {
    "H": 0.31, "B": 0.84, "C": 0.76, "N": 0.71, "O": 0.66, "F": 0.57, "Si": 1.11, "P": 1.07,
    "S": 1.05, "Cl": 1.02, "Se": 1.20, "Br": 1.20, "I": 1.39,
}  # fmt: skip
OTHER_RADIUS = 1.4
TOLERANCE = 0.4
CHARGE_CODES = {b"1": 3, b"2": 2, b"3": 1, b"5": -1, b"6": -2, b"7": -3}  # of V2000's atoms
CODE, PDB_CHARGE = slice(36, 39), slice(78, 80)  # columns
OF_V3000 = re.compile(rb" CHG=([+-]?\d{1,2})(?!\S)")
SIGNED = re.compile(rb"(\d)([+-])|([+-])(\d)")
FULL_NITROGEN = 4  # its valence where it carries a plus

Charges = Mapping[int, int]  # of atoms from 0, e; those without are left out


class Joined(NamedTuple):
    """Bonds with orders that other programs understand, and the charges that go with them."""

    bonds: Sequence[Bond]
    charges: Charges


def joined(molecule: Molecule) -> Joined:
    """Those of the file; what it does not say follows from places, types and valences.

    Atoms without bonds have single ones to those that are near enough. For MOL2 see `sybyl`, for
    PDBQT `pdbqt_bonds`. In PDB and XYZ nitrogen of valence 4 has a plus, and oxygens with one bond
    on it have a minus.

    Raises MoleculeError where the orders of a PDBQT cannot be told.
    """
    bonds = bonds_of(molecule)
    if molecule.layout == "pdbqt":
        return Joined(*pdbqt_bonds.graph_of(molecule, bonds))
    if molecule.layout == "mol2":
        return Joined(*sybyl.graph_of(molecule, bonds))
    if molecule.layout == "sdf":
        return Joined(bonds, _said_in_sdf(molecule))
    charges = _by_valence(molecule, bonds)
    if molecule.layout == "pdb":
        charges.update(_said_in_pdb(molecule))
    return Joined(bonds, charges)


def bonds_of(molecule: Molecule) -> Sequence[Bond]:
    """Those of the file; without any, single ones between atoms that are near enough.

    In PDB only some atoms may have bonds: there the others get theirs so.
    """
    said = molecule.bonds
    if (said and molecule.layout != "pdb") or has_no_bonds(molecule):
        return said
    done = {atom for a, b, _ in said for atom in (a, b)}
    near = _near_bonds(molecule)
    return [*said, *(bond for bond in near if not (bond[0] in done and bond[1] in done))]


def has_no_bonds(molecule: Molecule) -> bool:
    """Whether a MOL2 says that it has none, as that of ions does."""
    if molecule.layout != "mol2":
        return False
    words = next((molecule.lines[row].split() for row in mol2_head(molecule.lines)[1:]), [])
    return len(words) > 1 and words[1].strip(b"0") == b""


def _near_bonds(molecule: Molecule) -> list[Bond]:
    radii = np.array([_radius(element) for element in molecule.elements])
    bonds: list[Bond] = []
    for a, place in enumerate(molecule.positions):
        apart = np.sqrt(((molecule.positions[a + 1 :] - place) ** 2).sum(axis=1))
        near = np.flatnonzero(apart < radii[a] + radii[a + 1 :] + TOLERANCE) + a + 1
        bonds += [
            (a, b, 1) for b in near.tolist()
            if not molecule.elements[a] == molecule.elements[b] == "H"
        ]  # fmt: skip
    return bonds


def _radius(element: str) -> float:
    """Of what is no element so small that it is near nothing."""
    return RADII.get(element, OTHER_RADIUS) if is_element(element) else -np.inf


# ---- charges that PDB and XYZ do not say ------------------------------------------------------


def _by_valence(molecule: Molecule, bonds: Sequence[Bond]) -> dict[int, int]:
    partners: list[list[int]] = [[] for _ in molecule.elements]
    valences = [0] * len(partners)
    for a, b, order in bonds:
        for atom, other in ((a, b), (b, a)):
            partners[atom].append(other)
            valences[atom] += order
    plus = {
        i for i, element in enumerate(molecule.elements)
        if element == "N" and valences[i] == FULL_NITROGEN
    }  # fmt: skip
    minus = {
        i for i, element in enumerate(molecule.elements)
        if element == "O" and valences[i] == 1 and partners[i][0] in plus
    }  # fmt: skip
    return dict.fromkeys(plus, 1) | dict.fromkeys(minus, -1)


# ---- charges that a file says -----------------------------------------------------------------


def _said_in_sdf(molecule: Molecule) -> dict[int, int]:
    """Of the lines of M  CHG, else of the atoms' own."""
    if b"V3000" in molecule.lines[3]:
        return _said_in_v3000(molecule)
    lines = [molecule.lines[row] for row in molecule.rows]
    said = [
        word for line in molecule.lines[molecule.rows[-1] + 1 :] if line.startswith(b"M  CHG")
        for word in line.split()[3:]
    ]  # fmt: skip
    if said:
        pairs = zip(said[::2], said[1::2], strict=False)
        return {int(atom) - 1: int(charge) for atom, charge in pairs if _are_whole(atom, charge)}
    codes = ((i, CHARGE_CODES.get(line[CODE].strip(), 0)) for i, line in enumerate(lines))
    return {i: charge for i, charge in codes if charge}


def _said_in_v3000(molecule: Molecule) -> dict[int, int]:
    lines = dict(joined_lines(molecule.lines))
    found = ((i, OF_V3000.search(lines[row])) for i, row in enumerate(molecule.rows))
    return {i: int(said[1]) for i, said in found if said and int(said[1])}


def _are_whole(atom: bytes, charge: bytes) -> bool:
    return atom.isdigit() and charge.lstrip(b"+-").isdigit()


def _said_in_pdb(molecule: Molecule) -> dict[int, int]:
    """Of columns 79 and 80: 2+, 1-."""
    found = {}
    for i, row in enumerate(molecule.rows):
        if said := SIGNED.fullmatch(molecule.lines[row][PDB_CHARGE]):
            found[i] = int((said[2] or said[3]) + (said[1] or said[4]))
    return found
