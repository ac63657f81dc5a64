"""MOL2 of Tripos: borders, parser and writer; `bond_orders` knows its bonds."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

import numpy as np

from multigpu.errors import quoted
from multigpu.formats.molecules import fields
from multigpu.formats.molecules.autodock_types import types_by_sybyl
from multigpu.formats.molecules.bond_orders import mol2_graph
from multigpu.formats.molecules.elements import element_of
from multigpu.formats.molecules.molecule import (
    AMIDE,
    AROMATIC,
    LigandFormat,
    Molecule,
    MoleculeError,
    PoseNotes,
    Positions,
)

SECTION = b"@<TRIPOS>"
MOLECULE = SECTION + b"MOLECULE"
BOND_ORDERS = {b"1": 1, b"2": 2, b"3": 3, b"ar": AROMATIC, b"am": AMIDE}
POSE_COMMENT = b"# multigpu "


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return where all blocks of MOLECULE but the first begin, with the comments before them."""
    begins = fields.find_lines((MOLECULE,), text)
    ends = [_begin_of_comments(text, at) for at in begins[1:]]
    return fields.add_rest(ends, text, final and bool(text.strip()))


def _begin_of_comments(text: bytes, at: int) -> int:
    """Return where the comments and blank lines before the line at `at` begin."""
    while True:
        before = text.rfind(b"\n", 0, at - 1) + 1
        if not text.startswith(b"#", before) and text[before:at].strip():
            return at
        at = before


def parse(lines: list[bytes]) -> Molecule:
    rows: list[int] = []
    places, elements, types, charges = [], [], [], []
    numbers: dict[bytes, int] = {}
    for row, line in _section(lines, b"ATOM"):
        words = line.split()
        if len(words) < 6:
            raise MoleculeError(f"line {row + 1}: an atom needs a number, a name, a place, a type")
        numbers[words[0]] = len(rows) + 1
        rows.append(row)
        places.append(fields.parse_floats(words[2:5], row))
        types.append(fields.decode(words[5]))
        if not types[-1][0].isalpha():
            where = f"line {row + 1}: the type of the atom is {quoted(types[-1])}"
            raise MoleculeError(f"{where}: is there a blank in its name?")
        elements.append(element_of(types[-1].partition(".")[0]))
        charges.append(fields.parse_floats(words[8:9], row, "charge")[0] if len(words) > 8 else 0.0)
    bonds = []
    for row, line in _section(lines, b"BOND"):
        words = line.split()
        a, b = (numbers.get(word, 0) for word in (*words[1:3], b"", b"")[:2])
        order = BOND_ORDERS.get(b"".join(words[3:4]), 1)
        bonds.append(fields.check_bond(a, b, order, len(rows), row))
    counts = [word for row in _head(lines)[1:2] for word in lines[row].split()]
    _check_counts(counts, len(rows))
    return Molecule(
        format=MOL2,
        name=read_name(b"".join(lines)),
        lines=lines,
        rows=rows,
        positions=fields.positions_of(places),
        elements=elements,
        types=types,
        charges=np.array(charges),
        bonds=bonds,
        # The head of ions says that they have no bonds.
        bonds_are_complete=bool(bonds) or (len(counts) > 1 and not counts[1].strip(b"0")),
    )


def keep_atoms(molecule: Molecule, kept: Sequence[int]) -> list[bytes]:
    """Return a record with some of the atoms, numbered from 1: its head, atoms and bonds."""
    lines, rows = molecule.lines, [molecule.rows[atom] for atom in kept]
    number = {lines[row].split()[0]: b"%d" % k for k, row in enumerate(rows, 1)}
    atoms = [fields.TOKEN.sub(b"%d" % k, lines[row], count=1) for k, row in enumerate(rows, 1)]
    bonds = [line.split() for _, line in _section(lines, b"BOND")]
    bonds = [[*w[:1], number[w[1]], number[w[2]], *w[3:]] for w in bonds if w[1] in number]
    place = _head(lines)
    head = lines[place.start - 1 : place.stop] or [MOLECULE + b"\n", b"\n"]
    head[2:3] = [b" %d %d\n" % (len(kept), len(bonds))]
    return [
        *(fields.end_with_newline(line) for line in head),
        *(SECTION + b"ATOM\n", *map(fields.end_with_newline, atoms)),
        *(SECTION + b"BOND\n", *(b" ".join(words) + b"\n" for words in bonds)),
    ]


def _section(lines: list[bytes], section: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield row and text of the lines of a section, without comments."""
    inside = False
    for row, line in enumerate(lines):
        if line.startswith(SECTION):
            inside = line.split()[0] == SECTION + section
        elif inside and line.strip() and not line.startswith(b"#"):
            yield row, line


def _head(lines: Sequence[bytes]) -> range:
    """Return the rows of the MOLECULE block. Their order says what they are: blank ones count."""
    marks = (row for row, line in enumerate(lines) if line.startswith(MOLECULE))
    begin = next(marks, len(lines)) + 1
    inside = takewhile(lambda line: not line.startswith(SECTION), islice(lines, begin, None))
    return range(begin, begin + sum(1 for _ in inside))


def _check_counts(counts: Sequence[bytes], atoms: int) -> None:
    claimed = b"".join(counts[:1])
    if claimed.isdigit() and claimed.lstrip(b"0") != (b"%d" % atoms).lstrip(b"0"):
        raise MoleculeError(f"it has {atoms} atoms where its header says {quoted(claimed)}")


def read_name(text: bytes) -> str:
    """Return the first line of the head."""
    lines = text.splitlines()
    return next((fields.decode(lines[row]) for row in _head(lines)), "")


def rewrite(molecule: Molecule, name: str, positions: Positions, notes: PoseNotes) -> bytes:
    """Return the record with other coordinates, and a comment with the notes before it."""
    lines = fields.move_words(molecule, positions, first=2, decimals=4)
    for row in _head(lines)[:1]:
        lines[row] = fields.fill_blank(lines[row], name)
    kept = [line for line in lines if not line.startswith(POSE_COMMENT)]
    comment = POSE_COMMENT + fields.join_notes(notes, " ").encode() + b"\n"
    return comment + fields.end_with_newline(b"".join(kept))


MOL2 = LigandFormat(
    name="mol2",
    suffixes=(".mol2",),
    signature=re.compile(rb"^@<TRIPOS>", re.MULTILINE),
    find_ends=find_ends,
    parse=parse,
    read_name=read_name,
    rewrite=rewrite,
    keep_atoms=keep_atoms,
    bond_graph=mol2_graph,
    atom_types=types_by_sybyl,
)
