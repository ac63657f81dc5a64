"""PDBQT of AutoDock: PDB with charges and atom types. `bond_orders` finds its bonds."""

import re

from multigpu.formats.molecules import fields, pdb
from multigpu.formats.molecules.autodock_types import OPENED, PSEUDO_TYPES, types_in_file
from multigpu.formats.molecules.bond_orders import pdbqt_graph
from multigpu.formats.molecules.elements import element_of
from multigpu.formats.molecules.molecule import LigandFormat, Molecule, MoleculeError

CHARGE, TYPE = slice(66, 76), slice(77, 80)  # columns of an atom
ROOTS = (b"ROOT\n", b"ROOT\r", b"ROOT ")
SIDE_CHAIN = re.compile(rb"^BEGIN_RES\b.*?(?:^END_RES\b[^\n]*\n?|\Z)", re.MULTILINE | re.DOTALL)
HEADS = (b"REMARK", b"MODEL", b"USER", b"HEADER", b"COMPND", b"\n", b"\r")  # lines before a ROOT
ELEMENTS_OF_TYPES = {  # that are not called like their element
    "A": "C", "HD": "H", "HS": "H", "NA": "N", "NS": "N", "OA": "O", "OS": "O", "SA": "S",
    "G": "C", "GA": "C", "J": "C", "Q": "C", "Z": "Zn", "TZ": "Zn", "W": "O",
    **OPENED,
}  # fmt: skip


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


def parse(lines: list[bytes]) -> Molecule:
    """Return the ligand, without a receptor's flexible side chains. Raises MoleculeError."""
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


PDBQT = LigandFormat(
    name="pdbqt",
    suffixes=(".pdbqt",),
    signature=re.compile(rb"^(ROOT|TORSDOF)\b", re.MULTILINE),
    find_ends=find_ends,
    parse=parse,
    read_name=pdb.read_name,
    rewrite=pdb.rewrite,
    keep_atoms=pdb.keep_atoms,
    bond_graph=pdbqt_graph,
    atom_types=types_in_file,
    has_models=True,
    has_polar_hydrogens_only=True,
    pseudo_types=PSEUDO_TYPES,
)
