"""The class of which every format of ligands has one object: all that the program knows of it.

A format is one module that ends with its object, and one line in `registry`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from multigpu.formats.molecules.columns import LigandColumns
from multigpu.formats.molecules.molecule import AtomTypes, BondGraph, Molecule, PoseNotes, Positions
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text.words import CoordinatePlaces

FEWEST_FLAT = 4  # atoms: three are always in a plane

Writer = Callable[[Molecule, str, Positions, PoseNotes], bytes]


def four_atoms(text: bytes) -> float:
    """Return from how many atoms in a plane on a record that does not say so is a drawing."""
    return FEWEST_FLAT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnFormat:
    """Functions that read and write many regular records at once, as they are compiled.

    read       records, types of the pocket's maps → columns, without atoms for records that are
               not regular
    frame      name ("" for a record that says its own), notes → what goes before and after the
               body of a pose; the three are what `LigandFormat.rewrite` writes
    places     of the coordinates in a body
    has_types  whether the columns have AutoDock's types and charges
    """

    read: Callable[[Texts, Sequence[str]], LigandColumns]
    frame: Callable[[str, PoseNotes], tuple[bytes, bytes]]
    places: CoordinatePlaces
    has_types: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LigandFormat:
    """One format of ligands.

    name        "sdf": what a source calls its layout, and poses their format
    suffixes    of its files, without those of compression; the first is that of poses
    signature   what is in the content of a file whose name does not tell its format
    find_ends   text that begins with a record → ends of records, see `fields`
    parse       lines of a record → molecule. Raises MoleculeError that names the line, from 1
    read_name   record → the name it gives its molecule, even where the rest of it is wrong
    rewrite     molecule of this format, name for a record without one, positions, notes → record
                of the pose, which keeps everything else
    build       the same for a molecule of any other format; None: poses of others are not written
    keep_atoms  molecule, some of its atoms → lines of its record with these atoms only
    bond_graph  molecule → bonds with orders, and formal charges
    atom_types  molecule → AutoDock's types and charges; None: the format says too little
    columns     how regular records are read and written at once; None: one by one
    has_models  whether poses in one file stand between lines of MODEL and ENDMDL
    has_polar_hydrogens_only  whether molecules come without the hydrogens of their carbons
    fewest_flat_atoms  record → from how many atoms with one z on it is a drawing
    pseudo_types  atom types that stand for no atom, and are in no other format
    """

    name: str
    suffixes: tuple[str, ...]
    signature: re.Pattern[bytes]
    find_ends: Callable[[bytes, bool], list[int]]
    parse: Callable[[list[bytes]], Molecule]
    read_name: Callable[[bytes], str]
    rewrite: Writer
    build: Writer | None
    keep_atoms: Callable[[Molecule, Sequence[int]], list[bytes]]
    bond_graph: Callable[[Molecule], BondGraph]
    atom_types: Callable[[Molecule], AtomTypes] | None = None
    columns: ColumnFormat | None = None
    has_models: bool = False
    has_polar_hydrogens_only: bool = False
    fewest_flat_atoms: Callable[[bytes], float] = four_atoms
    pseudo_types: frozenset[str] = frozenset()
