"""SDF with tables of V2000; RDKit makes them of V3000."""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from multigpu.errors import quoted
from multigpu.formats.molecules import fields
from multigpu.formats.molecules.autodock_types import types_by_rdkit
from multigpu.formats.molecules.bonds import stated_graph
from multigpu.formats.molecules.elements import element_of, is_element
from multigpu.formats.molecules.molecule import (
    FEWEST_FLAT,
    Bond,
    BondGraph,
    FormalCharges,
    LigandFormat,
    Molecule,
    MoleculeError,
    PoseNotes,
    Positions,
)
from multigpu.formats.optional import quiet_rdkit

ROW_OF_COUNTS = 3
LONGEST_HEAD = 12  # lines in which the one of the counts is looked for
VERSION = re.compile(rb"V[23]000\s*$", re.MULTILINE)
PLACE = slice(0, 10), slice(10, 20), slice(20, 30)  # columns of an atom
SYMBOL, CHARGE_CODE = slice(30, 34), slice(36, 39)
CHARGE_CODES = {b"1": 3, b"2": 2, b"3": 1, b"5": -1, b"6": -2, b"7": -3}
DIMENSION = slice(20, 22)  # columns of the second line
FEWEST_FLAT_IN_2D = 2  # atoms
LARGEST = 999  # atoms or bonds
CHARGES_A_LINE = 8
NO_ELEMENT = "*"
LAST_LINE = b"$$$$\n"
LAST = re.compile(rb"^\$\$\$\$[ \t\r]*\n", re.MULTILINE)
POSE_ITEM = re.compile(rb"^>[^\n]*<multigpu_\w+>[^\n]*\n(?:[^\r\n]+\r?\n)*\r?\n?", re.MULTILINE)


def find_ends(text: bytes, final: bool) -> list[int]:
    """Return the ends of all lines of $$$$ alone; a .mol file needs none."""
    found = (LAST.match(text, begin) for begin in fields.find_lines((b"$$$$",), text))
    ends = [line.end() for line in found if line]
    return fields.add_rest(ends, text, final and bool(text[fields.last_end(ends) :].strip()))


def fewest_flat_atoms(text: bytes) -> float:
    """Return from how many atoms in a plane on a record is a drawing: its header may say it."""
    dimension = b"".join(text.split(b"\n", 2)[1:2])[DIMENSION].upper()
    return {b"2D": FEWEST_FLAT_IN_2D, b"3D": math.inf}.get(dimension, FEWEST_FLAT)


# Rows, positions and elements of atoms, bonds, formal charges.
Table = tuple[list[int], Positions, list[str], list[Bond], dict[int, int]]


def parse(lines: list[bytes]) -> Molecule:
    counts = fields.line_at(lines, ROW_OF_COUNTS, "its counts line")
    found = [row for row, line in enumerate(lines[:LONGEST_HEAD]) if VERSION.search(line)]
    if found and ROW_OF_COUNTS not in found:
        problem = "is line 4 in SDF: are there blank lines before the record?"
        raise MoleculeError(f"line {found[0] + 1} is its counts line, which {problem}")
    lines = _as_v2000(lines) if b"V3000" in counts else lines
    rows, positions, elements, bonds, formal = _read_table(lines)
    return Molecule(
        format=SDF,
        name=fields.decode(lines[0]),
        lines=lines,
        rows=rows,
        positions=positions,
        elements=elements,
        bonds=bonds,
        formal=formal,
        bonds_are_complete=bool(bonds),
    )


def _read_table(lines: list[bytes]) -> Table:
    counts = lines[ROW_OF_COUNTS]
    atoms, bonds = fields.parse_integers((counts[0:3], counts[3:6]), ROW_OF_COUNTS)
    if min(atoms, bonds) < 0:
        raise MoleculeError(f"line 4: {quoted(counts[0:6])} are no numbers of atoms and bonds")
    first_bond = ROW_OF_COUNTS + 1 + atoms
    last = f"the last of {atoms} atoms and {bonds} bonds"
    fields.line_at(lines, first_bond + bonds - 1, last)
    rows = list(range(ROW_OF_COUNTS + 1, first_bond))
    positions = fields.parse_columns(lines, rows, PLACE)
    elements = [element_of(fields.decode(lines[row][SYMBOL])) for row in rows]
    joined = []
    for row in range(first_bond, first_bond + bonds):
        a, b, order = fields.parse_integers([lines[row][at : at + 3] for at in (0, 3, 6)], row)
        joined.append(fields.check_bond(a, b, order, atoms, row))
    end = _check_end(lines, first_bond + bonds)
    table = lines[first_bond + bonds : end]
    return rows, positions, elements, joined, _charges(table, [lines[row] for row in rows])


def _as_v2000(lines: list[bytes]) -> list[bytes]:
    """Return a record with its table of V3000 as one of V2000. Raises MoleculeError."""
    end, graph = _check_end(lines, ROW_OF_COUNTS + 1) + 1, None
    block = b"".join(lines[:end]).decode("utf-8", "replace")
    with quiet_rdkit() as chem, suppress(ValueError, RuntimeError):
        graph = chem.MolFromMolBlock(block, False, False, False)
    if graph is None:
        raise MoleculeError("RDKit does not read its table of V3000")
    if max(graph.GetNumAtoms(), graph.GetNumBonds()) > LARGEST:
        raise MoleculeError(f"it has more than {LARGEST} atoms or bonds: give PDB or MOL2")
    with quiet_rdkit() as chem:
        table = chem.MolToMolBlock(graph, False, -1, False).encode().splitlines()
    newline = fields.newline_of(lines[0])
    return [*lines[:3], *(line + newline for line in table[3:]), *lines[end:]]


def _charges(table: Sequence[bytes], atoms: Sequence[bytes]) -> dict[int, int]:
    """Return the charges of the lines M  CHG, which supersede (M  RAD, too) those of the atoms."""
    if any(line.startswith((b"M  CHG", b"M  RAD")) for line in table):
        words = [word for line in table if line.startswith(b"M  CHG") for word in line.split()[3:]]
        return {
            int(atom) - 1: int(charge)
            for atom, charge in zip(words[::2], words[1::2], strict=False)
            if atom.isdigit() and charge.lstrip(b"+-").isdigit()
        }
    codes = (line[CHARGE_CODE].strip() for line in atoms)
    return {i: CHARGE_CODES[code] for i, code in enumerate(codes) if code in CHARGE_CODES}


def _check_end(lines: Sequence[bytes], begin: int) -> int:
    """Return the row of M  END. Raises MoleculeError where it has none from row `begin` on."""
    for row in range(begin, len(lines)):
        if lines[row].startswith(b"M  END"):
            return row
    raise MoleculeError(f"it ends at line {len(lines)}, before its 'M  END'")


def read_name(text: bytes) -> str:
    """Return the first line."""
    lines = text.splitlines()
    return fields.decode(lines[0]) if lines else ""


def rewrite(molecule: Molecule, name: str, positions: Positions, notes: PoseNotes) -> bytes:
    """Return the record with other coordinates, and notes as data items in place of older ones."""
    lines = fields.move_columns(molecule, positions, PLACE[0].start, width=10, decimals=4)
    newline = fields.newline_of(lines[0])
    lines[0] = fields.fill_blank(lines[0], name)
    record = LAST.split(POSE_ITEM.sub(b"", b"".join(lines)) + b"\n", maxsplit=1)[0].rstrip(b"\r\n")
    gap = newline if record.endswith(b"M  END") else newline * 2
    return record + gap + _data_items(notes, newline) + b"$$$$" + newline


def _data_items(notes: PoseNotes, newline: bytes) -> bytes:
    items = [f"> <multigpu_{name}>\n{text}\n\n" for name, text in notes.items()]
    return "".join(items).encode().replace(b"\n", newline)


def build(
    molecule: Molecule,
    name: str,
    positions: Positions,
    notes: PoseNotes,
    graph: BondGraph | None = None,
) -> bytes:
    """Return any molecule as a pose; graph: bonds, if not its own. Raises MoleculeError."""
    bonds, charges = graph or molecule.format.bond_graph(molecule)
    head = f"{molecule.name or name}\n  multigpu          3D\n\n"
    if max(len(molecule.elements), len(bonds)) > LARGEST:
        own = molecule.format.name
        raise MoleculeError(f"it has more than {LARGEST} atoms or bonds: write its poses as .{own}")
    elements = [each if is_element(each) else NO_ELEMENT for each in molecule.elements]
    table = _write_table(elements, positions, bonds, charges)
    return f"{head}{table}M  END\n".encode() + _data_items(notes, b"\n") + LAST_LINE


def keep_atoms(molecule: Molecule, kept: Sequence[int]) -> list[bytes]:
    """Return a record with some of the atoms, their bonds and charges, and the data items."""
    number, (bonds, charges) = {atom: i for i, atom in enumerate(kept)}, stated_graph(molecule)
    graph = BondGraph(
        [(number[a], number[b], order) for a, b, order in bonds if a in number],
        {number[atom]: charge for atom, charge in charges.items() if atom in number},
    )
    part = replace(molecule, elements=[molecule.elements[atom] for atom in kept])
    table = build(part, "", molecule.positions[kept], {}, graph).removesuffix(LAST_LINE)
    items = molecule.lines[_check_end(molecule.lines, molecule.rows[-1]) + 1 :]
    return [*table.splitlines(keepends=True), *items]


def _write_table(
    elements: Sequence[str], positions: Positions, bonds: Sequence[Bond], charges: FormalCharges
) -> str:
    lines = [f"{len(elements):3d}{len(bonds):3d}  0  0  0  0  0  0  0  0999 V2000\n"]
    for element, place in zip(elements, positions.tolist(), strict=True):
        columns = fields.format_place(place, 10, 4)
        lines.append(f"{columns} {element:<3} 0  0  0  0  0  0  0  0  0  0  0  0\n")
    lines += [f"{a + 1:3d}{b + 1:3d}{order:3d}  0\n" for a, b, order in bonds]
    words = [f" {atom + 1:3d} {charge:3d}" for atom, charge in sorted(charges.items())]
    for at in range(0, len(words), CHARGES_A_LINE):
        group = words[at : at + CHARGES_A_LINE]
        lines.append(f"M  CHG{len(group):3d}{''.join(group)}\n")
    return "".join(lines)


SDF = LigandFormat(
    name="sdf",
    suffixes=(".sdf", ".sd", ".mol"),
    signature=VERSION,
    find_ends=find_ends,
    parse=parse,
    read_name=read_name,
    rewrite=rewrite,
    keep_atoms=keep_atoms,
    bond_graph=stated_graph,
    atom_types=types_by_rdkit,
    fewest_flat_atoms=fewest_flat_atoms,
)
