"""SDF as programs write it, V2000, many ligands at once: columns to arrays, and poses to text.

A record is *plain* where

    every line ends with a newline, there are no control characters, and no data item of ours;
    its counts line says V2000, and so many lines of atoms and bonds follow;
    coordinates are decimals as in `-0.8883`, and bonds are between atoms that there are;
    a line of `M  END` comes behind them.

See `plain`. Types and charges for AutoGrid's maps are not in it: they need RDKit.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.autodock import Atoms
from multigpu.formats.molecules.molecules import Positions
from multigpu.formats.molecules.plain import (
    BLANK,
    NEWLINE,
    ZERO,
    Plain,
    are_lines,
    begins_with,
    found_in,
    number,
    put_number,
    words,
)
from multigpu.formats.tables.columns import glued, labelled
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.native import copy_bytes, find_byte
from multigpu.kernels.rotation.types import FARTHEST

HEAD = 3  # lines before that of the counts
COUNT = 3  # columns of a number of atoms or bonds, and of what a bond says
WIDTH, DECIMALS = 10, 4  # columns of x y z
SHORTEST_ATOM = 3 * WIDTH + 1  # letters of its line, with the newline
END_WORDS, DATA_WORDS, LAST_WORDS = words([b"M  END"]), words([b">"]), words([b"$$$$"])
OUR_WORDS, VERSION_WORDS, OTHER_WORDS = words([b"<multigpu_"]), words([b"V2000"]), words([b"V3000"])
LETTER_C, HYDROGEN_LETTERS = b"C"[0], tuple(b"HDT")
SYMBOL = 4  # columns, the first of them blank
CARBON, HYDROGEN = 1, 2
ODD_WORDS = words([b">", b"$$$$"])  # of lines before that of the counts


def read(texts: Texts, wanted: NDArray[np.bool_]) -> Plain:
    """The wanted ones of these records, as far as they are plain; without types and charges."""
    positions, sizes, titles, named, bare = _read(texts.raw, texts.begins, texts.lengths, wanted)
    nothing = np.zeros(len(positions))
    atoms = Atoms(positions, nothing.astype(np.int32), nothing, sizes)
    return Plain(atoms, Texts(texts.raw, texts.begins, titles), named, bare)


def posed(
    texts: Texts, atoms: NDArray[np.int64], positions: Positions, names: Sequence[str],
    facts: Mapping[str, Texts],
) -> Texts:  # fmt: skip
    """Plain records with other coordinates, and what is said of the poses as data items.

    atoms: int64[n], how many of the positions, float64[sum, 3], are of each. names: "" for one that
    says its own. Empty where a coordinate is too long for its columns. As `poses.render`.
    """
    tails = glued(*labelled(facts, b"> <multigpu_%b>\n", b"\n\n"), b"$$$$\n")
    titles = Texts.of_words(names)
    raw, lengths = _posed(
        texts.raw, texts.begins, texts.lengths, positions, atoms, titles.raw, titles.begins,
        titles.lengths, tails.raw, tails.begins, tails.lengths,
    )  # fmt: skip
    return Texts.one_after_the_other(raw, lengths)


# ---- reading ----------------------------------------------------------------------------------


@jit
def _read(raw: Any, begins: Any, lengths: Any, wanted: Any) -> Any:
    """Places of all atoms, and how many each has: none of what is not plain.

    Then how long the title of each is, whether it is more than blanks, and whether the molecule
    lacks hydrogens.
    """
    positions = np.empty((lengths.sum() // SHORTEST_ATOM + 1, 3), np.float64)
    sizes, titles = np.zeros(begins.shape[0], np.int64), np.zeros(begins.shape[0], np.int64)
    named, bare = np.zeros(begins.shape[0], np.bool_), np.zeros(begins.shape[0], np.bool_)
    first = 0
    for i in range(begins.shape[0]):
        begin, stop = begins[i], begins[i] + lengths[i]
        if not wanted[i] or not are_lines(raw, begin, stop):
            continue
        sizes[i], bare[i] = _read_record(raw, begin, stop, positions[first:])
        first += sizes[i]
        titles[i] = find_byte(raw, begin, stop, NEWLINE) - begin
        for byte in raw[begin : begin + titles[i]]:
            named[i] |= byte != BLANK
    return positions[:first], sizes, titles, named, bare


@jit
def _read_record(raw: Any, at: Any, stop: Any, positions: Any) -> Any:
    """How many atoms it has, 0 where it is not plain; and whether it lacks hydrogens."""
    for _ in range(HEAD):
        if at == stop or begins_with(raw, at, stop, ODD_WORDS):
            return 0, False
        at = find_byte(raw, at, stop, NEWLINE) + 1
    end = find_byte(raw, at, stop, NEWLINE) if at < stop else -1
    if end - at < 2 * COUNT or found_in(raw, at, end, VERSION_WORDS) < 0:
        return 0, False
    if found_in(raw, at, end, OTHER_WORDS) >= 0:
        return 0, False
    atoms, bonds = _whole(raw, at), _whole(raw, at + COUNT)
    at, letters = end + 1, 0
    for atom in range(atoms):
        end = find_byte(raw, at, stop, NEWLINE) if at < stop else -1
        if end - at < 3 * WIDTH:
            return 0, False
        for axis in range(3):
            value = number(raw, at + WIDTH * axis, at + WIDTH * (axis + 1))
            positions[atom, axis] = value
            if math.isnan(value) or abs(value) > FARTHEST:
                return 0, False
        letters |= _symbol(raw, at + 3 * WIDTH, end)
        at = end + 1
    for _ in range(bonds):
        end = find_byte(raw, at, stop, NEWLINE) if at < stop else -1
        if end - at < 3 * COUNT or _whole(raw, at + 2 * COUNT) < 0:
            return 0, False
        for partner in range(2):
            if not 0 < _whole(raw, at + COUNT * partner) <= atoms:
                return 0, False
        at = end + 1
    plain = atoms > 0 and bonds >= 0 and _ends_well(raw, at, stop)
    return atoms if plain else 0, plain and letters == CARBON


@jit
def _symbol(raw: Any, at: Any, stop: Any) -> Any:
    """`CARBON`, `HYDROGEN` or 0. at: where the columns of an atom's symbol begin."""
    letter = BLANK
    for byte in raw[at : min(stop, at + SYMBOL)]:
        if byte != BLANK and letter != BLANK:
            return 0
        letter = max(letter, byte)
    if letter == LETTER_C:
        return CARBON
    return HYDROGEN * (letter in HYDROGEN_LETTERS)


@jit
def _behind(raw: Any, at: Any, stop: Any, lines: Any) -> Any:
    """Where the line begins that comes behind so many, or `stop`."""
    for _ in range(lines):
        if at < stop:
            at = find_byte(raw, at, stop, NEWLINE) + 1
    return at


@jit
def _whole(raw: Any, at: Any) -> Any:
    """The whole number in three columns, behind blanks; -1 where there is none."""
    value = -1
    for byte in raw[at : at + COUNT]:
        if ZERO <= byte <= ZERO + 9:
            value = 10 * max(value, 0) + (byte - ZERO)
        elif byte != BLANK or value >= 0:
            return -1
    return value


@jit
def _ends_well(raw: Any, at: Any, stop: Any) -> Any:
    """Whether `M  END` comes, and no data item of ours."""
    ended = False
    while at < stop:
        end = find_byte(raw, at, stop, NEWLINE)
        ended |= begins_with(raw, at, end, END_WORDS)
        if begins_with(raw, at, end, DATA_WORDS) and found_in(raw, at, end, OUR_WORDS) >= 0:
            return False
        at = end + 1
    return ended


# ---- writing ----------------------------------------------------------------------------------


@jit
def _posed(
    raw: Any, begins: Any, lengths: Any, places: Any, atoms: Any, title: Any, title_begins: Any,
    title_lengths: Any, tail: Any, tail_begins: Any, tail_lengths: Any,
) -> Any:  # fmt: skip
    """The texts one after the other, and how long each is."""
    room = lengths.sum() + title_lengths.sum() + tail_lengths.sum() + 2 * lengths.shape[0]
    out, sizes = np.empty(room, np.uint8), np.zeros(begins.shape[0], np.int64)
    begin, atom = 0, 0
    for i in range(begins.shape[0]):
        at, stop, size = begins[i], begins[i] + lengths[i], title_lengths[i]
        if size > 0:
            copy_bytes(out, begin, title, title_begins[i], size)
            at = find_byte(raw, at, stop, NEWLINE)
        first = begin + size - at + _behind(raw, begins[i], stop, HEAD + 1)
        end = _last(raw, at, stop)
        copy_bytes(out, begin + size, raw, at, end - at)
        size += end - at
        fits, line = True, first
        for _ in range(atoms[i]):
            for axis in range(3):
                at = line + WIDTH * axis
                fits &= put_number(out, at, places[atom, axis], WIDTH, DECIMALS)
            atom += 1
            line = find_byte(out, line, begin + size, NEWLINE) + 1
            if line == 0:  # there are fewer lines than were read
                return out[:0], np.zeros_like(sizes)
        if fits:
            gap = 1 if begins_with(raw, end - END_WORDS.shape[1], end, END_WORDS) else 2
            out[begin + size : begin + size + gap] = NEWLINE
            size += gap
            copy_bytes(out, begin + size, tail, tail_begins[i], tail_lengths[i])
            sizes[i] = size + tail_lengths[i]
            begin += sizes[i]
    return out[:begin], sizes


@jit
def _last(raw: Any, at: Any, stop: Any) -> Any:
    """Where a record ends: before its line of $$$$ and the empty lines in front of that."""
    line = find_byte(raw, at, stop, NEWLINE) + 1
    while line < stop and not begins_with(raw, line, stop, LAST_WORDS):
        line = find_byte(raw, line, stop, NEWLINE) + 1
    while line > at and raw[line - 1] == NEWLINE:
        line -= 1
    return line
