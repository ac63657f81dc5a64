"""Bond orders and formal charges of MOL2, which states neither as other formats do.

SYBYL's aromatic bonds stand for rings, and for groups that share a charge: carboxylates,
phosphates, sulfonates, guanidinium. Formal charges follow from valences, in this order:

    groups that share a charge get double and single bonds, pentavalent nitrogen (N(=O)=O, N=N#N)
    becomes a nitrogen with a plus beside an atom with a minus;
    double bonds are laid into what is aromatic so that as few atoms as possible are charged;
    an atom with more or fewer bonds than its element has in neutral molecules is charged.

An atom with fewer bonds may as well lack a hydrogen. It is charged by its type (O.co2), beside a
plus, where its charge in the file is near −1, and where the molecule has hydrogens; unless the
charges of the file sum up to what it is without. Where there is a section UNITY_ATOM_ATTR with
formal charges, as Open Babel writes it, that decides.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import numpy as np

from multigpu.formats.molecules.bonds import bonds_of, check_size, neighbours_of
from multigpu.formats.molecules.elements import without_isotopes
from multigpu.formats.molecules.molecule import AROMATIC, Bond, BondGraph, Molecule, MoleculeError
from multigpu.kernels.compiled.fragments import fragments

Pair = frozenset[int]

NUMBER = re.compile(rb"[+-]?\d+")
SECTION = b"@<TRIPOS>"
ATTRIBUTES = SECTION + b"UNITY_ATOM_ATTR"
NEARLY_ONE = 0.75  # e: what an atom of a group that is charged has at least, and no other
WHOLE = 0.1  # e: how near to a whole number the charges of a file sum up to if they mean something
ION_CHARGES = {
    **dict.fromkeys(("Li", "Na", "K", "Rb", "Cs", "Ag", "Tl"), 1),
    **dict.fromkeys(("Mg", "Ca", "Sr", "Ba", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Cd", "Hg"), 2),
    **dict.fromkeys(("Al", "Ga", "In", "La", "Gd"), 3),
    **dict.fromkeys(("F", "Cl", "Br", "I"), -1),
}
# Charges of elements by valence where that is not one of neutral molecules.
MORE_BONDS = {
    "N": {4: 1}, "O": {3: 1}, "S": {3: 1, 5: 1}, "Se": {3: 1}, "P": {4: 1, 6: -1}, "B": {4: -1},
    "Cl": {2: 1}, "Br": {2: 1}, "I": {2: 1}, "Si": {5: -1},
}  # fmt: skip
FEWER_BONDS = {"N": {2: -1}, "O": {1: -1}, "S": {1: -1}, "Se": {1: -1}, "C": {3: -1}}
MOST_ATOMS = 2_000
MOST_CHARGED = 6  # penalties of the double bonds in one aromatic system that are tried
MOST_TRIED = 20_000  # steps of laying them


def bond_graph(molecule: Molecule) -> BondGraph:
    """Return bonds with orders and formal charges. Aromatic rings keep their order."""
    check_size(molecule, MOST_ATOMS)
    return _Graph(molecule).result()


class _Graph:
    """Bonds and charges of a molecule while they are found.

    stated   formal charges in the file; None where it has none
    arms     neighbours of each atom
    bonds    with the orders that are known so far
    doubles  aromatic bonds that are double
    sums     of the orders of each atom's bonds, these double bonds included
    """

    def __init__(self, molecule: Molecule) -> None:
        self.molecule, self.types = molecule, molecule.types
        self.elements = without_isotopes(molecule.elements)
        self.stated = stated_charges(molecule)
        self.bonds = list(bonds_of(molecule))
        self.arms = neighbours_of(len(self.elements), self.bonds)
        self._split_resonance()
        self._split_pentavalent()
        self.doubles = self._double_bonds()
        self.sums = [0] * len(self.elements)
        for a, b, order in self.bonds:
            real = 1 + (frozenset((a, b)) in self.doubles) if order == AROMATIC else order
            self.sums[a] += real
            self.sums[b] += real

    def result(self) -> BondGraph:
        charges = self._formal_charges()
        rows = enumerate(zip(self.elements, self.sums, strict=True))
        bare = {i for i, (element, valence) in rows if element == "N" and valence == 2}
        laid_out = _atoms_laid_out(self.bonds, bare - set(charges))
        laid = [
            (a, b, 1 + (frozenset((a, b)) in self.doubles))
            if order == AROMATIC and a in laid_out
            else (a, b, order)
            for a, b, order in self.bonds
        ]
        return BondGraph(laid, charges)

    def _stated_charge(self, atom: int) -> int:
        return (self.stated or {}).get(atom, 0)

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
            group.sort(key=lambda k: self._stated_charge(sum(bonds[k][:2]) - center) < 0)
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
        for i in np.flatnonzero(np.array(self.elements) == "N").tolist():
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

    def _double_bonds(self) -> set[Pair]:
        """Return the aromatic bonds that are double, so that few atoms are charged."""
        penalties = self._penalties()
        found: set[Pair] = set()
        for system in _aromatic_systems(self.bonds):
            for allowed in range(MOST_CHARGED + 1):
                laid = _lay_double_bonds(system, penalties, allowed)
                if laid is not None:
                    found |= laid
                    break
        return found

    def _penalties(self) -> dict[int, tuple[int, int]]:
        """Return what it costs each aromatic atom to have no double bond here, and to have one."""
        single = [0] * len(self.elements)
        other: set[int] = set()
        for a, b, order in self.bonds:
            for atom in {a, b}:
                single[atom] += 1 if order == AROMATIC else order
            other.update((a, b) if 1 < order < AROMATIC else ())
        lacks = "H" not in self.elements
        costs = {}
        for i in {atom for bond in self.bonds if bond[2] == AROMATIC for atom in bond[:2]}:
            element, bound, stated = self.elements[i], single[i], self._stated_charge(i)
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
        if self.stated is not None:
            return sure | {i: lacking[i] for i in lacking if self.stated.get(i) == lacking[i]}
        plus = {i for i, charge in sure.items() if charge > 0}
        sure |= {i: lacking.pop(i) for i in list(lacking) if self._is_anion(i, plus)}
        likely = {i: charge for i, charge in lacking.items() if self._has_hydrogens(i)}
        others = {i: charge for i, charge in sure.items() if self.types[i] != "O.co2"}
        total, usual = self._total_charge(), sure | likely
        for chosen in (usual, sure, sure | lacking, others):
            if sum(chosen.values()) == total:
                return chosen
        return usual

    def _is_anion(self, i: int, plus: set[int]) -> bool:
        """Whether an atom with a bond too few carries a minus: beside a plus, or by its charge."""
        is_end = self.elements[i] in ("O", "S", "Se") or len(self.arms[i]) == 1
        beside = is_end and not plus.isdisjoint(self.arms[i])
        return beside or bool(self.molecule.charges[i] <= -NEARLY_ONE)

    def _has_hydrogens(self, i: int) -> bool:
        """Whether the file has the hydrogens that an atom of this kind would have."""
        if self.elements[i] != "C":
            return "H" in self.elements
        return any(
            element == "C" and any(self.elements[arm] == "H" for arm in arms)
            for element, arms in zip(self.elements, self.arms, strict=True)
        )

    def _certain_charge(self, i: int) -> int:
        """Return the charge of an atom that depends on no other; 0 where others decide."""
        element, valence = self.elements[i], self.sums[i]
        if valence == 0:
            partial = round(float(self.molecule.charges[i]))
            return self._stated_charge(i) or partial or ION_CHARGES.get(element, 0)
        if self.types[i] == "N.4":
            return 1
        if self.types[i] == "O.co2" and valence == 1:
            return -1
        return MORE_BONDS.get(element, {}).get(valence, 0)

    def _total_charge(self) -> int | None:
        """Return what the charges of the file sum up to; None where they mean nothing."""
        total = float(self.molecule.charges.sum())
        known = np.any(self.molecule.charges) and abs(total - round(total)) <= WHOLE
        return round(total) if known else None


def _count_doubles(element: str, arms: int, neighbours: int) -> int:
    """Return how many of the bonds of a group that shares a charge are double."""
    if element == "S":
        return min(2, arms) if neighbours > 3 else 1
    if element in ("Cl", "Br", "I"):
        return arms - 1
    return 0 if element == "B" else 1


def _aromatic_systems(bonds: Sequence[Bond]) -> Iterator[list[Pair]]:
    """Yield the aromatic bonds that are connected, one system after the other."""
    found = {frozenset(bond[:2]) for bond in bonds if bond[2] == AROMATIC and bond[0] != bond[1]}
    pairs = sorted(map(sorted, found))
    atoms = 1 + max((b for _, b in pairs), default=-1)
    first = fragments(atoms, np.array(pairs, np.int64).reshape(-1, 2)).tolist()
    systems: dict[int, list[Pair]] = {}
    for pair in pairs:
        systems.setdefault(first[pair[0]], []).append(frozenset(pair))
    yield from systems.values()


def _atoms_laid_out(bonds: Sequence[Bond], bare: set[int]) -> set[int]:
    """Return the atoms of systems that are written as double and single bonds.

    Such systems are no rings, as in an amidinium, or have a nitrogen without its hydrogen: where
    that is would not be known.
    """
    found: set[int] = set()
    for system in _aromatic_systems(bonds):
        atoms = [atom for pair in system for atom in pair]
        if not bare.isdisjoint(atoms) or any(atoms.count(atom) == 1 for atom in atoms):
            found.update(atoms)
    return found


def _lay_double_bonds(
    system: Sequence[Pair], penalties: Mapping[int, tuple[int, int]], allowed: int
) -> set[Pair] | None:
    """Return double bonds that cost no more than is allowed; None where there are none."""
    steps = count()

    def lay(free: dict[int, set[int]], left: int) -> set[Pair] | None:
        if next(steps) > MOST_TRIED:
            return None
        if not free:
            return set()
        # The atom with the fewest choices is decided first.
        atom = min(free, key=lambda i: (penalties[i][0] <= left) + len(free[i]))
        for other in sorted(free[atom], key=lambda i: (penalties[i][1], i)):
            cost = penalties[atom][1] + penalties[other][1]
            if cost <= left:
                others = lay(_without_atoms(free, {atom, other}), left - cost)
                if others is not None:
                    return {frozenset((atom, other)), *others}
        if penalties[atom][0] <= left:
            return lay(_without_atoms(free, {atom}), left - penalties[atom][0])
        return None

    partners: dict[int, set[int]] = {}
    for pair in system:
        a, b = sorted(pair)
        partners.setdefault(a, set()).add(b)
        partners.setdefault(b, set()).add(a)
    try:
        return lay(partners, allowed)
    except RecursionError:
        raise MoleculeError(f"{len(partners):,} atoms are one aromatic system") from None


def _without_atoms(free: Mapping[int, set[int]], done: set[int]) -> dict[int, set[int]]:
    return {atom: others - done for atom, others in free.items() if atom not in done}


def stated_charges(molecule: Molecule) -> dict[int, int] | None:
    """Return the charges in the section of attributes; None where it has none."""
    lines = iter(molecule.lines)
    if not any(line.strip() == ATTRIBUTES for line in lines):
        return None
    rows = {molecule.lines[row].split()[0]: i for i, row in enumerate(molecule.rows)}
    found: dict[int, int] = {}
    atom = -1
    for line in lines:
        words = line.split()
        if line.startswith(SECTION):
            break
        if len(words) == 2 and words[0] == b"charge" and atom >= 0:
            found[atom] = int(words[1]) if NUMBER.fullmatch(words[1]) else 0
        elif len(words) == 2 and words[0].isdigit():
            atom = rows.get(words[0], -1)
    return found or None
