"""One molecule of a file, and what is derived from it: bonds, types, notes on a pose.

Coordinates are in Å. Atoms keep their order; hydrogens are kept as given. Names, properties, bonds
and whatever else stands in a record survive, because a pose is written by putting new numbers into
the lines of its atoms.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.elements import is_heavy
from multigpu.kernels.compiled.fragments import CROWDED, are_crowded
from multigpu.kernels.rotation.types import FARTHEST, MOST_WEIGHT

AROMATIC, AMIDE = 4, 1  # bond orders
FEWEST_FLAT = 4  # atoms of a drawing: three are always in a plane

Positions = NDArray[np.float64]  # [atoms, 3], Å
Bond = tuple[int, int, int]  # two atoms from 0, and the order; 4: aromatic
PoseNotes = Mapping[str, str]  # what the text of a pose says about it, by name
FormalCharges = Mapping[int, int]  # of atoms from 0, e; those without are left out


class MoleculeError(ValueError):
    """Error in one molecule; the text says what is wrong, for its user."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Molecule:
    """One molecule of a file.

    format     the format of the file
    name       as the record says it; empty where it says none
    lines      of the record, with their ends
    rows       int[n]: in which line each atom stands
    positions  float64[n, 3], Å, within ±FARTHEST
    elements   symbols
    types      of MOL2 and PDBQT the file's own, SYBYL's and AutoDock's; else empty
    charges    float64[n], e, of MOL2 and PDBQT; else empty
    bonds      of SDF, MOL2 and the CONECT of PDB; else empty
    formal     formal charges that the record states, e
    bonds_are_complete  whether atoms without bonds have none; else they get those to near atoms
    is_part    whether the file's record has other atoms, which are left out
    """

    format: "LigandFormat"
    name: str
    lines: list[bytes]
    rows: list[int]
    positions: Positions
    elements: list[str]
    types: list[str] = field(default_factory=list)
    charges: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    bonds: Sequence[Bond] = ()
    formal: FormalCharges = field(default_factory=dict)
    bonds_are_complete: bool = False
    is_part: bool = False

    @property
    def text(self) -> bytes:
        """The whole record."""
        return b"".join(self.lines)

    @property
    def heavy(self) -> int:
        """Number of atoms that are no hydrogen."""
        return sum(map(is_heavy, self.elements))

    def is_conformer_of(self, other: "Molecule") -> bool:
        """Whether both have the same atoms and charges, and the same bonds in their records."""
        names = ("format", "elements", "types", "bonds", "formal", "bonds_are_complete", "is_part")
        same = all(getattr(self, name) == getattr(other, name) for name in names)
        return same and self.bonds_are_complete and np.array_equal(self.charges, other.charges)


class BondGraph(NamedTuple):
    """Bonds with orders that other programs understand, and the charges that go with them."""

    bonds: Sequence[Bond]
    charges: FormalCharges


class AtomTypes(NamedTuple):
    """AutoDock's view of a molecule: types, "" where an atom scores nothing, and float64[n], e."""

    types: list[str]
    charges: NDArray[np.float64]


PoseWriter = Callable[[Molecule, str, Positions, PoseNotes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LigandFormat:
    """One format of ligands: all that the program knows of it. `registry` has all of them.

    name        "sdf": what a source calls its layout, and poses their format
    suffixes    of its files, without those of compression; the first is that of poses
    signature   what is in the content of a file whose name does not tell its format
    find_ends   text that begins with a record → ends of records, see `fields`
    parse       lines of a record → molecule. Raises MoleculeError that names the line, from 1
    read_name   record → the name it gives its molecule, even where the rest of it is wrong
    rewrite     molecule of this format, name for a record without one, positions, notes → record
                of the pose, which keeps everything else
    keep_atoms  molecule, some of its atoms → lines of its record with these atoms only
    bond_graph  molecule → bonds with orders, and formal charges
    atom_types  molecule → AutoDock's types and charges; None: the format says too little
    has_models  whether poses in one file stand between lines of MODEL and ENDMDL
    has_polar_hydrogens_only  whether molecules come without the hydrogens of their carbons
    fewest_flat_atoms  record → from how many atoms with one z on it is a drawing
    pseudo_types  atom types that stand for no atom, and are in no other format
    has_poses   whether poses are written in it
    """

    name: str
    suffixes: tuple[str, ...]
    signature: re.Pattern[bytes]
    find_ends: Callable[[bytes, bool], list[int]]
    parse: Callable[[list[bytes]], Molecule]
    read_name: Callable[[bytes], str]
    rewrite: PoseWriter
    keep_atoms: Callable[[Molecule, Sequence[int]], list[bytes]]
    bond_graph: Callable[[Molecule], BondGraph]
    atom_types: Callable[[Molecule], AtomTypes] | None = None
    has_models: bool = False
    has_polar_hydrogens_only: bool = False
    fewest_flat_atoms: Callable[[bytes], float] = lambda _: FEWEST_FLAT
    pseudo_types: frozenset[str] = frozenset()
    has_poses: bool = True


def check_molecule(molecule: Molecule) -> Molecule:
    """Return the molecule. Raises MoleculeError for numbers that no kernel takes."""
    if not molecule.rows:
        raise MoleculeError("it has no atoms")
    near = (np.abs(molecule.positions) <= FARTHEST).all(axis=1)
    if not near.all():
        atom = int(np.argmin(near))
        far = np.isfinite(molecule.positions[atom]).all()
        problem = f"beyond ±{FARTHEST:g} Å" if far else "not finite"
        raise MoleculeError(f"line {molecule.rows[atom] + 1}: the coordinates are {problem}")
    if are_crowded(molecule.positions):
        raise MoleculeError(
            f"most of its atoms have another within {CROWDED:g} Å: are its coordinates in"
            " nanometres? Multiply them by 10"
        )
    odd = ~(np.abs(molecule.charges) <= MOST_WEIGHT)
    if odd.any():
        atom = int(np.argmax(odd))
        problem = f"atom {atom + 1} has a charge of {molecule.charges[atom]:g}"
        raise MoleculeError(f"line {molecule.rows[atom] + 1}: {problem}")
    return molecule
