"""Regular records of ligands with other coordinates, many at once.

A record is regular where its format's compiled reader says so.
"""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.native import copy_bytes, find_byte
from multigpu.kernels.compiled.text.fixed_width import put_decimal
from multigpu.kernels.compiled.text.words import NEWLINE, begins_with


@jit
def write_poses(
    heads: Any, bodies: Any, tails: Any, sizes: Any, positions: Any, places: Any
) -> Any:
    """Return poses one after the other, and how long each is.

    heads, bodies, tails  TextArrays of n texts each: what a pose keeps of its record, and what
                          goes before and after that
    sizes                 int64[n]: atoms of each
    positions             float64[sum of sizes, 3]
    places                `CoordinatePlaces` of the format
    returns               uint8[size], int64[n]; 0 bytes where `put_decimal` does not write
    """
    room = heads.lengths.sum() + bodies.lengths.sum() + tails.lengths.sum()
    out, lengths = np.empty(room, np.uint8), np.zeros(sizes.shape[0], np.int64)
    begin, atom = 0, 0
    for i in range(sizes.shape[0]):
        body = _append(out, begin, heads, i)
        tail = _append(out, body, bodies, i)
        end = _append(out, tail, tails, i)
        if _put_positions(out, body, tail, positions[atom : atom + sizes[i]], places):
            lengths[i] = end - begin
            begin = end
        atom += sizes[i]
    return out[:begin], lengths


@jit
def _append(out: Any, at: Any, texts: Any, i: Any) -> Any:
    """Copy a text to out[at:]; return where it ends."""
    copy_bytes(out, at, texts.raw, texts.begins[i], texts.lengths[i])
    return at + texts.lengths[i]


@jit
def _put_positions(out: Any, line: Any, stop: Any, positions: Any, places: Any) -> Any:
    """Write coordinates into the lines of atoms in out[line:stop]; return whether all fit."""
    fits = True
    for atom in range(positions.shape[0]):
        while line < stop and not begins_with(out, line, stop, places.words):
            line = find_byte(out, line, stop, NEWLINE) + 1
        if line >= stop:  # there are fewer lines than were read
            return False
        for axis in range(3):
            at = line + places.column + places.width * axis
            fits &= put_decimal(out, at, positions[atom, axis], places.width, places.decimals)
        line = find_byte(out, line, stop, NEWLINE) + 1
    return fits
