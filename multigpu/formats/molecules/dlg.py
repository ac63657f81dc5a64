"""DLG: logs of AutoDock 4 and AutoDock-GPU, whose docked poses are PDBQT after `DOCKED: `."""

import re
from dataclasses import replace

from multigpu.formats.molecules import fields, pdb, pdbqt
from multigpu.formats.molecules.molecule import Molecule, MoleculeError
from multigpu.formats.molecules.pdbqt import PDBQT

MARK = b"DOCKED: "
DOCKED = re.compile(rb"^DOCKED: ", re.MULTILINE)


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return the end of every docked pose. What is logged before one belongs to its record."""
    marks = fields.find_lines((MARK + b"ENDMDL",), text)
    ends = [end for at in marks if (end := text.find(b"\n", at) + 1)]
    return fields.add_rest(ends, text, final and bool(DOCKED.search(text, fields.last_end(ends))))


def docked(lines: list[bytes]) -> list[bytes]:
    """Return the lines of PDBQT in a log; its other lines are empty."""
    return [line.removeprefix(MARK) if line.startswith(MARK) else b"" for line in lines]


def parse(lines: list[bytes]) -> Molecule:
    """Return a docked pose, which is a molecule of PDBQT. Raises MoleculeError."""
    if not any(found := docked(lines)):
        raise MoleculeError("no docked pose is in it")
    return pdbqt.parse(found)


DLG = replace(
    PDBQT,
    name="dlg",
    suffixes=(".dlg",),
    signature=DOCKED,
    find_ends=find_ends,
    parse=parse,
    read_name=lambda text: pdb.read_name(b"".join(docked(text.splitlines(keepends=True)))),
    has_poses=False,
)
