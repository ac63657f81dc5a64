"""Bonds and formal charges that follow from where atoms are and from their valences."""

from collections.abc import Sequence

import numpy as np

from multigpu.formats.molecules.elements import HEAVY_HYDROGEN, is_element
from multigpu.formats.molecules.molecule import Bond, BondGraph, Molecule, MoleculeError, Positions
from multigpu.kernels.compiled.fragments import HYDROGEN_RADIUS, fragments, near_pairs

# Covalent radii, Å: Cordero and others 2008 (doi:10.1039/b801115j). Where a file has no bonds, two
# atoms are bonded that are nearer than the sum of theirs and a tolerance.
RADII = {
    **dict.fromkeys(("H", *HEAVY_HYDROGEN), HYDROGEN_RADIUS),
    "B": 0.84, "C": 0.76, "N": 0.71, "O": 0.66, "F": 0.57, "Si": 1.11, "P": 1.07, "S": 1.05,
    "Cl": 1.02, "Se": 1.20, "Br": 1.20, "I": 1.39,
}  # fmt: skip
OTHER_RADIUS = 1.4
MOST_ATOMS = 500  # whose bond orders are found, or of which conformers are made
FULL_NITROGEN = 4  # its valence where it carries a plus


def bonds_of(molecule: Molecule) -> Sequence[Bond]:
    """Return the bonds of the file; atoms without any get single ones to atoms that are near."""
    if molecule.bonds_are_complete:
        return molecule.bonds
    bonded = {atom for bond in molecule.bonds for atom in bond[:2]}
    near = near_bonds(molecule.elements, molecule.positions)
    return [*molecule.bonds, *(bond for bond in near if not bonded.issuperset(bond[:2]))]


def near_bonds(elements: Sequence[str], positions: Positions) -> list[Bond]:
    """Return single bonds between near atoms, but two hydrogens. positions: float64[n, 3], Å."""
    radii = np.array([covalent_radius(element) for element in elements])
    return [(a, b, 1) for a, b in near_pairs(positions, radii).tolist()]


def covalent_radius(element: str) -> float:
    """Return Å; for dummy atoms so small that they bond to nothing."""
    return RADII.get(element, OTHER_RADIUS) if is_element(element) else -np.inf


def fragments_of(molecule: Molecule) -> list[list[int]]:
    """Return the atoms of each fragment, the largest first, of equals the earlier one.

    What is bonded to nothing because it is no atom (`Du`, AutoDock's `G0` and `W`) is of the first.
    A file that says no bonds, and has most atoms outside of the largest, is no molecule: it is one.
    """
    pairs = np.array([bond[:2] for bond in bonds_of(molecule)], np.int64).reshape(-1, 2)
    found: dict[int, list[int]] = {}
    for atom, first in enumerate(fragments(len(molecule.elements), pairs).tolist()):
        found.setdefault(first, []).append(atom)
    pseudo = [
        atom
        for atom, kind in enumerate(molecule.types or molecule.elements)
        if found.get(atom) == [atom]
        and (kind in molecule.format.pseudo_types or not is_element(molecule.elements[atom]))
    ]
    real = [each for first, each in found.items() if first not in pseudo] or [[]]
    largest, *others = sorted(real, key=len, reverse=True)
    if not molecule.bonds and 2 * len(largest) <= sum(map(len, real)):
        return [list(range(len(molecule.elements)))]
    return [sorted([*largest, *pseudo]), *others]


def stated_graph(molecule: Molecule) -> BondGraph:
    """Return the bonds and charges that the file says."""
    return BondGraph(bonds_of(molecule), {atom: e for atom, e in molecule.formal.items() if e})


def graph_by_valence(molecule: Molecule) -> BondGraph:
    """Return the bonds with the file's charges, N+ of valence 4 and O- with one bond on it."""
    bonds = bonds_of(molecule)
    partners = neighbours_of(len(molecule.elements), bonds)
    valences = [0] * len(partners)
    for a, b, order in bonds:
        valences[a] += order
        valences[b] += order
    elements = molecule.elements
    nitrogens = [i for i, element in enumerate(elements) if element == "N"]
    plus = [i for i in nitrogens if valences[i] == FULL_NITROGEN]
    minus = [i for n in plus for i in partners[n] if elements[i] == "O" and valences[i] == 1]
    return BondGraph(
        bonds, {**dict.fromkeys(plus, 1), **dict.fromkeys(minus, -1), **molecule.formal}
    )


def check_size(molecule: Molecule) -> None:
    """Raise MoleculeError for more than MOST_ATOMS, of which bond orders would take minutes."""
    if len(molecule.elements) > MOST_ATOMS:
        raise MoleculeError(
            f"it has {len(molecule.elements):,} atoms, and bond orders of {molecule.format.name}"
            f" are found of up to {MOST_ATOMS}: write its poses as .{molecule.format.name}"
        )


def neighbours_of(atoms: int, bonds: Sequence[Bond]) -> list[list[int]]:
    """Return the atoms that each atom is bonded to."""
    neighbours: list[list[int]] = [[] for _ in range(atoms)]
    for a, b, _ in bonds:
        neighbours[a].append(b)
        neighbours[b].append(a)
    return neighbours
