"""Regular records of PDBQT, many at once: text to arrays, and poses back to text.

A record is *regular* where

    every line ends with a newline alone, and begins with one of the words below;
    atoms have all columns, with numbers as `%8.3f` and `%10.3f` write them;
    all types are of elements, and have a map;
    there are up to MOST_ATOMS atoms, which do not overlap.

All others are read one by one by `pdbqt`, as which regular ones are the same.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from multigpu.formats.molecules import fields, pdb
from multigpu.formats.molecules.autodock_types import PSEUDO_TYPES, type_seen
from multigpu.formats.molecules.bonds import MOST_ATOMS, covalent_radius
from multigpu.formats.molecules.decimals import BLANK, Letters, read_decimals, write_decimals
from multigpu.formats.molecules.elements import FEW_WORDS, is_element, is_heavy
from multigpu.formats.molecules.molecule import Molecule, Positions
from multigpu.formats.molecules.pdbqt import CHARGE, PDBQT, TYPE, element_of_type
from multigpu.formats.molecules.scoring import AtomTerms, terms_of
from multigpu.kernels.compiled.fragments import largest_fragments
from multigpu.kernels.rotation.types import MOST_WEIGHT

Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
PLACE, WIDTH = pdb.PLACE[0].start, 8  # columns of x, y and z
NEWLINE, RETURN = b"\n\r"
PADDING = b" " * 80  # after the text, so that no column of the last line is beyond it


def _words(*words: bytes) -> NDArray[np.uint64]:
    """Return words of up to eight letters as numbers."""
    return np.array([int.from_bytes(word, "little") for word in words], np.uint64)


ATOMS = _words(*pdb.ATOM_WORDS)
DROPPED = _words(b"MODEL ", b"MODEL\n", b"ENDMDL")
KEPT = _words(b"REMA", b"ROOT", b"ENDR", b"BRAN", b"ENDB", b"TORS")
POSE_REMARK = _words(pdb.POSE_REMARK[:8].encode(), pdb.POSE_REMARK[8:].encode())
SIX, FOUR = _words(b"\xff" * 6, b"\xff" * 4)  # letters


class RegularRecord(NamedTuple):
    """A regular record.

    body       lines that a pose keeps
    columns    int64[atoms]: where the coordinates of each begin in the body
    positions  float64[atoms, 3], Å
    terms      what the atoms score
    heavy      number of atoms that are no hydrogen
    is_part    whether atoms in other fragments are left out
    """

    body: bytes
    columns: Indices
    positions: Positions
    terms: AtomTerms
    heavy: int
    is_part: bool

    @property
    def molecule(self) -> Molecule:
        return PDBQT.parse(self.body.splitlines(keepends=True))

    @property
    def elements(self) -> list[str]:
        return self.molecule.elements


def read_regular(text: bytes, ends: Indices, maps: Sequence[str]) -> dict[int, RegularRecord]:
    """Return the regular records among those ending there. maps: types with one; (): all."""
    raw, count = np.frombuffer(text + PADDING, np.uint8), len(ends)
    lengths = np.diff(np.flatnonzero(raw == NEWLINE) + 1, prepend=0)
    begins = np.cumsum(lengths) - lengths
    line_record = np.searchsorted(ends, begins, "right")
    is_atom, is_kept, is_known = _sort_lines(raw, begins, lengths)
    is_regular = raw[ends - 1] == NEWLINE
    is_regular[line_record[~is_known]] = False
    is_regular[np.searchsorted(ends, np.flatnonzero(raw == RETURN), "right")] = False

    # Atoms, of all records.
    lines = np.flatnonzero(is_atom)
    at, record = begins[lines], line_record[lines]
    types, radii, heavy = _read_types(raw, at, lengths[lines], tuple(maps))
    charges = read_decimals(_letters(raw, at + CHARGE.start, CHARGE.stop - CHARGE.start))
    numbers = _letters(raw, at + PLACE, 3 * WIDTH).reshape(-1, WIDTH)
    positions = read_decimals(numbers).reshape(-1, 3)
    is_fine = (types >= 0) & (np.abs(charges) <= MOST_WEIGHT) & ~np.isnan(positions.sum(axis=1))
    is_regular[record[~is_fine]] = False
    sizes = np.bincount(record, minlength=count)
    is_regular &= sizes <= MOST_ATOMS
    largest = largest_fragments(positions, radii, sizes * is_regular, np.cumsum(sizes))

    # What is left of the regular records, and where it is in the text that poses keep.
    is_kept[lines[~largest]] = False
    body = raw[: lengths.sum()][np.repeat(is_kept, lengths)].tobytes()
    borders = np.append(0, np.cumsum(lengths * is_kept))  # of lines
    bodies = borders[np.searchsorted(line_record, np.arange(count + 1))].tolist()
    columns = (borders[lines] + PLACE)[largest]
    terms = terms_of(types[largest], charges[largest], maps)
    positions = positions[largest]
    left = np.bincount(record[largest], minlength=count).tolist()
    heavy_left = np.bincount(record, heavy * largest, count).astype(int).tolist()
    found = {}
    for i, (begin, end) in enumerate(pairwise(accumulate(left, initial=0))):
        if begin == end:
            continue
        atoms = slice(begin, end)
        found[i] = RegularRecord(
            body=body[bodies[i] : bodies[i + 1]],
            columns=columns[atoms] - bodies[i],
            positions=positions[atoms],
            terms=AtomTerms._make(each[atoms] for each in terms),
            heavy=heavy_left[i],
            is_part=left[i] < int(sizes[i]),
        )
    return found


def _sort_lines(raw: Letters, begins: Indices, lengths: Indices) -> tuple[Flags, Flags, Flags]:
    """Return which lines are atoms, which a pose keeps, and which may be in a regular record."""
    words = _letters(raw, begins, 16).view(np.uint64)
    is_atom = np.isin(words[:, 0] & SIX, ATOMS) & (lengths > TYPE.start + 1)
    is_dropped = np.isin(words[:, 0] & SIX, DROPPED) | (words == POSE_REMARK).all(axis=1)
    is_known = is_atom | is_dropped | np.isin(words[:, 0] & FOUR, KEPT)
    return is_atom, ~is_dropped, is_known


def _read_types(
    raw: Letters, at: Indices, lengths: Indices, maps: tuple[str, ...]
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """Return of the atoms in some lines what `_properties` says of each."""
    letters = _letters(raw, at + TYPE.start, 3)
    letters[:, 1:][lengths[:, None] < (TYPE.stop, TYPE.stop + 1)] = BLANK
    codes = letters @ np.array([1 << 16, 1 << 8, 1])
    kinds = np.unique(codes)
    names = [fields.decode(code.to_bytes(3, "big")) for code in kinds.tolist()]
    table = np.array([_properties(name, maps) for name in names]).reshape(-1, 3)
    number, radii, heavy = table[np.searchsorted(kinds, codes)].T
    return number.astype(np.int32), radii, heavy


@lru_cache(FEW_WORDS)
def _properties(name: str, maps: tuple[str, ...]) -> tuple[int, float, bool]:
    """Return the map of a type, -1 for none; its radius in Å; whether it is heavy."""
    element, seen = element_of_type(name), type_seen(name, maps)
    if not is_element(element) or name in PSEUDO_TYPES or not (seen in maps or not maps):
        return -1, -np.inf, False
    return maps.index(seen) if maps else 0, covalent_radius(element), is_heavy(element)


def _letters(raw: Letters, at: Indices, width: int) -> Letters:
    """Return uint8[n, width]: the letters from each place on."""
    found: Letters = sliding_window_view(raw, width)[at]
    return found


def move_regular(records: Sequence[RegularRecord], positions: Positions) -> list[bytes]:
    """Return bodies of records with other coordinates; b"" where a pose must be written alone.

    positions: float64[atoms, 3], Å, of all records
    """
    if not records:
        return []
    text = np.frombuffer(bytearray().join(record.body for record in records), np.uint8)
    ends = [*accumulate((len(record.body) for record in records), initial=0)]
    at = [record.columns + end for record, end in zip(records, ends, strict=False)]
    letters, fits = write_decimals(positions.ravel(), WIDTH)
    rows = letters.T.reshape(-1, 3 * WIDTH)
    sliding_window_view(text, 3 * WIDTH, writeable=True)[np.concatenate(at)] = rows
    odd = {
        *np.searchsorted(np.cumsum([*map(len, at)]), np.flatnonzero(~fits) // 3, "right").tolist()
    }
    moved = text.tobytes()
    return [b"" if i in odd else moved[a:b] for i, (a, b) in enumerate(pairwise(ends))]
