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

from multigpu.formats.molecules.bonds import bonds_of, neighbours_of
from multigpu.formats.molecules.molecule import (
    AROMATIC,
    Bond,
    BondGraph,
    Molecule,
    MoleculeError,
)

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
MOST_CHARGED = 6  # penalties of the double bonds in one aromatic system that are tried
MOST_TRIED = 20_000  # steps of laying them


def bond_graph(molecule: Molecule) -> BondGraph:
    """Return bonds with orders and formal charges. Aromatic rings keep their order."""
    formal = _charges_in_file(molecule)
    bonds = _without_resonance(molecule, bonds_of(molecule), formal or {})
    bonds = _without_pentavalent(molecule, bonds)
    doubles = _double_bonds(molecule, bonds, formal or {})
    found = _Valences(molecule, bonds, doubles)
    charges = _formal_charges(molecule, found, formal)
    rows = enumerate(zip(molecule.elements, found.sums, strict=True))
    bare = {i for i, (element, valence) in rows if element == "N" and valence == 2} - set(charges)
    laid_out = _atoms_laid_out(bonds, bare)
    laid = [
        (a, b, 1 + (frozenset((a, b)) in doubles)) if order == AROMATIC and a in laid_out
        else (a, b, order)
        for a, b, order in bonds
    ]  # fmt: skip
    return BondGraph(laid, charges)


# ---- groups that share a charge ---------------------------------------------------------------


def _without_resonance(
    molecule: Molecule, bonds: Sequence[Bond], formal: Mapping[int, int]
) -> list[Bond]:
    """Return bonds with double and single ones for the aromatic ones of groups that are no ring.

    Bonds to atoms that the file gives a charge are single, if there are others.
    """
    arms = neighbours_of(len(molecule.elements), bonds)
    shared: dict[int, list[int]] = {}
    for k, (a, b, order) in enumerate(bonds):
        for center, arm in ((a, b), (b, a)):
            if _is_shared(molecule, center, arm, order, arms):
                shared.setdefault(center, []).append(k)
    found = list(bonds)
    for center, some in shared.items():
        if any(2 <= order < AROMATIC and center in (a, b) for a, b, order in bonds):
            continue  # the file says which one is double
        if len(some) == 1 and bonds[some[0]][2] == 1:
            continue  # alcoholate
        doubles = _count_doubles(molecule.elements[center], len(some), len(arms[center]))
        for i, k in enumerate(
            sorted(some, key=lambda k: formal.get(sum(bonds[k][:2]) - center, 0) < 0)
        ):
            found[k] = (*bonds[k][:2], 2 if i < doubles else 1)
    return found


def _is_shared(
    molecule: Molecule, center: int, arm: int, order: int, arms: Sequence[Sequence[int]]
) -> bool:
    """Whether the bond is one of a group that shares a charge."""
    if molecule.types[center] == "C.cat":
        return molecule.elements[arm] == "N"
    if molecule.types[arm] == "O.co2":
        return order in (1, AROMATIC)
    return order == AROMATIC and molecule.elements[arm] == "O" and len(arms[arm]) == 1


def _count_doubles(element: str, arms: int, neighbours: int) -> int:
    """Return how many of the bonds of a group that shares a charge are double."""
    if element == "S":
        return min(2, arms) if neighbours > 3 else 1
    if element in ("Cl", "Br", "I"):
        return arms - 1
    return 0 if element == "B" else 1


def _without_pentavalent(molecule: Molecule, bonds: list[Bond]) -> list[Bond]:
    """Return bonds with one less where nitrogen has five: to oxygen or nitrogen at an end."""
    arms = neighbours_of(len(molecule.elements), bonds)
    found = list(bonds)
    for i, element in enumerate(molecule.elements):
        own = [k for k, bond in enumerate(bonds) if i in bond[:2]] if element == "N" else []
        orders = [bonds[k][2] for k in own]
        if AROMATIC in orders or sum(orders) != 5:
            continue
        for k in own:
            a, b, order = bonds[k]
            end = a + b - i
            if order > 1 and len(arms[end]) == 1 and molecule.elements[end] in ("O", "N"):
                found[k] = (a, b, order - 1)
                break
    return found


# ---- double bonds in what is aromatic ---------------------------------------------------------


def _aromatic_systems(bonds: Sequence[Bond]) -> Iterator[list[Pair]]:
    """Yield the aromatic bonds that are connected, one system after the other."""
    left = {frozenset(bond[:2]) for bond in bonds if bond[2] == AROMATIC and bond[0] != bond[1]}
    while left:
        first = min(left, key=sorted)
        system, atoms = {first}, set(first)
        while more := {pair for pair in left - system if pair & atoms}:
            system |= more
            atoms |= frozenset().union(*more)
        left -= system
        yield sorted(system, key=sorted)


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


def _double_bonds(
    molecule: Molecule, bonds: Sequence[Bond], formal: Mapping[int, int]
) -> set[Pair]:
    """Return the aromatic bonds that are double, so that as few atoms as possible are charged."""
    penalties = _penalties(molecule, bonds, formal)
    found: set[Pair] = set()
    for system in _aromatic_systems(bonds):
        for allowed in range(MOST_CHARGED + 1):
            laid = _lay_double_bonds(system, penalties, allowed)
            if laid is not None:
                found |= laid
                break
    return found


def _penalties(
    molecule: Molecule, bonds: Sequence[Bond], formal: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    """Return what it costs an aromatic atom to have no double bond of these, and to have one."""
    impossible = MOST_CHARGED + 1
    single = np.zeros(len(molecule.elements), np.int64)
    other: set[int] = set()
    for a, b, order in bonds:
        single[[a, b]] += 1 if order == AROMATIC else order
        other.update((a, b) if 1 < order < AROMATIC else ())
    lacks = "H" not in molecule.elements
    costs = {}
    for i in {atom for a, b, order in bonds if order == AROMATIC for atom in (a, b)}:
        element, bound = molecule.elements[i], int(single[i])
        if i in other or bound > 3:
            costs[i] = (0, impossible)
        elif formal.get(i, 0):
            costs[i] = (0, 2) if formal[i] < 0 else (2, 0)
        elif element == "C":
            costs[i] = (3, 0)
        elif element == "N":
            hydrogen = lacks or molecule.types[i] == "N.pl3"
            costs[i] = (0, 1) if bound == 3 else (0 if hydrogen else 1, 0)
        elif element == "O":
            costs[i] = (1, 0) if bound == 1 else (0, 2)
        else:
            costs[i] = (0, 2)
    return costs


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
                more = lay(_without_atoms(free, {atom, other}), left - cost)
                if more is not None:
                    return {frozenset((atom, other)), *more}
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


# ---- charges ----------------------------------------------------------------------------------


class _Valences:
    """Neighbours of all atoms and the sums of their bond orders, double bonds included."""

    def __init__(self, molecule: Molecule, bonds: Sequence[Bond], doubles: set[Pair]) -> None:
        self.arms = neighbours_of(len(molecule.elements), bonds)
        self.sums = [0] * len(self.arms)
        for a, b, order in bonds:
            real = 1 + (frozenset((a, b)) in doubles) if order == AROMATIC else order
            self.sums[a] += real
            self.sums[b] += real


def _formal_charges(
    molecule: Molecule, found: _Valences, formal: Mapping[int, int] | None
) -> dict[int, int]:
    """Return the formal charges of atoms. formal: those of the file, None where it has none."""
    sure = {
        i: charge for i, element in enumerate(molecule.elements)
        if (charge := _certain_charge(molecule, i, element, found.sums[i], formal or {}))
    }  # fmt: skip
    lacking = {
        i: charge for i, element in enumerate(molecule.elements)
        if i not in sure and (charge := FEWER_BONDS.get(element, {}).get(found.sums[i], 0))
    }  # fmt: skip
    if formal is not None:
        return sure | {i: charge for i, charge in lacking.items() if formal.get(i) == charge}
    plus = {i for i, charge in sure.items() if charge > 0}
    sure |= {i: lacking.pop(i) for i in list(lacking) if _is_anion(molecule, i, found, plus)}
    likely = {i: lacking[i] for i in lacking if _has_hydrogens(molecule, i, found)}
    others = {i: sure[i] for i in sure if molecule.types[i] != "O.co2"}
    total, usual = _total_charge(molecule), sure | likely
    for chosen in (usual, sure, sure | lacking, others):
        if sum(chosen.values()) == total:
            return chosen
    return usual


def _is_anion(molecule: Molecule, i: int, found: _Valences, plus: set[int]) -> bool:
    """Whether an atom with a bond too few carries a minus: beside a plus, or as its charge says."""
    is_end = molecule.elements[i] in ("O", "S", "Se") or len(found.arms[i]) == 1
    beside = is_end and not plus.isdisjoint(found.arms[i])
    return beside or bool(molecule.charges[i] <= -NEARLY_ONE)


def _has_hydrogens(molecule: Molecule, i: int, found: _Valences) -> bool:
    """Whether the file has the hydrogens that an atom of this kind would have."""
    if molecule.elements[i] != "C":
        return "H" in molecule.elements
    return any(
        element == "C" and any(molecule.elements[arm] == "H" for arm in arms)
        for element, arms in zip(molecule.elements, found.arms, strict=True)
    )


def _certain_charge(
    molecule: Molecule, i: int, element: str, valence: int, formal: Mapping[int, int]
) -> int:
    """Return the charge of an atom that depends on no other; 0 where others decide."""
    if valence == 0:
        partial = round(float(molecule.charges[i]))
        return formal.get(i, 0) or partial or ION_CHARGES.get(element, 0)
    if molecule.types[i] == "N.4":
        return 1
    if molecule.types[i] == "O.co2" and valence == 1:
        return -1
    return MORE_BONDS.get(element, {}).get(valence, 0)


def _charges_in_file(molecule: Molecule) -> dict[int, int] | None:
    """Return the charges in the section of attributes; None without that section."""
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
        elif len(words) == 2 and words[0] in rows:
            atom = rows[words[0]]
    return found


def _total_charge(molecule: Molecule) -> int | None:
    """Return what the charges of the file sum up to; None where they mean nothing."""
    total = float(molecule.charges.sum())
    known = np.any(molecule.charges) and abs(total - round(total)) <= WHOLE
    return round(total) if known else None
