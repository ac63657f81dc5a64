"""PDB: borders, parser and writer, and what PDBQT shares with it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from multigpu.formats.molecules import fields
from multigpu.formats.molecules.bonds import graph_by_valence
from multigpu.formats.molecules.elements import ELEMENTS, FEW_WORDS, element_of
from multigpu.formats.molecules.molecule import (
    Bond,
    FormalCharges,
    LigandFormat,
    Molecule,
    PoseNotes,
    Positions,
)

PLACE = slice(30, 38), slice(38, 46), slice(46, 54)  # columns of an atom
SERIAL, ATOM_NAME, LOCATION = slice(6, 11), slice(12, 16), slice(16, 17)
RESIDUE, LABEL, OCCUPANCY = slice(21, 27), slice(6, 27), slice(54, 60)
ELEMENT, CHARGE = slice(76, 78), slice(78, 80)
PARTNERS = [slice(at, at + 5) for at in range(11, 31, 5)]  # columns of CONECT
ATOM_WORDS = (b"ATOM  ", b"HETATM")
ABOUT_ATOMS = (b"ANISOU", b"SIGATM", b"SIGUIJ")  # with the label of the atom
ATOM = re.compile(rb"^(ATOM  |HETATM)", re.MULTILINE)
BEGUN = re.compile(rb"^(ATOM  |HETATM|MODEL\b)", re.MULTILINE)
MODEL_ENDS = (b"ENDMDL", b"END\n", b"END\r", b"END ")
NAME = re.compile(rb"(?<![^\r\n])REMARK[^\r\n]*?Name = ([^\r\n]*)")
SIGNED = re.compile(rb"(\d)([+-])|([+-])(\d)")
FULL_NAME = 4  # letters of an atom's name
MOST_ORDER = 3  # of a bond
POSE_REMARK = "REMARK multigpu "
# Lines that a pose does not keep.
DROPPED_LINES = (b"MODEL ", b"MODEL\n", b"MODEL\r", *MODEL_ENDS, POSE_REMARK.encode())


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return the end of every ENDMDL and END after atoms or a model; else the text is a record."""
    ends: list[int] = []
    for at in fields.find_lines(MODEL_ENDS, text):
        if end := end_of_model(text, fields.last_end(ends), at):
            ends.append(end)
    return add_open_model(ends, text, final)


def end_of_model(text: bytes, begin: int, at: int) -> int:
    """Return the end of the line at `at`; 0 where it ends no record that begins at `begin`."""
    end = text.find(b"\n", at) + 1
    is_mark = text.startswith(b"ENDMDL", at) or text[at:end].strip() == b"END"
    return end if is_mark and BEGUN.search(text, begin, at) else 0


def add_open_model(ends: list[int], text: bytes, final: bool) -> list[int]:
    """Return the ends, and that of the text where the rest of it has atoms."""
    return fields.add_rest(ends, text, final and bool(ATOM.search(text, fields.last_end(ends))))


def parse(lines: list[bytes]) -> Molecule:
    """Return the molecule of a record. Raises MoleculeError.

    Of a residue with several locations the best occupied is taken; lines of the others are empty.
    """
    rows = atom_rows(lines)
    lines = _drop_atoms(lines, rows, other_locations(lines, rows))
    rows = atom_rows(lines)
    return Molecule(
        format=PDB,
        name=read_name(b"".join(lines)),
        lines=lines,
        rows=rows,
        positions=fields.parse_columns(lines, rows, PLACE),
        elements=[_element_of(lines[row][ATOM_NAME], lines[row][ELEMENT]) for row in rows],
        bonds=bonds_of_conect(lines, rows),
        formal=_charges(lines, rows),
    )


def atom_rows(lines: Sequence[bytes]) -> list[int]:
    return [row for row, line in enumerate(lines) if line.startswith(ATOM_WORDS)]


@lru_cache(FEW_WORDS)
def _element_of(name: bytes, columns: bytes) -> str:
    """Return the element in its columns, else that of the atom's name.

    The name has it right-aligned in the first two of four columns. A hydrogen of four letters has
    no room for that: HG11 is not mercury.
    """
    if symbol := fields.decode(columns):
        return element_of(symbol)
    if name.startswith(b"H") and len(name.strip()) == FULL_NAME:
        return "H"
    symbol = element_of(fields.decode(name[:2]).lstrip("0123456789"))
    return symbol if symbol in ELEMENTS else symbol[:1]


def read_name(text: bytes) -> str:
    """Return the name in a remark."""
    name = NAME.search(text)
    return fields.decode(name[1]) if name else ""


def _charges(lines: Sequence[bytes], rows: Sequence[int]) -> FormalCharges:
    found = ((atom, SIGNED.fullmatch(lines[row][CHARGE])) for atom, row in enumerate(rows))
    return {atom: int((e[2] or e[3]) + (e[1] or e[4])) for atom, e in found if e}


def other_locations(lines: Sequence[bytes], rows: Sequence[int]) -> set[int]:
    """Return the rows of atoms in alternate locations that are not taken.

    Of each residue the location is taken whose atoms have the largest occupancy together, the first
    of equals. Atoms without a letter for their location have no other.
    """
    occupied: dict[bytes, Counter[bytes]] = {}  # of each residue and letter, percent
    located = [row for row in rows if lines[row][LOCATION].strip()]
    for line in (lines[row] for row in located):
        letters = occupied.setdefault(line[RESIDUE], Counter())
        letters[line[LOCATION]] += _occupancy(line)
    best = {residue: letters.most_common(1)[0][0] for residue, letters in occupied.items()}
    return {row for row in located if lines[row][LOCATION] != best[lines[row][RESIDUE]]}


def keep_atoms(molecule: Molecule, kept: Sequence[int]) -> list[bytes]:
    """Return a record with some of the atoms, and what it says of them."""
    dropped = set(molecule.rows) - {molecule.rows[atom] for atom in kept}
    return _drop_atoms(molecule.lines, molecule.rows, dropped)


def _drop_atoms(lines: list[bytes], rows: Sequence[int], dropped: set[int]) -> list[bytes]:
    """Return the lines; those about dropped ones of all atoms, or CONECT with one, are empty."""
    if not dropped:
        return lines
    labels = {lines[row][LABEL] for row in dropped}
    gone = _serials(lines, dropped) - _serials(lines, set(rows) - dropped)
    found = []
    for row, line in enumerate(lines):
        is_gone = row in dropped or (line.startswith(ABOUT_ATOMS) and line[LABEL] in labels)
        if line.startswith(b"CONECT"):
            is_gone = not gone.isdisjoint(line[part].strip() for part in (SERIAL, *PARTNERS))
        found.append(b"" if is_gone else line)
    return found


def _serials(lines: Sequence[bytes], rows: Iterable[int]) -> set[bytes]:
    return {lines[row][SERIAL].strip() for row in rows} - {b""}


def _occupancy(line: bytes) -> int:
    """Return the occupancy of an atom, percent; 100 where there is none."""
    try:
        return round(100 * float(line[OCCUPANCY].strip() or 1))
    except (ValueError, OverflowError):
        return 0


def bonds_of_conect(lines: Sequence[bytes], rows: Sequence[int]) -> list[Bond]:
    """Return the bonds of CONECT between atoms in these rows: repeating a partner is the order."""
    records = [line for line in lines if line.startswith(b"CONECT")]
    if not records:
        return []
    numbers = {lines[row][SERIAL].strip(): atom for atom, row in enumerate(rows)}
    times: Counter[tuple[int, int]] = Counter()
    for line in records:
        atom = numbers.get(line[SERIAL].strip())
        for part in PARTNERS:
            partner = numbers.get(line[part].strip())
            if atom is not None and partner is not None and atom != partner:
                times[atom, partner] += 1
    pairs = sorted({(min(pair), max(pair)) for pair in times})
    return [(a, b, min(max(times[a, b], times[b, a]), MOST_ORDER)) for a, b in pairs]


def rewrite(molecule: Molecule, name: str, positions: Positions, notes: PoseNotes) -> bytes:
    """Return the record with other coordinates, and remarks before it."""
    lines = fields.move_columns(molecule, positions, PLACE[0].start, width=8, decimals=3)
    kept = [line for line in lines if not line.startswith(DROPPED_LINES) and line.strip() != b"END"]
    return add_remarks(fields.end_with_newline(b"".join(kept)), name, notes)


def add_remarks(record: bytes, name: str, notes: PoseNotes) -> bytes:
    """Return a record after what is to say about it; the name where it says none."""
    return remarks("" if NAME.search(record) else name, notes) + record


def remarks(name: str, notes: PoseNotes) -> bytes:
    """Return what stands before a record: the name if there is one, and the notes."""
    lines = [f"REMARK  Name = {name}\n"] if name else []
    lines += [f"{POSE_REMARK}{note} {text}\n" for note, text in notes.items()]
    return "".join(lines).encode()


PDB = LigandFormat(
    name="pdb",
    suffixes=(".pdb", ".ent"),
    signature=ATOM,
    find_ends=find_ends,
    parse=parse,
    read_name=read_name,
    rewrite=rewrite,
    keep_atoms=keep_atoms,
    bond_graph=graph_by_valence,
    has_models=True,
)
