"""PDB: borders, parser and writer, and what PDBQT shares with it.

`pdb_lines` knows alternate locations and CONECT.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from multigpu.formats.molecules import fields
from multigpu.formats.molecules.bonds import bonds_of, charges_by_valence
from multigpu.formats.molecules.borders import add_rest, find_lines
from multigpu.formats.molecules.elements import ELEMENTS, FEW_WORDS, element_of
from multigpu.formats.molecules.ligand_format import LigandFormat
from multigpu.formats.molecules.molecule import (
    AROMATIC,
    Bond,
    BondGraph,
    Molecule,
    PoseNotes,
    Positions,
)
from multigpu.formats.molecules.pdb_lines import bonds_of_conect, drop_lines, other_locations

PLACE = slice(30, 38), slice(38, 46), slice(46, 54)  # columns of an atom
ATOM_NAME, ELEMENT, CHARGE = slice(12, 16), slice(76, 78), slice(78, 80)
ATOM_WORDS = (b"ATOM  ", b"HETATM")
ATOM = re.compile(rb"^(ATOM  |HETATM)", re.MULTILINE)
BEGUN = re.compile(rb"^(ATOM  |HETATM|MODEL\b)", re.MULTILINE)
MODEL_ENDS = (b"ENDMDL", b"END\n", b"END\r", b"END ")
NAME = re.compile(rb"(?<![^\r\n])REMARK[^\r\n]*?Name = ([^\r\n]*)")
SIGNED = re.compile(rb"(\d)([+-])|([+-])(\d)")
FULL_NAME = 4  # letters of an atom's name
LARGEST_COORDINATE = 999_999.0  # Å, above and below 0: what fits its columns
LARGEST_CHARGE = 9
POSE_REMARK = "REMARK multigpu "
MODEL_LINES = (b"MODEL ", b"MODEL\n", b"MODEL\r", b"ENDMDL", b"END ", b"END\n", b"END\r")
DROPPED_LINES = (*MODEL_LINES, POSE_REMARK.encode())  # that a pose does not keep


# ---- borders ----------------------------------------------------------------------------------


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return the end of every ENDMDL and END after atoms or a model; else the text is a record."""
    ends: list[int] = []
    for at in find_lines(MODEL_ENDS, text):
        if end := end_of_model(text, ends[-1] if ends else 0, at):
            ends.append(end)
    return add_open_model(ends, text, final)


def end_of_model(text: bytes, begin: int, at: int) -> int:
    """Return the end of the line at `at`; 0 where it ends no record that begins at `begin`."""
    end = text.find(b"\n", at) + 1
    is_mark = text.startswith(b"ENDMDL", at) or text[at:end].strip() == b"END"
    return end if is_mark and BEGUN.search(text, begin, at) else 0


def add_open_model(ends: list[int], text: bytes, final: bool) -> list[int]:
    """Return the ends, and that of the text where the rest of it has atoms."""
    return add_rest(ends, text, final and bool(ATOM.search(text, ends[-1] if ends else 0)))


# ---- reading ----------------------------------------------------------------------------------


def parse(lines: list[bytes]) -> Molecule:
    """Return the molecule of a record. Raises MoleculeError.

    Of an atom with several locations the best occupied is taken; the lines of the others are empty.
    """
    rows = atom_rows(lines)
    lines = drop_lines(lines, rows, other_locations(lines, rows))
    rows = atom_rows(lines)
    return Molecule(
        format=PDB,
        name=read_name(b"".join(lines)),
        lines=lines,
        rows=rows,
        positions=fields.positions_of(fields.parse_columns(lines, rows, PLACE)),
        elements=[_element_of(lines[row][ATOM_NAME], lines[row][ELEMENT]) for row in rows],
        bonds=bonds_of_conect(lines, rows),
    )


def atom_rows(lines: Sequence[bytes]) -> list[int]:
    """Return the rows of all atoms."""
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
    name = find_name(text)
    return fields.decode(name[1]) if name else ""


def find_name(text: bytes) -> re.Match[bytes] | None:
    """Return where a remark says a name, which is the first group."""
    return NAME.search(text) if b"Name = " in text else None


def bond_graph(molecule: Molecule) -> BondGraph:
    """Return bonds, and the charges by valence and in the columns of atoms."""
    bonds = bonds_of(molecule)
    charges = charges_by_valence(molecule, bonds)
    for i, row in enumerate(molecule.rows):
        if charge := SIGNED.fullmatch(molecule.lines[row][CHARGE]):
            charges[i] = int((charge[2] or charge[3]) + (charge[1] or charge[4]))
    return BondGraph(bonds, charges)


# ---- writing ----------------------------------------------------------------------------------


def rewrite(molecule: Molecule, name: str, positions: Positions, notes: PoseNotes) -> bytes:
    """Return the record with other coordinates, and remarks before it."""
    lines = fields.move_atoms(molecule.lines, molecule.rows, positions, _put_place)
    kept = [line for line in lines if not line.startswith(DROPPED_LINES) and line.strip() != b"END"]
    record = fields.end_with_newline(b"".join(kept))
    return remarks("" if find_name(record) else name, notes) + record


def _put_place(line: bytes, place: Sequence[float]) -> bytes:
    return line[: PLACE[0].start] + fields.format_place(place, 8, 3) + line[PLACE[-1].stop :]


def remarks(name: str, notes: PoseNotes) -> bytes:
    """Return what stands before a record: the name if there is one, and the notes."""
    lines = [f"REMARK  Name = {name}\n"] if name else []
    lines += [f"{POSE_REMARK}{note} {text}\n" for note, text in notes.items()]
    return "".join(lines).encode()


def build(molecule: Molecule, name: str, positions: Positions, notes: PoseNotes) -> bytes:
    """Return a pose of a molecule of another format."""
    bonds, charges = molecule.format.bond_graph(molecule)
    atoms = atom_lines(molecule.elements, positions)
    lines = [
        f"{line}          {element.upper():>2}{_charge_columns(charges.get(i, 0))}\n"
        for i, (line, element) in enumerate(zip(atoms, molecule.elements, strict=True))
    ]
    lines += _conect(bonds)
    return remarks(molecule.name or name, notes) + "".join(lines).encode()


def atom_lines(elements: Sequence[str], positions: Positions) -> list[str]:
    """Return the lines of atoms up to the temperature factor."""
    counts: dict[str, int] = {}
    lines = []
    for i, (element, place) in enumerate(zip(elements, positions.tolist(), strict=True), 1):
        counts[element] = counts.get(element, 0) + 1
        atom = f"{element.upper():>2}{counts[element]}"[:FULL_NAME]
        x, y, z = [fields.format_number(number, 8, 3) for number in place]
        lines.append(f"HETATM{i % 100000:5d} {atom:<4} LIG A   1    {x}{y}{z}  1.00  0.00")
    return lines


def _charge_columns(charge: int) -> str:
    """Return columns 79 and 80; empty where there is no charge, or it has no room."""
    sign = "-" if charge < 0 else "+"
    return f"{abs(charge)}{sign}" if 0 < abs(charge) <= LARGEST_CHARGE else ""


def _conect(bonds: Sequence[Bond]) -> list[str]:
    """Return lines of CONECT: a double bond has the partner twice, an aromatic one once."""
    partners: dict[int, list[int]] = {}
    for a, b, order in bonds:
        times = 1 if order >= AROMATIC else order
        partners.setdefault(a, []).extend([b + 1] * times)
        partners.setdefault(b, []).extend([a + 1] * times)
    lines = []
    for a, found in sorted(partners.items()):
        for at in range(0, len(found), 4):
            row = "".join(f"{b:5d}" for b in found[at : at + 4])
            lines.append(f"CONECT{a + 1:5d}{row}\n")
    return lines


PDB = LigandFormat(
    name="pdb",
    suffixes=(".pdb", ".ent"),
    signature=ATOM,
    find_ends=find_ends,
    parse=parse,
    read_name=read_name,
    rewrite=rewrite,
    build=build,
    bond_graph=bond_graph,
    rewrite_limit=LARGEST_COORDINATE,
    build_limit=LARGEST_COORDINATE,
    has_models=True,
)
