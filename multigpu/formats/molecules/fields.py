"""Borders of records; words and numbers in their lines, read with the line in every error.

A function that finds borders takes a text that begins with a record, and whether it is `final`. It
returns the ends of the records in it, in order. Without `final` the last one is left out where more
of it may come.
"""

import re
from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import quoted
from multigpu.formats.molecules.molecule import Bond, Molecule, MoleculeError, PoseNotes, Positions

TOKEN = re.compile(rb"\S+")


def find_lines(marks: tuple[bytes, ...], text: bytes) -> list[int]:
    """Return where the lines begin that begin with one of the marks."""
    pattern = rb"\n(?=%b)" % b"|".join(map(re.escape, marks))
    first = [0] if text.startswith(marks) else []
    return first + [newline.end() for newline in re.finditer(pattern, text)]


def last_end(ends: list[int]) -> int:
    """Return where what comes after all records begins."""
    return ends[-1] if ends else 0


def add_rest(ends: list[int], text: bytes, is_record: bool) -> list[int]:
    """Return the ends, and that of the text where the rest of it is a record."""
    return [*ends, len(text)] if is_record and last_end(ends) < len(text) else ends


def decode(line: bytes) -> str:
    """Return text without the blanks around it; what is not UTF-8 becomes question marks."""
    return line.decode("utf-8", "replace").strip()


def line_at(lines: Sequence[bytes], row: int, what: str) -> bytes:
    """Return a line. Raises MoleculeError that says before what the record ends."""
    if row >= len(lines):
        raise MoleculeError(f"it ends at line {len(lines)}, before {what}")
    return lines[row]


def parse_floats(words: Sequence[bytes], row: int, what: str = "coordinates") -> list[float]:
    """Return words as numbers. Raises MoleculeError."""
    try:
        return [float(word) for word in words]
    except ValueError:
        shown = quoted(b" ".join(words).rstrip())
        raise MoleculeError(
            f"line {row + 1}: the {what} {shown} cannot be read as numbers"
        ) from None


def parse_columns(
    lines: Sequence[bytes], rows: Sequence[int], columns: Sequence[slice], what: str = "coordinates"
) -> NDArray[np.float64]:
    """Return float64[rows, columns]: the numbers there. Raises MoleculeError."""
    found = [parse_floats([lines[row][part] for part in columns], row, what) for row in rows]
    return np.array(found, np.float64).reshape(-1, len(columns))


def parse_integers(words: Sequence[bytes], row: int) -> list[int]:
    """Return words as whole numbers. Raises MoleculeError."""
    try:
        return [int(word) for word in words]
    except ValueError:
        shown = quoted(b" ".join(words).rstrip())
        raise MoleculeError(f"line {row + 1}: {shown} should be whole numbers") from None


def check_bond(a: int, b: int, order: int, atoms: int, row: int) -> Bond:
    """Return the bond between two atoms, numbered from 1. Raises MoleculeError for others."""
    if not (0 < a <= atoms and 0 < b <= atoms):
        raise MoleculeError(f"line {row + 1}: a bond between atoms {a} and {b} of {atoms}")
    return a - 1, b - 1, order


def positions_of(rows: Sequence[Sequence[float]]) -> Positions:
    """Return float64[n, 3], of no atoms as well."""
    return np.array(rows, np.float64).reshape(-1, 3)


def format_number(number: float, width: int, decimals: int) -> str:
    """Return `%*.*f`, with fewer decimals if it is wider. Raises MoleculeError without room."""
    for digits in range(decimals, -1, -1):
        text = f"{number:#{width}.{digits}f}"
        if len(text) <= width:
            return text
    raise MoleculeError(f"{number:g} does not fit the {width} columns of a number in a pose")


def format_place(place: Sequence[float], width: int, decimals: int) -> str:
    """Return x, y and z in columns of this width."""
    return "".join([format_number(number, width, decimals) for number in place])


def move_columns(
    molecule: Molecule, positions: Positions, begin: int, width: int, decimals: int
) -> list[bytes]:
    """Return the lines with other coordinates, in three columns from `begin` on."""
    lines = list(molecule.lines)
    for row, place in zip(molecule.rows, positions.tolist(), strict=True):
        line, columns = lines[row], format_place(place, width, decimals).encode()
        lines[row] = line[:begin] + columns + line[begin + 3 * width :]
    return lines


def move_words(molecule: Molecule, positions: Positions, first: int, decimals: int) -> list[bytes]:
    """Return the lines with coordinates from word `first` on, as wide as before if they fit."""
    lines = list(molecule.lines)
    for row, place in zip(molecule.rows, positions.tolist(), strict=True):
        before, *words = islice(TOKEN.finditer(lines[row]), first - 1, first + 3)
        end = before.end()
        parts = [lines[row][:end]]
        for word, number in zip(words, place, strict=True):
            parts.append(b" " + (b"%.*f" % (decimals, number)).rjust(word.end() - end - 1))
            end = word.end()
        lines[row] = b"".join([*parts, lines[row][end:]])
    return lines


def newline_of(line: bytes) -> bytes:
    """Return how a line ends."""
    return b"\r\n" if line.endswith(b"\r\n") else b"\n"


def fill_blank(line: bytes, text: str) -> bytes:
    """Return the line; where it is blank the text as a line with the same end."""
    return line if line.strip() else text.encode() + newline_of(line)


def end_with_newline(text: bytes) -> bytes:
    return text if text.endswith(b"\n") else text + b"\n"


def join_notes(notes: PoseNotes, between: str) -> str:
    """Return notes in one line: each name and what it says, with `between` between them."""
    return " ".join(f"{name}{between}{text}" for name, text in notes.items())
