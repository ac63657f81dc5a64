"""DLG: logs of AutoDock 4 and AutoDock-GPU, whose docked poses are PDBQT after `DOCKED: `."""

import re
from dataclasses import replace

from multigpu.formats.molecules import fields, pdb, pdbqt
from multigpu.formats.molecules.molecule import Molecule, MoleculeError
from multigpu.formats.molecules.pdbqt import PDBQT

MARK = b"DOCKED: "
DOCKED_ATOM = re.compile(rb"^DOCKED: (ATOM  |HETATM)", re.MULTILINE)


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return the end of every docked pose. What is logged before one belongs to its record."""
    newlines = (text.find(b"\n", at) + 1 for at in fields.find_lines((MARK + b"ENDMDL",), text))
    ends = [end for end in newlines if end]
    is_open = final and bool(DOCKED_ATOM.search(text, fields.last_end(ends)))
    return fields.add_rest(ends, text, is_open)


def parse(lines: list[bytes]) -> Molecule:
    """Return a docked pose, which is a molecule of PDBQT. Raises MoleculeError.

    Other lines of the log are empty in it.
    """
    found = [line.removeprefix(MARK) if line.startswith(MARK) else b"" for line in lines]
    if not any(found):
        raise MoleculeError("no docked pose is in it")
    return pdbqt.parse(found)


def read_name(text: bytes) -> str:
    """Return the name in a remark of the pose."""
    docked = (line for line in text.splitlines(keepends=True) if line.startswith(MARK))
    return pdb.read_name(b"".join(line.removeprefix(MARK) for line in docked))


DLG = replace(
    PDBQT,
    name="dlg",
    suffixes=(".dlg",),
    signature=re.compile(rb"^DOCKED: ", re.MULTILINE),
    find_ends=find_ends,
    parse=parse,
    read_name=read_name,
    columns=None,
    poses_as=PDBQT.name,
)
