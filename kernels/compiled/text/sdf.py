"""SDF as programs write it, V2000, many ligands at once: text to arrays, and poses back to text.

A record is *regular* where

    every line ends with a newline, there are no control characters, and no data item of a pose;
    its counts line says V2000, and as many lines of atoms and bonds follow;
    coordinates are decimals as in `-0.8883`, and bonds are between atoms that there are;
    a line of `M  END` comes after them.

Types and charges for AutoGrid's maps are not read: they need RDKit.
"""

import math
from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.native import copy_bytes, find_byte
from multigpu.kernels.compiled.text.fixed_width import put_decimal, read_decimal, read_whole
from multigpu.kernels.compiled.text.words import (
    BLANK,
    NEWLINE,
    are_whole_lines,
    begins_with,
    find_word,
    word_table,
)

HEAD = 3  # lines before that of the counts
COUNT = 3  # columns of a number of atoms or bonds, and of what a bond says
WIDTH, DECIMALS = 10, 4  # columns of x y z
SHORTEST_ATOM = 3 * WIDTH + 1  # letters of its line, with the newline
END_WORD, DATA_WORD, LAST_WORD = word_table([b"M  END"]), word_table([b">"]), word_table([b"$$$$"])
VERSION_WORD, OTHER_VERSION_WORD = word_table([b"V2000"]), word_table([b"V3000"])
POSE_ITEM_WORD = word_table([b"<multigpu_"])
WRONG_HEAD_WORDS = word_table([b">", b"$$$$"])  # of lines before that of the counts
LETTER_C, HYDROGEN_LETTERS = b"C"[0], tuple(b"HDT")
SYMBOL = 4  # columns, the first of them blank
CARBON, HYDROGEN = 1, 2


@jit
def read_records(texts: Any, wanted: Any, farthest: Any) -> Any:
    """Return the atoms of the wanted records that are regular, and what is known of each record.

    texts     TextArrays of n records
    wanted    bool[n]
    farthest  Å: the largest coordinate, above and below 0
    returns   positions float64[atoms, 3] in Å; sizes int64[n], 0 atoms for a record that is not
              regular; lengths of the titles, int64[n]; bool[n], whether that is more than blanks;
              bool[n], whether hydrogens are lacking
    """
    raw, begins, lengths = texts
    positions = np.empty((lengths.sum() // SHORTEST_ATOM + 1, 3), np.float64)
    sizes, titles = np.zeros(begins.shape[0], np.int64), np.zeros(begins.shape[0], np.int64)
    named, lacking = np.zeros(begins.shape[0], np.bool_), np.zeros(begins.shape[0], np.bool_)
    first = 0
    for i in range(begins.shape[0]):
        begin, stop = begins[i], begins[i] + lengths[i]
        if not wanted[i] or not are_whole_lines(raw, begin, stop):
            continue
        sizes[i], lacking[i] = _read_record(raw, begin, stop, positions[first:], farthest)
        first += sizes[i]
        titles[i] = find_byte(raw, begin, stop, NEWLINE) - begin
        for byte in raw[begin : begin + titles[i]]:
            named[i] |= byte != BLANK
    return positions[:first], sizes, titles, named, lacking


@jit
def _read_record(raw: Any, at: Any, stop: Any, positions: Any, farthest: Any) -> Any:
    """Return how many atoms it has, 0 where it is not regular; and whether it lacks hydrogens."""
    for _ in range(HEAD):
        if at == stop or begins_with(raw, at, stop, WRONG_HEAD_WORDS):
            return 0, False
        at = find_byte(raw, at, stop, NEWLINE) + 1
    end = find_byte(raw, at, stop, NEWLINE) if at < stop else -1
    if end - at < 2 * COUNT or find_word(raw, at, end, VERSION_WORD) < 0:
        return 0, False
    if find_word(raw, at, end, OTHER_VERSION_WORD) >= 0:
        return 0, False
    atoms = read_whole(raw, at, at + COUNT)
    bonds = read_whole(raw, at + COUNT, at + 2 * COUNT)
    at, symbols = _read_atoms(raw, end + 1, stop, positions, atoms, farthest)
    at = _skip_bonds(raw, at, stop, atoms, bonds) if at > 0 else 0
    regular = at > 0 and atoms > 0 and bonds >= 0 and _ends_well(raw, at, stop)
    return atoms if regular else 0, regular and symbols == CARBON


@jit
def _read_atoms(raw: Any, at: Any, stop: Any, positions: Any, atoms: Any, farthest: Any) -> Any:
    """Return where the atoms' lines end, 0 where one is not regular; and the kinds of symbols."""
    symbols = 0
    for atom in range(atoms):
        end = find_byte(raw, at, stop, NEWLINE) if at < stop else -1
        if end - at < 3 * WIDTH:
            return 0, 0
        for axis in range(3):
            value = read_decimal(raw, at + WIDTH * axis, at + WIDTH * (axis + 1))
            positions[atom, axis] = value
            if math.isnan(value) or abs(value) > farthest:
                return 0, 0
        symbols |= _kind_of_symbol(raw, at + 3 * WIDTH, end)
        at = end + 1
    return at, symbols


@jit
def _skip_bonds(raw: Any, at: Any, stop: Any, atoms: Any, bonds: Any) -> Any:
    """Return where the bonds' lines end; 0 where one is not regular."""
    for _ in range(bonds):
        end = find_byte(raw, at, stop, NEWLINE) if at < stop else -1
        if end - at < 3 * COUNT or read_whole(raw, at + 2 * COUNT, at + 3 * COUNT) < 0:
            return 0
        for partner in range(2):
            begin = at + COUNT * partner
            if not 0 < read_whole(raw, begin, begin + COUNT) <= atoms:
                return 0
        at = end + 1
    return at


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
def _ends_well(raw: Any, at: Any, stop: Any) -> Any:
    """Whether `M  END` comes, and no data item of a pose."""
    ended = False
    while at < stop:
        end = find_byte(raw, at, stop, NEWLINE)
        ended |= begins_with(raw, at, end, END_WORD)
        if begins_with(raw, at, end, DATA_WORD) and find_word(raw, at, end, POSE_ITEM_WORD) >= 0:
            return False
        at = end + 1
    return ended


@jit
def write_poses(texts: Any, titles: Any, tails: Any, atoms: Any, positions: Any) -> Any:
    """Return regular records with other coordinates, one after the other, and how long each is.

    texts      TextArrays of n regular records
    titles     TextArrays of their titles; an empty one leaves that of the record
    tails      TextArrays of what goes after each
    atoms      int64[n]: how many of the positions, float64[sum, 3], are of each
    returns    uint8[size], int64[n]; 0 bytes for a record with a coordinate that is too long
    """
    raw, begins, lengths = texts
    room = lengths.sum() + titles.lengths.sum() + tails.lengths.sum() + 2 * lengths.shape[0]
    out, sizes = np.empty(room, np.uint8), np.zeros(begins.shape[0], np.int64)
    begin, atom = 0, 0
    for i in range(begins.shape[0]):
        at, stop, size = begins[i], begins[i] + lengths[i], titles.lengths[i]
        if size > 0:
            copy_bytes(out, begin, titles.raw, titles.begins[i], size)
            at = find_byte(raw, at, stop, NEWLINE)
        first = begin + size - at + _skip_lines(raw, begins[i], stop, HEAD + 1)
        end = _end_of_record(raw, at, stop)
        copy_bytes(out, begin + size, raw, at, end - at)
        size += end - at
        places = positions[atom : atom + atoms[i]]
        atom += atoms[i]
        fits = _put_places(out, first, begin + size, places)
        if fits:
            gap = 1 if begins_with(raw, end - END_WORD.shape[1], end, END_WORD) else 2
            out[begin + size : begin + size + gap] = NEWLINE
            size += gap
            copy_bytes(out, begin + size, tails.raw, tails.begins[i], tails.lengths[i])
            sizes[i] = size + tails.lengths[i]
            begin += sizes[i]
    return out[:begin], sizes


@jit
def _put_places(out: Any, line: Any, stop: Any, places: Any) -> Any:
    """Write coordinates into consecutive lines of out[:stop]; return whether all fit."""
    fits = True
    for atom in range(places.shape[0]):
        if line == 0:  # there are fewer lines than were read
            return False
        for axis in range(3):
            at = line + WIDTH * axis
            fits &= put_decimal(out, at, places[atom, axis], WIDTH, DECIMALS)
        line = find_byte(out, line, stop, NEWLINE) + 1
    return fits


@jit
def _skip_lines(raw: Any, at: Any, stop: Any, lines: Any) -> Any:
    """Return where the line begins that comes after this number of lines, or `stop`."""
    for _ in range(lines):
        if at < stop:
            at = find_byte(raw, at, stop, NEWLINE) + 1
    return at


@jit
def _end_of_record(raw: Any, at: Any, stop: Any) -> Any:
    """Return where a record ends: before its line of $$$$ and the empty lines before that."""
    line = find_byte(raw, at, stop, NEWLINE) + 1
    while line < stop and not begins_with(raw, line, stop, LAST_WORD):
        line = find_byte(raw, line, stop, NEWLINE) + 1
    while line > at and raw[line - 1] == NEWLINE:
        line -= 1
    return line
