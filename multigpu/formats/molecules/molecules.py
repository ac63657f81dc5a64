"""The text of one molecule to atoms, and back with other coordinates and nothing else changed.

Coordinates are in Å. Atoms keep their order; hydrogens are kept as given. Names, properties,
bonds and whatever else stands in a record survive, because a pose is written by putting new
numbers into the lines of its atoms.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, takewhile

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import quoted
from multigpu.formats.molecules.pdb import conected, other_places, without
from multigpu.formats.molecules.v3000 import TOKEN, gather_place, section
from multigpu.kernels.rotation.types import FARTHEST, MOST_WEIGHT

_SYMBOLS = (  # by atomic number
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br"
    " Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho"
    " Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es"
    " Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
)
ELEMENTS = _SYMBOLS.split()
HEAVY_HYDROGEN = {"D", "T"}
AUTODOCK_ELEMENTS = {  # of the atom types that are not called like their element
    "A": "C", "HD": "H", "HS": "H", "NA": "N", "NS": "N", "OA": "O", "OS": "O", "SA": "S",
    "G": "C", "GA": "C", "J": "C", "Q": "C", "Z": "Zn", "TZ": "Zn", "W": "O",
    **{f"CG{i}": "C" for i in range(10)},  # beside the open bond of a macrocycle
}  # fmt: skip
AROMATIC, AMIDE = 4, 1  # bond orders
SYBYL_BONDS = {b"1": 1, b"2": 2, b"3": 3, b"ar": AROMATIC, b"am": AMIDE}
PDB_X = slice(30, 38), slice(38, 46), slice(46, 54)
PDBQT_CHARGE = (slice(66, 76),)
SDF_X = slice(0, 10), slice(10, 20), slice(20, 30)
PDB_NAME = re.compile(rb"(?<![^\r\n])REMARK[^\r\n]*?Name = ([^\r\n]*)")
MOLECULE, SECTION = b"@<TRIPOS>MOLECULE", b"@<TRIPOS>"
OUR_FACTS = re.compile(r"(?:^| )score=\S+ pose=\S+ rotation=\S+ rmsd_to_input=\S+$")
DIGITS = "0123456789"
MOST_SHOWN = 20  # digits
FULL_NAME = 4  # letters of an atom's name in PDB
FEW_WORDS = 4096  # elements and types, looked up again and again

Positions = NDArray[np.float64]
Bond = tuple[int, int, int]  # two atoms from 0, and the order; 4: aromatic


class MoleculeError(ValueError):
    """What is wrong with one molecule, in words for its user."""


@dataclass(frozen=True, eq=False)
class Molecule:
    """One molecule of a file.

    lines      of the record, with their ends
    rows       int[n]: in which line each atom stands
    positions  float64[n, 3], Å, within ±FARTHEST
    elements   symbols
    types      of MOL2 and PDBQT the file's own, SYBYL's and AutoDock's; else empty
    charges    float64[n] of MOL2 and PDBQT; else None
    bonds      of SDF, MOL2 and the CONECT of PDB; else empty
    """

    layout: str
    name: str
    lines: list[bytes]
    rows: list[int]
    positions: Positions
    elements: list[str]
    types: list[str]
    charges: NDArray[np.float64] | None
    bonds: list[Bond]

    @property
    def text(self) -> bytes:
        return b"".join(self.lines)


def parse(text: bytes, layout: str) -> Molecule:
    """The molecule of a record; its name is empty where the record has none.

    Raises MoleculeError that names the line, from 1.
    """
    lines = text.splitlines(keepends=True)
    molecule = PARSERS[layout](lines)
    if not molecule.rows:
        raise MoleculeError("it has no atoms")
    near = (np.abs(molecule.positions) <= FARTHEST).all(axis=1)
    if not near.all():
        atom = int(np.argmin(near))
        far = np.isfinite(molecule.positions[atom]).all()
        problem = f"beyond ±{FARTHEST:g} Å" if far else "not finite"
        raise MoleculeError(f"line {molecule.rows[atom] + 1}: the coordinates are {problem}")
    if molecule.charges is not None and (odd := ~(np.abs(molecule.charges) <= MOST_WEIGHT)).any():
        atom = int(np.argmax(odd))
        problem = f"atom {atom + 1} has a charge of {molecule.charges[atom]:g}"
        raise MoleculeError(f"line {molecule.rows[atom] + 1}: {problem}")
    return molecule


def title(text: bytes, layout: str) -> str:
    """The name that a record gives its molecule, even where the rest of it is wrong."""
    if layout in ("pdb", "pdbqt"):
        return _pdb_title(text)
    return TITLES[layout](text.splitlines(keepends=True))


def moved(molecule: Molecule, positions: Positions) -> list[bytes]:
    """The lines of the record with these coordinates; all else is as it was."""
    lines = list(molecule.lines)
    put = MOVERS["v3000" if _is_v3000(molecule) else molecule.layout]
    for row, place in zip(molecule.rows, positions.tolist(), strict=True):
        lines[row] = put(lines[row], place)
    return lines


def fitted(number: float, width: int, decimals: int) -> str:
    """As `%*.*f`, with fewer decimals where it would be wider; at least the point stays.

    Raises MoleculeError where that is too wide as well: it would shift the columns behind it.
    """
    for some in range(decimals, -1, -1):
        text = f"{number:#{width}.{some}f}"
        if len(text) <= width:
            return text
    raise MoleculeError(f"{number:g} does not fit the {width} columns of a number in a pose")


def _columns_of(place: Sequence[float], width: int, decimals: int) -> bytes:
    return "".join([fitted(number, width, decimals) for number in place]).encode()


@lru_cache(FEW_WORDS)
def element_of(word: str) -> str:
    """A symbol as it is written properly; an atomic number is its element."""
    if word.isascii() and word.isdigit() and 0 < int(word) <= len(ELEMENTS):
        return ELEMENTS[int(word) - 1]
    return word[:1].upper() + word[1:].lower()


@lru_cache(FEW_WORDS)
def is_element(symbol: str) -> bool:
    """Dummy atoms, lone pairs and pseudo atoms of AutoDock are none: `Du`, `LP`, `G0`."""
    return symbol.capitalize() in ELEMENTS or symbol in HEAVY_HYDROGEN


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()


@lru_cache(FEW_WORDS)
def _word(column: bytes) -> str:
    """As `_text`, of columns that hold the same few words in all molecules."""
    return _text(column)


def _at(lines: Sequence[bytes], row: int, what: str) -> bytes:
    if row >= len(lines):
        raise MoleculeError(f"it ends at line {len(lines)}, before {what}")
    return lines[row]


def _numbers(words: Sequence[bytes], row: int, what: str = "coordinates") -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError:
        shown = quoted(b" ".join(words))
        raise MoleculeError(
            f"line {row + 1}: the {what} {shown} cannot be read as numbers"
        ) from None


def _columns(
    lines: Sequence[bytes], rows: Sequence[int], parts: Sequence[slice], what: str = "coordinates"
) -> list[list[float]]:
    """The numbers in these columns of every row, all at once: a call for each takes longer."""
    try:
        return [[float(lines[row][part]) for part in parts] for row in rows]
    except ValueError:
        return [_numbers([lines[row][part] for part in parts], row, what) for row in rows]


def _whole(words: Sequence[bytes], row: int) -> list[int]:
    try:
        return [int(word) for word in words]
    except ValueError:
        shown = quoted(b" ".join(words))
        raise MoleculeError(f"line {row + 1}: {shown} should be whole numbers") from None


def _bond(a: int, b: int, order: int, atoms: int, row: int) -> Bond:
    if not (0 < a <= atoms and 0 < b <= atoms):
        raise MoleculeError(f"line {row + 1}: a bond between atoms {a} and {b} of {atoms}")
    return a - 1, b - 1, order


def _positions(rows: Sequence[Sequence[float]]) -> Positions:
    return np.array(rows, np.float64).reshape(-1, 3)


# ---- SDF --------------------------------------------------------------------------------------


def _is_v3000(molecule: Molecule) -> bool:
    return molecule.layout == "sdf" and b"V3000" in molecule.lines[3]


def _parse_sdf(lines: list[bytes]) -> Molecule:
    counts = _at(lines, 3, "its counts line")
    if b"V3000" in counts:
        return _parse_v3000(lines)
    atoms, bonds = _whole((counts[0:3], counts[3:6]), 3)
    if min(atoms, bonds) < 0:
        raise MoleculeError(f"line 4: {quoted(counts[0:6])} are no numbers of atoms and bonds")
    _at(lines, 3 + atoms + bonds, f"the last of {atoms} atoms and {bonds} bonds")
    rows = range(4, 4 + atoms)
    positions = _columns(lines, rows, SDF_X)
    elements = [_word(lines[row][30:34]) for row in rows]
    joined = _sdf_bonds(lines, range(4 + atoms, 4 + atoms + bonds), atoms)
    _check_sdf_end(lines, 4 + atoms + bonds)
    return Molecule(
        "sdf",
        _sdf_title(lines),
        lines,
        list(rows),
        _positions(positions),
        elements,
        [],
        None,
        joined,
    )


def _sdf_bonds(lines: list[bytes], rows: range, atoms: int) -> list[Bond]:
    bonds = []
    for row in rows:
        line = lines[row]
        try:
            a, b, order = int(line[0:3]), int(line[3:6]), int(line[6:9])
        except ValueError:
            a, b, order = _whole([line[0:3], line[3:6], line[6:9]], row)
        bonds.append(_bond(a, b, order, atoms, row))
    return bonds


def _check_sdf_end(lines: list[bytes], begin: int) -> None:
    if not any(line.startswith(b"M  END") for line in lines[begin:]):
        raise MoleculeError(f"it ends at line {len(lines)}, before its 'M  END'")


def _parse_v3000(lines: list[bytes]) -> Molecule:
    rows: list[int] = []
    positions, elements, numbers, bonds = [], [], {}, []
    for row, words in section(lines, b"ATOM"):
        if len(words) < 5:
            raise MoleculeError(f"line {row + 1}: an atom needs a number, a type and a place")
        numbers[words[0]] = len(rows) + 1
        rows.append(row)
        elements.append(_text(words[1]))
        positions.append(_numbers(words[2:5], row))
    for row in rows:
        gather_place(lines, row)
    for row, words in section(lines, b"BOND"):
        if len(words) < 4:
            raise MoleculeError(f"line {row + 1}: a bond needs a number, an order and two atoms")
        a, b = (numbers.get(word, 0) for word in words[2:4])
        bonds.append(_bond(a, b, _whole(words[1:2], row)[0], len(rows), row))
    _check_sdf_end(lines, 4)
    return Molecule(
        "sdf", _sdf_title(lines), lines, rows, _positions(positions), elements, [], None, bonds
    )


def _sdf_title(lines: list[bytes]) -> str:
    return _text(lines[0]) if lines else ""


def _put_sdf(line: bytes, place: Sequence[float]) -> bytes:
    return _columns_of(place, 10, 4) + line[30:]


# ---- MOL2 -------------------------------------------------------------------------------------


def _parse_mol2(lines: list[bytes]) -> Molecule:
    rows: list[int] = []
    positions, elements, types, charges, numbers = [], [], [], [], {}
    for row, line in _mol2_section(lines, b"ATOM"):
        words = line.split()
        if len(words) < 6:
            raise MoleculeError(f"line {row + 1}: an atom needs a number, a name, a place, a type")
        numbers[words[0]] = len(rows) + 1
        rows.append(row)
        positions.append(_numbers(words[2:5], row))
        types.append(_text(words[5]))
        elements.append(element_of(types[-1].partition(".")[0]))
        charges.append(_numbers(words[8:9], row, "charge")[0] if len(words) > 8 else 0.0)
    bonds = []
    for row, line in _mol2_section(lines, b"BOND"):
        words = line.split()
        a, b = (numbers.get(word, 0) for word in (*words[1:3], b"", b"")[:2])
        bonds.append(_bond(a, b, SYBYL_BONDS.get(b"".join(words[3:4]), 1), len(rows), row))
    _check_mol2_counts(lines, len(rows))
    return Molecule(
        "mol2", _mol2_title(lines), lines, rows, _positions(positions), elements, types,
        np.array(charges), bonds,
    )  # fmt: skip


def _mol2_section(lines: list[bytes], section: bytes) -> Iterator[tuple[int, bytes]]:
    inside = False
    for row, line in enumerate(lines):
        if line.startswith(SECTION):
            inside = line.split()[0] == SECTION + section
        elif inside and line.strip() and not line.startswith(b"#"):
            yield row, line


def mol2_head(lines: Sequence[bytes]) -> range:
    """The rows of its MOLECULE block, told by their place: the name, which may be blank, counts."""
    marks = (row for row, line in enumerate(lines) if line.startswith(MOLECULE))
    begin = next(marks, len(lines)) + 1
    inside = takewhile(lambda line: not line.startswith(SECTION), islice(lines, begin, None))
    return range(begin, begin + sum(1 for _ in inside))


def _mol2_title(lines: list[bytes]) -> str:
    return next((_text(lines[row]) for row in mol2_head(lines)), "")


def _check_mol2_counts(lines: list[bytes], atoms: int) -> None:
    said = next((lines[row].split()[:1] for row in mol2_head(lines)[1:]), [])
    if said and said[0].isdigit() and said[0].lstrip(b"0") != (b"%d" % atoms).lstrip(b"0"):
        claimed = said[0][:MOST_SHOWN].decode()
        raise MoleculeError(f"it has {atoms} atoms where its header says {claimed}")


# ---- PDB and PDBQT ----------------------------------------------------------------------------


def _parse_pdb(lines: list[bytes]) -> Molecule:
    """Of an atom with several places the best occupied; the lines of the others are empty."""
    rows = _pdb_rows(lines)
    lines = without(lines, rows, other_places(lines, rows))
    rows = _pdb_rows(lines)
    positions = _columns(lines, rows, PDB_X)
    elements = [_pdb_element(lines[row][12:16], lines[row][76:78]) for row in rows]
    return Molecule(
        "pdb", _pdb_title(b"".join(lines)), lines, rows, _positions(positions), elements, [],
        None, conected(lines, rows),
    )  # fmt: skip


def _pdb_rows(lines: list[bytes]) -> list[int]:
    return [row for row, line in enumerate(lines) if line.startswith((b"ATOM  ", b"HETATM"))]


@lru_cache(FEW_WORDS)
def _pdb_element(name: bytes, columns: bytes) -> str:
    """Of its columns, else of the atom's name: it is right-aligned in the first two of four.

    A hydrogen of four letters has no room for that: HG11 is not mercury.
    """
    if symbol := _text(columns):
        return element_of(symbol)
    if name.startswith(b"H") and len(name.strip()) == FULL_NAME:
        return "H"
    symbol = element_of(_text(name[:2]).lstrip("0123456789"))
    return symbol if symbol in ELEMENTS else symbol[:1]


def _pdb_title(text: bytes) -> str:
    found = pdb_name(text)
    return _text(found[1]) if found else ""


def pdb_name(text: bytes) -> re.Match[bytes] | None:
    """Where a remark says a name, which is the first group."""
    return PDB_NAME.search(text) if b"Name = " in text else None


def _parse_pdbqt(lines: list[bytes]) -> Molecule:
    rows = _pdb_rows(lines)
    numbers = _columns(lines, rows, PDB_X)
    charges = _columns(lines, rows, PDBQT_CHARGE, "charge")
    types = [_word(lines[row][77:80]) for row in rows]
    for row, name in zip(rows, types, strict=True):
        if not name:
            raise MoleculeError(f"line {row + 1}: the atom has no AutoDock type")
    elements = [AUTODOCK_ELEMENTS.get(name) or element_of(name) for name in types]
    return Molecule(
        "pdbqt", _pdb_title(b"".join(lines)), lines, rows, _positions(numbers), elements, types,
        np.array(charges).reshape(-1), [],
    )  # fmt: skip


def _put_pdb(line: bytes, place: Sequence[float]) -> bytes:
    return line[:30] + _columns_of(place, 8, 3) + line[54:]


# ---- XYZ --------------------------------------------------------------------------------------


def _parse_xyz(lines: list[bytes]) -> Molecule:
    """Raises MoleculeError that says how many lines are not read, where another frame may be."""
    head = _xyz_head(lines)
    try:
        return _parse_frame(lines, head)
    except MoleculeError as error:
        count = _at(lines, head, "its number of atoms").strip()
        frame = head + 2 + (int(count) if _is_count(count) else 0)
        if len(lines) <= frame:
            raise
        rest = "lines, up to the next frame or the end of the file, are not read"
        raise MoleculeError(f"{error}; its {len(lines) - head} {rest}") from None


def _xyz_head(lines: list[bytes]) -> int:
    """The first row that is not blank."""
    return next((row for row, line in enumerate(lines) if line.strip()), 0)


def _is_count(word: bytes) -> bool:
    return word.isdigit() and len(word) < MOST_SHOWN


def _parse_frame(lines: list[bytes], head: int) -> Molecule:
    (atoms,) = _whole([_at(lines, head, "its number of atoms").strip()], head)
    if atoms < 0:
        raise MoleculeError(f"line {head + 1}: there cannot be {atoms} atoms")
    last = head + atoms + 1
    _at(lines, last, f"the last of {atoms} atoms")
    rows, positions, elements = list(range(head + 2, last + 1)), [], []
    for row in rows:
        words = lines[row].split()
        if len(words) < 4:
            raise MoleculeError(f"line {row + 1}: an atom needs a symbol and a place")
        elements.append(_xyz_element(_text(words[0])))
        positions.append(_numbers(words[1:4], row))
    for row in range(last + 1, len(lines)):
        if lines[row].strip():
            raise MoleculeError(f"line {row + 1}: there is more than the {atoms} atoms it says")
    return Molecule(
        "xyz", _xyz_title(lines), lines, rows, _positions(positions), elements, [], None, []
    )


@lru_cache(FEW_WORDS)
def _xyz_element(label: str) -> str:
    """Of a symbol, which may be numbered, or an atomic number."""
    return element_of(label.rstrip(DIGITS) or label)


def _xyz_title(lines: list[bytes]) -> str:
    """Its comment, without what a pose of ours adds to it."""
    head = _xyz_head(lines)
    return OUR_FACTS.sub("", _text(lines[head + 1])) if len(lines) > head + 1 else ""


def _words_mover(first: int, decimals: int) -> Callable[[bytes, Sequence[float]], bytes]:
    """Puts a place into the words `first` and after of a line, as wide as they were if it fits."""

    def put(line: bytes, place: Sequence[float]) -> bytes:
        words = list(islice(TOKEN.finditer(line), first + 3))
        parts, end = [line[: words[first - 1].end()]], words[first - 1].end()
        for word, number in zip(words[first:], place, strict=True):
            parts.append(b" " + (b"%.*f" % (decimals, number)).rjust(word.end() - end - 1))
            end = word.end()
        return b"".join([*parts, line[end:]])

    return put


PARSERS: dict[str, Callable[[list[bytes]], Molecule]] = {
    "sdf": _parse_sdf,
    "mol2": _parse_mol2,
    "pdb": _parse_pdb,
    "pdbqt": _parse_pdbqt,
    "xyz": _parse_xyz,
}
TITLES: dict[str, Callable[[list[bytes]], str]] = {
    "sdf": _sdf_title,
    "mol2": _mol2_title,
    "xyz": _xyz_title,
}
MOVERS: dict[str, Callable[[bytes, Sequence[float]], bytes]] = {
    "sdf": _put_sdf,
    "v3000": _words_mover(4, 6),
    "mol2": _words_mover(2, 4),
    "pdb": _put_pdb,
    "pdbqt": _put_pdb,
    "xyz": _words_mover(1, 6),
}
