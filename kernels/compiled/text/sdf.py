"""SDF as programs write it, V2000, many ligands at once: text to arrays.

A record is *regular* where

    every line ends with a newline, there are no control characters, and no data item of a pose;
    its counts line says V2000, and as many lines of atoms and bonds follow;
    coordinates are decimals as in `-0.8883`, and no atoms overlap;
    bonds are between atoms that there are, and join them all;
    a line of `M  END` comes after them, and an empty line after data items.

Types and charges for AutoGrid's maps are not read: they need RDKit.
"""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.fragments import are_crowded, join
from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.native import find_byte
from multigpu.kernels.compiled.text.fixed_width import read_decimal, read_whole
from multigpu.kernels.compiled.text.words import (
    BLANK,
    NEWLINE,
    CoordinatePlaces,
    are_whole_lines,
    begins_with,
    find_word,
    word_table,
)

HEAD = 3  # lines before that of the counts
COUNT = 3  # columns of a number of atoms or bonds, and of what a bond says
WIDTH = 10  # columns of x, y and z each
SHORTEST_ATOM = 3 * WIDTH + 1  # letters of its line, with the newline
COORDINATES = CoordinatePlaces(
    header=HEAD + 1, words=word_table([b""]), column=0, width=WIDTH, decimals=4
)
END_WORD, DATA_WORD, LAST_WORD = word_table([b"M  END"]), word_table([b">"]), word_table([b"$$$$"])
LAST_LINE = word_table([b"$$$$\n"])
VERSION_WORD, OTHER_VERSION_WORD = word_table([b"V2000"]), word_table([b"V3000"])
POSE_ITEM_WORD = word_table([b"<multigpu_"])
WRONG_HEAD_WORDS = word_table([b">", b"$$$$"])  # of lines before that of the counts
LETTER_C, HYDROGEN_LETTERS = b"C"[0], tuple(b"HDT")
SYMBOL = 4  # columns, the first of them blank
CARBON, HYDROGEN = 1, 2


@jit
def read_records(texts: Any, farthest: Any) -> Any:
    """Return the atoms of the records that are regular, and what is known of each record.

    texts     TextArrays of n records
    farthest  Å: the largest coordinate, above and below 0
    returns   positions float64[atoms, 3] in Å; sizes int64[n], 0 atoms for a record that is not
              regular; lengths of the titles, int64[n]; where the text is that a pose keeps, begins
              int64[n] and lengths int64[n]: with the title where that is more than blanks;
              bool[n], whether it is; bool[n], whether hydrogens are lacking
    """
    raw, begins, lengths = texts
    positions = np.empty((lengths.sum() // SHORTEST_ATOM + 1, 3), np.float64)
    sizes, titles = np.zeros(begins.shape[0], np.int64), np.zeros(begins.shape[0], np.int64)
    bodies, kept = np.zeros_like(sizes), np.zeros_like(sizes)
    named, lacking = np.zeros(begins.shape[0], np.bool_), np.zeros(begins.shape[0], np.bool_)
    first = 0
    for i in range(begins.shape[0]):
        begin, stop = begins[i], begins[i] + lengths[i]
        if not are_whole_lines(raw, begin, stop):
            continue
        sizes[i], lacking[i], end = _read_record(raw, begin, stop, positions[first:], farthest)
        if sizes[i] > 0:
            first += sizes[i]
            titles[i] = find_byte(raw, begin, stop, NEWLINE) - begin
            for byte in raw[begin : begin + titles[i]]:
                named[i] |= byte != BLANK
            bodies[i] = begin if named[i] else begin + titles[i]
            kept[i] = end - bodies[i]
    return positions[:first], sizes, titles, bodies, kept, named, lacking


@jit
def _read_record(raw: Any, at: Any, stop: Any, positions: Any, farthest: Any) -> Any:
    """Return how many atoms it has, whether it lacks hydrogens, and where ends what a pose keeps.

    A record that is not regular has 0 atoms.
    """
    for _ in range(HEAD):
        if at == stop or begins_with(raw, at, stop, WRONG_HEAD_WORDS):
            return 0, False, 0
        at = find_byte(raw, at, stop, NEWLINE) + 1
    end = find_byte(raw, at, stop, NEWLINE) if at < stop else -1
    if end - at < 2 * COUNT or find_word(raw, at, end, VERSION_WORD) < 0:
        return 0, False, 0
    if find_word(raw, at, end, OTHER_VERSION_WORD) >= 0:
        return 0, False, 0
    atoms = read_whole(raw, at, at + COUNT)
    bonds = read_whole(raw, at + COUNT, at + 2 * COUNT)
    at, symbols = _read_atoms(raw, end + 1, stop, positions, atoms, farthest)
    at = _skip_bonds(raw, at, stop, atoms, bonds) if at > 0 else 0
    end = _find_end(raw, at, stop) if at > 0 else 0
    if end == 0 or atoms <= 0 or bonds < 0 or are_crowded(positions[:atoms]):
        return 0, False, 0
    return atoms, symbols == CARBON, end


@jit
def _read_atoms(raw: Any, at: Any, stop: Any, positions: Any, atoms: Any, farthest: Any) -> Any:
    """Return where the atoms' lines end, 0 where one is not regular; and the kinds of symbols."""
    symbols = 0
    for atom in range(atoms):
        end = find_byte(raw, at, stop, NEWLINE) if at < stop else -1
        if end - at < 3 * WIDTH:
            return 0, 0
        for axis in range(3):
            positions[atom, axis] = read_decimal(raw, at + WIDTH * axis, at + WIDTH * (axis + 1))
            if not abs(positions[atom, axis]) <= farthest:  # NaN, too
                return 0, 0
        symbols |= _kind_of_symbol(raw, at + 3 * WIDTH, end)
        at = end + 1
    return at, symbols


@jit
def _skip_bonds(raw: Any, at: Any, stop: Any, atoms: Any, bonds: Any) -> Any:
    """Return where the bonds' lines end; 0 where one is not regular, or they do not join all."""
    first, fragments = np.arange(max(atoms, 0)), atoms
    for _ in range(bonds):
        end = find_byte(raw, at, stop, NEWLINE) if at < stop else -1
        if end - at < 3 * COUNT or read_whole(raw, at + 2 * COUNT, at + 3 * COUNT) < 0:
            return 0
        a = read_whole(raw, at, at + COUNT)
        b = read_whole(raw, at + COUNT, at + 2 * COUNT)
        if not (0 < a <= atoms and 0 < b <= atoms):
            return 0
        fragments -= join(first, a - 1, b - 1)
        at = end + 1
    return at if fragments == 1 else 0


@jit
def _kind_of_symbol(raw: Any, at: Any, stop: Any) -> Any:
    """Return `CARBON`, `HYDROGEN` or 0. at: where the columns of an atom's symbol begin."""
    letter = BLANK
    for byte in raw[at : min(stop, at + SYMBOL)]:
        if byte != BLANK and letter != BLANK:
            return 0
        letter = max(letter, byte)
    if letter == LETTER_C:
        return CARBON
    return HYDROGEN * (letter in HYDROGEN_LETTERS)


@jit
def _find_end(raw: Any, at: Any, stop: Any) -> Any:
    """Return where ends what a pose keeps of a record, 0 where that is not regular.

    at: after the bonds. It has `M  END`, no data item of a pose, and no empty lines at the end,
    but for the one after data items; no line but the last begins with `$$$$`.
    """
    has_end = False
    while at < stop and not begins_with(raw, at, stop, LAST_LINE):
        end = find_byte(raw, at, stop, NEWLINE)
        if begins_with(raw, at, end, LAST_WORD):
            return 0
        has_end |= begins_with(raw, at, end, END_WORD)
        if begins_with(raw, at, end, DATA_WORD) and find_word(raw, at, end, POSE_ITEM_WORD) >= 0:
            return 0
        at = end + 1
    line = at - 1
    while raw[line - 1] == NEWLINE:
        line -= 1
    gap = 1 if begins_with(raw, line - END_WORD.shape[1], line, END_WORD) else 2
    return line + gap if has_end and line + gap <= at else 0
