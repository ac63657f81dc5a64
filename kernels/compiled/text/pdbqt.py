"""PDBQT as programs write it, many ligands at once: text to arrays, and poses back to text.

A record is *regular* where

    every line ends with a newline, none begins with a blank, and there are no control characters;
    the lines of its atoms have all columns, with numbers in decimals as in `-14.459`;
    the type of each atom is known, and has a map;
    its atoms are one fragment, do not overlap, and there are no side chains of a receptor;
    lines that a pose does not keep come before and after all others.
"""

import math
from typing import Any

import numpy as np

from multigpu.kernels.compiled.fragments import are_crowded, fragments, near_pairs
from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.native import copy_bytes, find_byte
from multigpu.kernels.compiled.text.fixed_width import put_decimal, read_decimal
from multigpu.kernels.compiled.text.words import (
    BLANK,
    NEWLINE,
    are_whole_lines,
    begins_with,
    find_word,
    word_table,
)

PLACE, WIDTH, DECIMALS = 30, 8, 3  # columns: x y z of this width,
CHARGE, CHARGE_END = 66, 76  # the charge,
TYPE, TYPE_END = 77, 80  # and the type, of which the first must be there
ATOM_WORDS = word_table([b"ATOM  ", b"HETATM"])
REMARK_WORD, NAME_WORD = word_table([b"REMARK"]), word_table([b"Name = "])
SIDE_CHAIN_WORD = word_table([b"BEGIN_RES"])


def type_code(name: str) -> int:
    """Return the letters of a type as one number; -1 for a name longer than its columns."""
    letters = name.encode()
    return int.from_bytes(letters, "big") if len(letters) <= TYPE_END - TYPE else -1


@jit
def read_records(texts: Any, codes: Any, maps: Any, radii: Any, dropped: Any, most: Any) -> Any:
    """Return the atoms of the records that are regular, and what a pose takes from each.

    texts    TextArrays of n records
    codes    int64[types]: `type_code` of each type
    maps     int32[types]: its map
    radii    float64[types]: its covalent radius, Å
    dropped  word table of the lines that a pose does not keep
    most     the largest coordinate in Å and the largest charge in e, above and below 0
    returns  positions float64[atoms, 3] in Å, charges float64[atoms] in e, types int32[atoms];
             sizes int64[n], 0 atoms for a record that is not regular;
             where the names and the lines that a pose keeps are: begins int64[n], lengths int64[n]
             of each; bool[n], whether a kept line says the name
    """
    raw, begins, lengths = texts
    room = lengths.sum() // TYPE + 1
    positions, charges = np.empty((room, 3), np.float64), np.empty(room, np.float64)
    types, sizes = np.empty(room, np.int32), np.zeros(begins.shape[0], np.int64)
    names, widths = np.zeros_like(sizes), np.zeros_like(sizes)
    bodies, kept = np.zeros_like(sizes), np.zeros_like(sizes)
    named = np.zeros(begins.shape[0], np.bool_)
    first = 0
    for i in range(begins.shape[0]):
        atom, at, stop = first, begins[i], begins[i] + lengths[i]
        body, tail = at, stop
        regular = are_whole_lines(raw, at, stop)
        while regular and at < stop:
            end = find_byte(raw, at, stop, NEWLINE)
            is_dropped = begins_with(raw, at, end + 1, dropped)
            regular = raw[at] != BLANK and (is_dropped or tail == stop)
            regular &= not begins_with(raw, at, end, SIDE_CHAIN_WORD)
            if is_dropped and at == body:
                body = end + 1
            elif is_dropped:
                tail = min(tail, at)
            if begins_with(raw, at, end, ATOM_WORDS):
                place = positions[atom]
                regular &= _read_atom(raw, at, end, codes, place, charges, types, atom)
                regular &= np.abs(place).max() <= most[0] and abs(charges[atom]) <= most[1]
                atom += 1
            elif not named[i] and begins_with(raw, at, end, REMARK_WORD):
                name = find_word(raw, at + REMARK_WORD.shape[1], end, NAME_WORD)
                if name >= 0 and names[i] == 0:
                    names[i] = name + NAME_WORD.shape[1]
                    widths[i] = end - names[i]
                named[i] = name >= 0 and not is_dropped
            at = end + 1
        if regular and _is_one(positions[first:atom], radii[types[first:atom]]):
            sizes[i], first = atom - first, atom
            bodies[i], kept[i] = body, tail - body
    atoms = positions[:first], charges[:first], maps[types[:first]]
    return *atoms, sizes, names, widths, bodies, kept, named


@jit
def _is_one(positions: Any, radii: Any) -> Any:
    """Whether atoms are one fragment, and do not overlap."""
    first = fragments(len(radii), near_pairs(positions, radii))
    return not first.any() and not are_crowded(positions)


@jit
def _read_atom(
    raw: Any, at: Any, end: Any, codes: Any, place: Any, charges: Any, types: Any, atom: Any
) -> Any:
    """Read the line of an atom; return whether it is regular."""
    if end - at <= TYPE:
        return False
    for axis in range(3):
        begin = at + PLACE + WIDTH * axis
        place[axis] = read_decimal(raw, begin, begin + WIDTH)
    charges[atom] = read_decimal(raw, at + CHARGE, at + CHARGE_END)
    types[atom] = _find_type(raw, at + TYPE, min(at + TYPE_END, end), codes)
    return types[atom] >= 0 and not math.isnan(place.sum())


@jit
def _find_type(raw: Any, at: Any, stop: Any, codes: Any) -> Any:
    """Return which of the codes a type has; -1 for another or no type."""
    while at < stop and raw[at] == BLANK:
        at += 1
    while stop > at and raw[stop - 1] == BLANK:
        stop -= 1
    code = 0
    for byte in raw[at:stop]:
        code = 256 * code + byte
    for i in range(codes.shape[0]):
        if codes[i] == code:
            return i
    return -1


@jit
def write_poses(heads: Any, bodies: Any, sizes: Any, positions: Any) -> Any:
    """Return poses of regular records one after the other, and how long each is.

    heads, bodies  TextArrays of n texts each: what a pose keeps of its record, and what goes before
    sizes          int64[n]: atoms of each
    positions      float64[sum of sizes, 3]
    returns        uint8[size], int64[n]; 0 bytes where `put_decimal` does not write
    """
    room = heads.lengths.sum() + bodies.lengths.sum()
    out, lengths = np.empty(room, np.uint8), np.zeros(sizes.shape[0], np.int64)
    begin, atom = 0, 0
    for i in range(sizes.shape[0]):
        body = begin + heads.lengths[i]
        end = body + bodies.lengths[i]
        copy_bytes(out, begin, heads.raw, heads.begins[i], heads.lengths[i])
        copy_bytes(out, body, bodies.raw, bodies.begins[i], bodies.lengths[i])
        if _put_positions(out, body, end, positions[atom : atom + sizes[i]]):
            lengths[i] = end - begin
            begin = end
        atom += sizes[i]
    return out[:begin], lengths


@jit
def _put_positions(out: Any, line: Any, stop: Any, positions: Any) -> Any:
    """Write coordinates into the lines of atoms in out[line:stop]; return whether all fit."""
    fits = True
    for atom in range(positions.shape[0]):
        while line < stop and not begins_with(out, line, stop, ATOM_WORDS):
            line = find_byte(out, line, stop, NEWLINE) + 1
        if line >= stop:  # there are fewer lines than were read
            return False
        for axis in range(3):
            at = line + PLACE + WIDTH * axis
            fits &= put_decimal(out, at, positions[atom, axis], WIDTH, DECIMALS)
        line = find_byte(out, line, stop, NEWLINE) + 1
    return fits
