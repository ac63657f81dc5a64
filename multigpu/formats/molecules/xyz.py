"""XYZ, one or more frames in a file."""

import math
import re
from collections.abc import Sequence
from functools import lru_cache

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

COUNT = re.compile(rb"\s*+(\d{1,9})[ \t\r]*+\n")
COUNTS = re.compile(rb"^[^\S\n]*+(\d{1,9})[ \t\r]*+\n", re.MULTILINE)
ATOM = rb"(?:[ \t]*+\S++[ \t]++\S[^\n]*+\n)"  # two words at least: no count
ATOMS = re.compile(rb"[^\n]*+\n%b*+" % ATOM)
BLANKS = re.compile(rb"\s*+")
UNFINISHED, WRONG = 0, -1  # of a frame: more of it may come; it is none
SOME_COUNTS = 256  # of atoms, whose patterns are kept
OUR_NOTES = re.compile(r"(?:^| )score=\S+ pose=\S+ rotation=\S+ rmsd_to_input=\S+$")
DIGITS = "0123456789"
COLUMNS = re.compile(rb"(?<!\S)Properties=\"?([^\"\s]+)", re.IGNORECASE)  # of extended XYZ


# ---- borders ----------------------------------------------------------------------------------


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return the end of every frame; for one that is wrong, where the next frame begins."""
    lines = text if text.endswith(b"\n") or not final else text + b"\n"
    ends: list[int] = []
    begin = at = 0
    while count := COUNTS.search(lines, at):
        end = _end_of_frame(lines, count, final)
        is_first = _skip_blanks(lines, begin) >= count.start()
        if end == UNFINISHED:
            break
        if end == WRONG:
            # After the count at the start of a record comes a comment, even one of digits.
            comment = lines.find(b"\n", count.end()) + 1 or len(lines)
            at = comment if is_first else count.end()
            continue
        if not is_first:
            ends.append(count.start())
            begin = count.start()
        if COUNT.match(lines, end) or (final and _skip_blanks(lines, end) == len(lines)):
            ends.append(min(end, len(text)))
            begin = end
        at = end
    return fields.add_rest(ends, text, final and bool(text[begin:].strip()))


def _end_of_frame(text: bytes, count: re.Match[bytes], final: bool) -> int:
    """Return the end of a count, a comment and that many atoms; else `UNFINISHED` or `WRONG`."""
    if frame := _frame_of(int(count[1])).match(text, count.end()):
        return frame.end()
    atoms = ATOMS.match(text, count.end())
    words = _skip_blanks(text, atoms.end() if atoms else count.end())
    return WRONG if final or text.find(b"\n", words) >= 0 else UNFINISHED


@lru_cache(SOME_COUNTS)
def _frame_of(atoms: int) -> re.Pattern[bytes]:
    return re.compile(rb"[^\n]*+\n%b{%d}" % (ATOM, atoms))


def _skip_blanks(text: bytes, at: int) -> int:
    blanks = BLANKS.match(text, at)
    return blanks.end() if blanks else at


# ---- reading ----------------------------------------------------------------------------------


def parse(lines: list[bytes]) -> Molecule:
    """Return the molecule of a frame.

    Raises MoleculeError that says how many lines are not read, where another frame may be.
    """
    head = _head(lines)
    try:
        return _parse_frame(lines, head)
    except MoleculeError as error:
        count = fields.line_at(lines, head, "its number of atoms").strip()
        is_count = count.isdigit() and len(count) < fields.MOST_SHOWN
        frame = head + 2 + (int(count) if is_count else 0)
        if len(lines) <= frame:
            raise
        rest = "lines, up to the next frame or the end of the file, are not read"
        raise MoleculeError(f"{error}; its {len(lines) - head} {rest}") from None


def _head(lines: Sequence[bytes]) -> int:
    """Return the first row that is not blank."""
    return next((row for row, line in enumerate(lines) if line.strip()), 0)


def _parse_frame(lines: list[bytes], head: int) -> Molecule:
    (atoms,) = fields.parse_integers(
        [fields.line_at(lines, head, "its number of atoms").strip()], head
    )
    if atoms < 0:
        raise MoleculeError(f"line {head + 1}: there cannot be {atoms} atoms")
    columns = COLUMNS.search(b"".join(lines[head + 1 : head + 2]))
    if columns and not columns[1].lower().startswith(b"species:s:1:pos:r:3"):
        shown = quoted(columns[1])
        raise MoleculeError(
            f"line {head + 2}: its columns are {shown}, not first species, then pos"
        )
    last = head + atoms + 1
    fields.line_at(lines, last, f"the last of {atoms} atoms")
    rows, places, elements = list(range(head + 2, last + 1)), [], []
    for row in rows:
        words = lines[row].split()
        if len(words) < 4:
            raise MoleculeError(f"line {row + 1}: an atom needs a symbol and a place")
        label = fields.decode(words[0])  # a symbol, which may be numbered, or an atomic number
        elements.append(element_of(label.strip(DIGITS) or label))
        places.append(fields.parse_floats(words[1:4], row))
    for row in range(last + 1, len(lines)):
        if lines[row].strip():
            raise MoleculeError(f"line {row + 1}: there is more than the {atoms} atoms it says")
    return Molecule(
        format=XYZ,
        name=read_name(b"".join(lines)),
        lines=lines,
        rows=rows,
        positions=fields.positions_of(places),
        elements=elements,
    )


def read_name(text: bytes) -> str:
    """Return the comment of a frame, without the notes of a pose."""
    lines = text.splitlines()
    comment = b"".join(lines[_head(lines) + 1 :][:1])
    return OUR_NOTES.sub("", fields.decode(comment))


# ---- writing ----------------------------------------------------------------------------------


def rewrite(molecule: Molecule, name: str, positions: Positions, notes: PoseNotes) -> bytes:
    """Return the frame with other coordinates, and the notes in its comment."""
    lines = fields.move_words(molecule, positions, first=1, decimals=6)
    first, last = molecule.rows[0], molecule.rows[-1]
    lines[first - 1] = _comment(molecule.name or name, notes)
    return fields.end_with_newline(b"".join(lines[first - 2 : last + 1]))


def keep_atoms(molecule: Molecule, kept: Sequence[int]) -> list[bytes]:
    """Return a frame with some of the atoms."""
    comment, rows = molecule.lines[molecule.rows[0] - 1], molecule.rows
    return [b"%d\n" % len(kept), comment, *(molecule.lines[rows[atom]] for atom in kept)]


def _comment(name: str, notes: PoseNotes) -> bytes:
    words = fields.join_notes(notes, "=")
    return (f"{name} {words}\n" if words else f"{name}\n").encode()


def build(molecule: Molecule, name: str, positions: Positions, notes: PoseNotes) -> bytes:
    """Return a pose of a molecule of another format."""
    atoms = [
        f"{element:<2} {x:14.6f} {y:14.6f} {z:14.6f}\n"
        for element, (x, y, z) in zip(molecule.elements, positions.tolist(), strict=True)
    ]
    head = f"{len(atoms)}\n".encode() + _comment(molecule.name or name, notes)
    return head + "".join(atoms).encode()


XYZ = LigandFormat(
    name="xyz",
    suffixes=(".xyz",),
    signature=re.compile(rb"\A\s*\d+\s*\n"),
    find_ends=find_ends,
    parse=parse,
    read_name=read_name,
    rewrite=rewrite,
    build=build,
    keep_atoms=keep_atoms,
    bond_graph=graph_by_valence,
    # Quantum chemistry lays flat molecules into a plane, so none is a drawing.
    fewest_flat_atoms=lambda _: math.inf,
)
