"""Bond orders and formal charges of MOL2, which states neither as other formats do.

SYBYL's aromatic bonds stand for rings, and for groups that share a charge: carboxylates,
phosphates, sulfonates, guanidinium. Formal charges follow from valences, in this order:

    groups that share a charge get double and single bonds, pentavalent nitrogen (N(=O)=O, N=N#N)
    becomes a nitrogen with a plus beside an atom with a minus;
    double bonds are laid into what is aromatic so that as few atoms as possible are charged;
    an atom with more or fewer bonds than its element has in neutral molecules is charged.

An atom with fewer bonds may as well lack a hydrogen. It is charged by its type (O.co2), beside a
plus, and where the molecule has hydrogens, unless it is carbon. Where there is a section
UNITY_ATOM_ATTR with formal charges, as Open Babel writes it, that decides.

RDKit does not do this. Of 228 molecules that Open Babel wrote its reader of MOL2 (2026.9) refuses
120 and gets 30 wrong, without that section 80 and 7; bond orders that it finds for a total charge
are missing or wrong for one molecule in fifteen (of 2,600 of the NCI).
"""

from collections.abc import Iterable, Mapping
from itertools import count

import numpy as np

from multigpu.formats.molecules.bonds import bonds_of, check_size, neighbours_of
from multigpu.formats.molecules.elements import without_isotopes
from multigpu.formats.molecules.molecule import AROMATIC, Bond, BondGraph, Molecule
from multigpu.kernels.compiled.fragments import fragments

System = dict[int, set[int]]  # partners of each atom

# Charges of elements by valence where that is not one of neutral molecules.
MORE_BONDS = {
    "N": {4: 1}, "O": {3: 1}, "S": {3: 1, 5: 1}, "Se": {3: 1}, "P": {4: 1, 6: -1}, "B": {4: -1},
    "Cl": {2: 1}, "Br": {2: 1}, "I": {2: 1}, "Si": {5: -1},
}  # fmt: skip
FEWER_BONDS = {"N": {2: -1}, "O": {1: -1}, "S": {1: -1}, "Se": {1: -1}, "C": {3: -1}}
MOST_CHARGED = 6  # penalties of the double bonds in one aromatic system that are tried
MOST_TRIED = 20_000  # steps of laying them


def bond_graph(molecule: Molecule) -> BondGraph:
    """Return bonds with orders and formal charges. Aromatic rings keep their order."""
    check_size(molecule)
    return _Graph(molecule).result()


class _Graph:
    """Bonds and charges of a molecule while they are found.

    stated   formal charges in the file
    arms     neighbours of each atom
    bonds    with the orders that are known so far
    systems  aromatic bonds, a system of connected ones after the other: the partners of each atom
    doubles  partner of each atom with an aromatic bond that is double
    sums     of the orders of each atom's bonds, these double bonds included
    """

    def __init__(self, molecule: Molecule) -> None:
        self.molecule, self.types, self.stated = molecule, molecule.types, molecule.formal
        self.elements = without_isotopes(molecule.elements)
        self.bonds = list(bonds_of(molecule))
        self.arms = neighbours_of(len(self.elements), self.bonds)
        self._split_resonance()
        self._split_pentavalent()
        self.systems = _aromatic_systems(self.bonds)
        self.doubles = self._double_bonds()
        self.sums = [0] * len(self.elements)
        for a, b, order in self.bonds:
            for atom in (a, b):
                self.sums[atom] += self._laid(a, b) if order == AROMATIC else order

    def result(self) -> BondGraph:
        charges = self._formal_charges()
        laid_out = self._atoms_laid_out(charges)
        bonds = [
            (a, b, self._laid(a, b) if order == AROMATIC and a in laid_out else order)
            for a, b, order in self.bonds
        ]
        return BondGraph(bonds, charges)

    def _laid(self, a: int, b: int) -> int:
        """Return 2 or 1, the order of an aromatic bond."""
        return 2 if self.doubles.get(a) == b else 1

    def _atoms_laid_out(self, charges: Mapping[int, int]) -> set[int]:
        """Return the atoms of systems that are written as double and single bonds.

        Such systems are no rings, as in an amidinium, or have a nitrogen without its hydrogen:
        where that is would not be known.
        """
        found: set[int] = set()
        for system in self.systems:
            bare = (i for i in system if self.elements[i] == "N" and self.sums[i] == 2)
            if any(i not in charges for i in bare) or min(map(len, system.values())) == 1:
                found.update(system)
        return found

    # ---- groups that share a charge -----------------------------------------------------------

    def _split_resonance(self) -> None:
        """Make double and single bonds of the aromatic ones of groups that are no ring.

        Bonds to atoms that the file gives a charge are single, if there are others.
        """
        bonds = list(self.bonds)
        shared: dict[int, list[int]] = {}
        for k, (a, b, order) in enumerate(bonds):
            for center, arm in ((a, b), (b, a)):
                if self._is_shared(center, arm, order):
                    shared.setdefault(center, []).append(k)
        for center, group in shared.items():
            if any(2 <= order < AROMATIC and center in (a, b) for a, b, order in bonds):
                continue  # the file says which one is double
            if len(group) == 1 and bonds[group[0]][2] == 1:
                continue  # alcoholate
            doubles = _count_doubles(self.elements[center], len(group), len(self.arms[center]))
            group.sort(key=lambda k: self.stated.get(sum(bonds[k][:2]) - center, 0) < 0)
            for i, k in enumerate(group):
                self.bonds[k] = (*bonds[k][:2], 2 if i < doubles else 1)

    def _is_shared(self, center: int, arm: int, order: int) -> bool:
        """Whether the bond is one of a group that shares a charge."""
        if self.types[center] == "C.cat":
            return self.elements[arm] == "N"
        if self.types[arm] == "O.co2":
            return order in (1, AROMATIC)
        return order == AROMATIC and self.elements[arm] == "O" and len(self.arms[arm]) == 1

    def _split_pentavalent(self) -> None:
        """Take one from the orders of nitrogen with five: to oxygen or nitrogen at an end."""
        bonds = list(self.bonds)
        for i in (i for i, element in enumerate(self.elements) if element == "N"):
            around = [k for k, bond in enumerate(bonds) if i in bond[:2]]
            orders = [bonds[k][2] for k in around]
            if AROMATIC in orders or sum(orders) != 5:
                continue
            for k in around:
                a, b, order = bonds[k]
                end = a + b - i
                if order > 1 and len(self.arms[end]) == 1 and self.elements[end] in ("O", "N"):
                    self.bonds[k] = (a, b, order - 1)
                    break

    # ---- double bonds in what is aromatic -----------------------------------------------------

    def _double_bonds(self) -> dict[int, int]:
        """Return the aromatic bonds that are double, so that few atoms are charged."""
        costs, found = self._costs(), dict[int, int]()
        for system in self.systems:
            tried = (_lay(system, costs, allowed) for allowed in range(MOST_CHARGED + 1))
            found |= next((laid for laid in tried if laid is not None), {})
        return found

    def _costs(self) -> dict[int, tuple[int, int]]:
        """Return what it costs each aromatic atom to have no double bond here, and to have one."""
        single = [0] * len(self.elements)
        other: set[int] = set()
        for a, b, order in self.bonds:
            for atom in {a, b}:
                single[atom] += 1 if order == AROMATIC else order
            other.update((a, b) if 1 < order < AROMATIC else ())
        lacks = "H" not in self.elements
        costs = {}
        for i in (i for system in self.systems for i in system):
            element, bound, stated = self.elements[i], single[i], self.stated.get(i, 0)
            if i in other or bound > 3:
                costs[i] = (0, MOST_CHARGED + 1)
            elif stated:
                costs[i] = (0, 2) if stated < 0 else (2, 0)
            elif element == "C":
                costs[i] = (3, 0)
            elif element == "N":
                hydrogen = lacks or self.types[i] == "N.pl3"
                costs[i] = (0, 1) if bound == 3 else (0 if hydrogen else 1, 0)
            elif element == "O":
                costs[i] = (1, 0) if bound == 1 else (0, 2)
            else:
                costs[i] = (0, 2)
        return costs

    # ---- charges ------------------------------------------------------------------------------

    def _formal_charges(self) -> dict[int, int]:
        certain = {i: self._certain_charge(i) for i in range(len(self.elements))}
        sure = {i: charge for i, charge in certain.items() if charge}
        lacking = {
            i: FEWER_BONDS[element][self.sums[i]]
            for i, element in enumerate(self.elements)
            if i not in sure and self.sums[i] in FEWER_BONDS.get(element, {})
        }
        if self.stated:
            return sure | {i: lacking[i] for i in lacking if self.stated.get(i) == lacking[i]}
        plus = {i for i, charge in sure.items() if charge > 0}
        return sure | {i: lacking[i] for i in lacking if self._lacks_no_hydrogen(i, plus)}

    def _lacks_no_hydrogen(self, i: int, plus: set[int]) -> bool:
        """Whether an atom with a bond too few has its hydrogens: they are there, or by a plus."""
        element, is_beside = self.elements[i], not plus.isdisjoint(self.arms[i])
        if "H" in self.elements and (is_beside or element != "C"):
            return True
        return is_beside and (element in ("O", "S", "Se") or len(self.arms[i]) == 1)

    def _certain_charge(self, i: int) -> int:
        """Return the charge of an atom that depends on no other; 0 where others decide."""
        element, valence = self.elements[i], self.sums[i]
        if valence == 0:
            return self.stated.get(i) or round(float(self.molecule.charges[i]))
        if self.types[i] == "N.4":
            return 1
        if self.types[i] == "O.co2" and valence == 1:
            return -1
        return MORE_BONDS.get(element, {}).get(valence, 0)


def _count_doubles(element: str, arms: int, neighbours: int) -> int:
    """Return how many of the bonds of a group that shares a charge are double."""
    if element == "S":
        return min(2, arms) if neighbours > 3 else 1
    if element in ("Cl", "Br", "I"):
        return arms - 1
    return 0 if element == "B" else 1


def _aromatic_systems(bonds: Iterable[Bond]) -> list[System]:
    pairs = sorted(
        {(min(a, b), max(a, b)) for a, b, order in bonds if order == AROMATIC and a != b}
    )
    atoms = 1 + max((b for _, b in pairs), default=-1)
    first = fragments(atoms, np.array(pairs, np.int64).reshape(-1, 2)).tolist()
    systems: dict[int, System] = {}
    for a, b in pairs:
        system = systems.setdefault(first[a], {})
        system.setdefault(a, set()).add(b)
        system.setdefault(b, set()).add(a)
    return list(systems.values())


def _lay(
    system: System, costs: Mapping[int, tuple[int, int]], allowed: int
) -> dict[int, int] | None:
    """Return double bonds that cost no more than is allowed; None where there are none."""
    steps = count()

    def lay(free: System, left: int) -> dict[int, int] | None:
        if next(steps) > MOST_TRIED:
            return None
        if not free:
            return {}
        # The atom with the fewest choices is decided first.
        atom = min(free, key=lambda i: (costs[i][0] <= left) + len(free[i]))
        choices = [(costs[atom][0], atom)]
        by_cost = sorted(free[atom], key=lambda i: (costs[i][1], i))
        choices[:0] = [(costs[atom][1] + costs[other][1], other) for other in by_cost]
        for cost, other in choices:  # the atom itself stands for no double bond
            done = {atom, other}
            if cost <= left:
                rest = {i: partners - done for i, partners in free.items() if i not in done}
                laid = lay(rest, left - cost)
                if laid is not None:
                    return laid | ({atom: other, other: atom} if other != atom else {})
        return None

    return lay(system, allowed)
