"""XYZ, one or more frames in a file."""

import math
import re
from collections.abc import Sequence

from multigpu.errors import quoted
from multigpu.formats.molecules import fields
from multigpu.formats.molecules.bonds import graph_by_valence
from multigpu.formats.molecules.elements import element_of
from multigpu.formats.molecules.molecule import (
    LigandFormat,
    Molecule,
    MoleculeError,
    PoseNotes,
    Positions,
)

COUNT = re.compile(rb"\s*(\d{1,9})[ \t\r]*\n")  # of atoms, after blank lines
OUR_NOTES = re.compile(r"(?:^| )score=\S+ pose=\S+ rotation=\S+ rmsd_to_input=\S+$")
DIGITS = "0123456789"
COLUMNS = re.compile(rb"(?<!\S)Properties=\"?([^\"\s]+)", re.IGNORECASE)  # of extended XYZ


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return the ends of frames, as many lines as their counts say; the rest is a record."""
    ends: list[int] = []
    while count := COUNT.match(text, fields.last_end(ends)):
        lines = re.compile(rb"(?:[^\n]*\n){%d}+" % (1 + int(count[1])))  # comment and atoms
        if not (frame := lines.match(text, count.end())):
            return fields.add_rest(ends, text, final)
        ends.append(frame.end())
    return fields.add_rest(ends, text, final and bool(text[fields.last_end(ends) :].strip()))


def parse(lines: list[bytes]) -> Molecule:
    head = _head(lines)
    count = COUNT.fullmatch(b"".join(lines[head : head + 1]))
    if not count:
        shown = quoted(b"".join(lines[head : head + 1]).strip())
        problem = f"line {head + 1}: {shown} should be a number of atoms"
        raise MoleculeError(f"{problem}: nothing is read from here on")
    columns = COLUMNS.search(b"".join(lines[head + 1 : head + 2]))
    if columns and not columns[1].lower().startswith(b"species:s:1:pos:r:3"):
        shown = quoted(columns[1])
        raise MoleculeError(
            f"line {head + 2}: its columns are {shown}, not first species, then pos"
        )
    last = head + int(count[1]) + 1
    fields.line_at(lines, last, f"the last of {int(count[1])} atoms")
    rows, places, elements = list(range(head + 2, last + 1)), [], []
    for row in rows:
        words = lines[row].split()
        if len(words) < 4:
            raise MoleculeError(f"line {row + 1}: an atom needs a symbol and a place")
        label = fields.decode(words[0])  # a symbol, which may be numbered, or an atomic number
        elements.append(element_of(label.strip(DIGITS) or label))
        places.append(fields.parse_floats(words[1:4], row))
    return Molecule(
        format=XYZ,
        name=read_name(b"".join(lines)),
        lines=lines,
        rows=rows,
        positions=fields.positions_of(places),
        elements=elements,
    )


def _head(lines: Sequence[bytes]) -> int:
    """Return the first row that is not blank."""
    return next((row for row, line in enumerate(lines) if line.strip()), 0)


def read_name(text: bytes) -> str:
    """Return the comment of a frame, without the notes of a pose."""
    lines = text.splitlines()
    comment = b"".join(lines[_head(lines) + 1 :][:1])
    return OUR_NOTES.sub("", fields.decode(comment))


def rewrite(molecule: Molecule, name: str, positions: Positions, notes: PoseNotes) -> bytes:
    """Return the frame with other coordinates, and the notes in its comment."""
    lines = fields.move_words(molecule, positions, first=1, decimals=6)
    words = fields.join_notes(notes, "=")
    comment = f"{molecule.name or name} {words}" if words else molecule.name or name
    first, last = molecule.rows[0], molecule.rows[-1]
    lines[first - 1] = f"{comment}\n".encode()
    return fields.end_with_newline(b"".join(lines[first - 2 : last + 1]))


def keep_atoms(molecule: Molecule, kept: Sequence[int]) -> list[bytes]:
    """Return a frame with some of the atoms."""
    comment, rows = molecule.lines[molecule.rows[0] - 1], molecule.rows
    return [b"%d\n" % len(kept), comment, *(molecule.lines[rows[atom]] for atom in kept)]


XYZ = LigandFormat(
    name="xyz",
    suffixes=(".xyz",),
    signature=re.compile(rb"\A\s*\d+\s*\n"),
    find_ends=find_ends,
    parse=parse,
    read_name=read_name,
    rewrite=rewrite,
    keep_atoms=keep_atoms,
    bond_graph=graph_by_valence,
    # Quantum chemistry lays flat molecules into a plane, so none is a drawing.
    fewest_flat_atoms=lambda _: math.inf,
)
