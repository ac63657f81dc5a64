"""PDBQT as programs write it, many ligands at once: columns to arrays, and poses back to text.

A record is *plain* where

    every line ends with a newline, none begins with a blank, and there are no control characters;
    the lines of its atoms have all columns, with numbers in decimals as in `-14.459`;
    the type of each atom is a word of one to three letters, and has a map.

See `plain`.
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
    Plain,
    are_lines,
    begins_with,
    found_in,
    number,
    put_number,
    words,
)
from multigpu.formats.molecules.poses import DROPPED, OUR_REMARK
from multigpu.formats.tables.columns import glued, labelled
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.native import copy_bytes, find_byte
from multigpu.kernels.rotation.types import MOST_WEIGHT

PLACE, WIDTH, DECIMALS = 30, 8, 3  # columns: x y z of this width,
CHARGE, CHARGE_END = 66, 76  # the charge,
TYPE, TYPE_END = 77, 80  # and the type, of which the first must be there
ATOM_WORDS, DROPPED_WORDS = words([b"ATOM  ", b"HETATM"]), words(DROPPED)
REMARK_WORDS, NAME_WORDS = words([b"REMARK"]), words([b"Name = "])


def read(texts: Texts, wanted: NDArray[np.bool_], maps: Sequence[str]) -> Plain:
    """The wanted ones of these records, as far as they are plain. maps: () takes every type."""
    codes = np.array([_code(name) for name in maps], np.int64)
    positions, charges, types, sizes, begins, lengths, named = _read(
        texts.raw, texts.begins, texts.lengths, wanted, codes
    )
    atoms = Atoms(positions, types, charges, sizes)
    bare = np.zeros(len(named), np.bool_)  # see `lacks_hydrogens`
    return Plain(atoms, Texts(texts.raw, begins, lengths), named, bare)


def posed(
    texts: Texts, atoms: NDArray[np.int64], positions: Positions, names: Sequence[str],
    facts: Mapping[str, Texts],
) -> Texts:  # fmt: skip
    """Plain records with other coordinates, and what is said of the poses before them.

    atoms: int64[n], how many of the positions, float64[sum, 3], are of each. names: "" for one that
    says its own. Empty where a coordinate is too long for its columns. As `poses.render`.
    """
    named = Texts.of_words(f"REMARK  Name = {name}\n" if name else "" for name in names)
    heads = glued(named, *labelled(facts, OUR_REMARK + b"%b ", b"\n"))
    raw, lengths = _posed(
        texts.raw, texts.begins, texts.lengths, positions, np.cumsum(atoms) - atoms, heads.raw,
        heads.begins, heads.lengths,
    )  # fmt: skip
    return Texts.one_after_the_other(raw, lengths)


def _code(name: str) -> int:
    """The letters of a type as one number, as `_type` reads them; no record has a longer one."""
    letters = name.encode()
    return int.from_bytes(letters, "big") if len(letters) <= TYPE_END - TYPE else -1


# ---- reading ----------------------------------------------------------------------------------


@jit
def _read(raw: Any, begins: Any, lengths: Any, wanted: Any, codes: Any) -> Any:
    """Places, charges and types of all atoms, and how many each has: none of what is not plain.

    Then where the name of each is, and whether it stays.
    """
    most = lengths.sum() // TYPE + 1
    positions, charges = np.empty((most, 3), np.float64), np.empty(most, np.float64)
    types, sizes = np.empty(most, np.int32), np.zeros(begins.shape[0], np.int64)
    names, widths = np.zeros_like(sizes), np.zeros_like(sizes)
    named = np.zeros(begins.shape[0], np.bool_)
    first = 0
    for i in range(begins.shape[0]):
        atom, at, stop = first, begins[i], begins[i] + lengths[i]
        plain = wanted[i] and are_lines(raw, at, stop)
        while plain and at < stop:
            end = find_byte(raw, at, stop, NEWLINE)
            plain = raw[at] != BLANK
            if begins_with(raw, at, end, ATOM_WORDS):
                plain = _read_atom(raw, at, end, codes, positions[atom], charges, types, atom)
                atom += 1
            elif not named[i] and begins_with(raw, at, end, REMARK_WORDS):
                said = found_in(raw, at + REMARK_WORDS.shape[1], end, NAME_WORDS)
                if said >= 0 and names[i] == 0:
                    names[i] = said + NAME_WORDS.shape[1]
                    widths[i] = end - names[i]
                named[i] = said >= 0 and not begins_with(raw, at, end, DROPPED_WORDS)
            at = end + 1
        if plain:
            sizes[i], first = atom - first, atom
    return positions[:first], charges[:first], types[:first], sizes, names, widths, named


@jit
def _read_atom(
    raw: Any, at: Any, end: Any, codes: Any, place: Any, charges: Any, types: Any, atom: Any
) -> Any:
    """Whether the line of an atom is plain."""
    if end - at <= TYPE:
        return False
    for axis in range(3):
        begin = at + PLACE + WIDTH * axis
        place[axis] = number(raw, begin, begin + WIDTH)
    charges[atom] = number(raw, at + CHARGE, at + CHARGE_END)
    types[atom] = _type(raw, at + TYPE, min(at + TYPE_END, end), codes)
    return types[atom] >= 0 and not math.isnan(place.sum()) and abs(charges[atom]) <= MOST_WEIGHT


@jit
def _type(raw: Any, at: Any, stop: Any, codes: Any) -> Any:
    """Which of the codes the word has; 0 where there are none; -1 for no word, or another one."""
    while at < stop and raw[at] == BLANK:
        at += 1
    while stop > at and raw[stop - 1] == BLANK:
        stop -= 1
    code = 0
    for byte in raw[at:stop]:
        if byte <= BLANK or byte > 126:
            return -1
        code = 256 * code + byte
    if codes.shape[0] == 0:
        return 0 if code else -1
    for i in range(codes.shape[0]):
        if codes[i] == code:
            return i
    return -1


# ---- writing ----------------------------------------------------------------------------------


@jit
def _posed(
    raw: Any, begins: Any, lengths: Any, places: Any, atoms: Any, head: Any, head_begins: Any,
    head_lengths: Any,
) -> Any:  # fmt: skip
    """The texts one after the other, and how long each is."""
    out = np.empty(lengths.sum() + head_lengths.sum(), np.uint8)
    sizes = np.zeros(begins.shape[0], np.int64)
    begin = 0
    for i in range(begins.shape[0]):
        at, stop, atom, fits = begins[i], begins[i] + lengths[i], atoms[i], True
        copy_bytes(out, begin, head, head_begins[i], head_lengths[i])
        size = head_lengths[i]
        while fits and at < stop:
            end = find_byte(raw, at, stop, NEWLINE) + 1
            if not begins_with(raw, at, end, DROPPED_WORDS):
                copy_bytes(out, begin + size, raw, at, end - at)
                if begins_with(raw, at, end, ATOM_WORDS):
                    fits = _put_place(out, begin + size + PLACE, places[atom])
                    atom += 1
                size += end - at
            at = end
        if fits:
            sizes[i] = size
            begin += size
    return out[:begin], sizes


@jit
def _put_place(out: Any, at: Any, place: Any) -> Any:
    """Whether the coordinates fit."""
    fits = True
    for axis in range(3):
        fits &= put_number(out, at + WIDTH * axis, place[axis], WIDTH, DECIMALS)
    return fits
