"""PDBQT of AutoDock: PDB with charges and atom types. `pdbqt_bonds` finds its bonds."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules import fields, pdb
from multigpu.formats.molecules.autodock_types import (
    OPENED,
    PSEUDO_TYPES,
    SPELLINGS,
    type_seen,
    types_in_file,
)
from multigpu.formats.molecules.bonds import covalent_radius
from multigpu.formats.molecules.columns import AtomColumns, LigandColumns
from multigpu.formats.molecules.elements import element_of
from multigpu.formats.molecules.molecule import (
    LigandFormat,
    Molecule,
    MoleculeError,
    Positions,
)
from multigpu.formats.molecules.pdbqt_bonds import bond_graph
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text import pdbqt as compiled
from multigpu.kernels.compiled.text.words import TextArrays, word_table
from multigpu.kernels.rotation.types import FARTHEST, MOST_WEIGHT

CHARGE, TYPE = slice(66, 76), slice(77, 80)  # columns of an atom
ROOTS = (b"ROOT\n", b"ROOT\r", b"ROOT ")
SIDE_CHAIN = re.compile(rb"^BEGIN_RES\b.*?(?:^END_RES\b[^\n]*\n?|\Z)", re.MULTILINE | re.DOTALL)
HEADS = (b"REMARK", b"MODEL", b"USER", b"HEADER", b"COMPND", b"\n", b"\r")  # lines before a ROOT
ELEMENTS_OF_TYPES = {  # that are not called like their element
    "A": "C", "HD": "H", "HS": "H", "NA": "N", "NS": "N", "OA": "O", "OS": "O", "SA": "S",
    "G": "C", "GA": "C", "J": "C", "Q": "C", "Z": "Zn", "TZ": "Zn", "W": "O",
    **OPENED,
}  # fmt: skip
# Records with others are read one by one. The usual ones come first.
USUAL_TYPES = (
    *("C", "A", "HD", "OA", "N", "NA", "H", "SA", "S", "F", "Cl", "CL", "Br", "BR", "P", "I"),
    *("O", "HS", "NS", "OS", "B", "Si", "Se", *OPENED, *SPELLINGS, *SPELLINGS.values()),
)
DROPPED_WORDS = word_table(pdb.DROPPED_LINES)


# ---- borders ----------------------------------------------------------------------------------


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return the ends of models as of PDB, and where the remarks before a second ROOT begin.

    Files that were put together have several of these and no models.
    """
    ends: list[int] = []
    has_root = False
    for at in fields.find_lines((*pdb.MODEL_ENDS, *ROOTS), text):
        is_root = text.startswith(b"ROOT", at)
        if not is_root:
            end = pdb.end_of_model(text, fields.last_end(ends), at)
        else:
            end = _begin_of_remarks(text, at) if has_root else 0
        has_root = is_root or (has_root and not end)
        if end:
            ends.append(end)
    return pdb.add_open_model(ends, text, final)


def _begin_of_remarks(text: bytes, at: int) -> int:
    """Return where the remarks before a ROOT begin; 0 where it is that of a flexible residue."""
    while True:
        before = text.rfind(b"\n", 0, at - 1) + 1
        if text.startswith(b"BEGIN_RES", before):
            return 0
        if not text.startswith(HEADS, before):
            return at
        at = before


# ---- reading ----------------------------------------------------------------------------------


def parse(lines: list[bytes]) -> Molecule:
    """Return the ligand of a record, without flexible side chains of a receptor.

    Raises MoleculeError.
    """
    text = b"".join(lines)
    ligand = SIDE_CHAIN.sub(b"", text)
    lines = ligand.splitlines(keepends=True) if ligand != text else lines
    rows = pdb.atom_rows(lines)
    if ligand != text and not rows:
        raise MoleculeError("its atoms are side chains of a receptor (BEGIN_RES), and no ligand")
    positions = fields.parse_columns(lines, rows, pdb.PLACE)
    charges = fields.parse_columns(lines, rows, (CHARGE,), "charge")
    types = [fields.decode(lines[row][TYPE]) for row in rows]
    for row, name in zip(rows, types, strict=True):
        if not name:
            raise MoleculeError(f"line {row + 1}: the atom has no AutoDock type")
    return Molecule(
        format=PDBQT,
        name=pdb.read_name(ligand),
        lines=lines,
        rows=rows,
        positions=positions,
        elements=[element_of_type(name) for name in types],
        types=types,
        charges=charges[:, 0],
        is_part=ligand != text,
    )


def element_of_type(kind: str) -> str:
    """Return the element of one of AutoDock's types."""
    return ELEMENTS_OF_TYPES.get(kind) or element_of(kind)


# ---- many records at once ---------------------------------------------------------------------


def read_columns(texts: Texts, maps: Sequence[str]) -> LigandColumns:
    """Return the columns of records, without atoms for those that are not regular.

    maps: the types of the pocket's maps; () takes every type
    """
    positions, charges, types, sizes, *names, bodies, kept, is_named = compiled.read_records(
        _arrays_of(texts), *_type_table(tuple(maps)), DROPPED_WORDS, (FARTHEST, MOST_WEIGHT)
    )
    return LigandColumns(
        atoms=replace(AtomColumns.untyped(positions, sizes), types=types, charges=charges),
        names=Texts(texts.raw, *names),
        bodies=Texts(texts.raw, bodies, kept),
        is_named=is_named,
    )


@lru_cache
def _type_table(maps: tuple[str, ...]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return codes, maps and radii of the types that score in these maps; () takes all types."""
    usable = [
        (
            compiled.type_code(kind),
            maps.index(seen) if maps else 0,
            covalent_radius(element_of_type(kind)),
        )
        for kind in dict.fromkeys([*USUAL_TYPES, *maps])
        if (seen := type_seen(kind, maps)) in maps or not maps
    ]
    codes, numbers, radii = zip(*usable, strict=True)
    return np.array(codes, np.int64), np.array(numbers, np.int32), np.array(radii)


def write_poses(
    heads: Texts, bodies: Texts, sizes: NDArray[np.int64], positions: Positions
) -> Texts:
    """Return poses of regular records, as `rewrite` writes them.

    heads   what goes before the bodies: `pdb.remarks`
    bodies  of the records
    sizes   int64[n]: atoms of each

    A text is empty where a pose must be written alone: a coordinate is too long, or hard to round.
    """
    arrays = map(_arrays_of, (heads, bodies))
    return Texts.one_after_the_other(*compiled.write_poses(*arrays, sizes, positions))


def _arrays_of(texts: Texts) -> TextArrays:
    """Return texts as compiled functions take them."""
    return TextArrays(texts.raw, texts.begins, texts.lengths)


PDBQT = LigandFormat(
    name="pdbqt",
    suffixes=(".pdbqt",),
    signature=re.compile(rb"^(ROOT|TORSDOF)\b", re.MULTILINE),
    find_ends=find_ends,
    parse=parse,
    read_name=pdb.read_name,
    rewrite=pdb.rewrite,
    build=None,
    keep_atoms=pdb.keep_atoms,
    bond_graph=bond_graph,
    atom_types=types_in_file,
    has_models=True,
    has_polar_hydrogens_only=True,
    pseudo_types=PSEUDO_TYPES,
)
