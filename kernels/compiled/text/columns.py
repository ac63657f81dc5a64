"""Columns of a table as text, many rows at once."""

import math
from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.native import copy_bytes
from multigpu.kernels.compiled.text.numbers import put_whole, scaled

MINUS, POINT, TAB = b"-.\t"
LONGEST = 20  # letters of a number: digits, a sign and a point


@jit
def join_pieces(raw: Any, begins: Any, lengths: Any) -> Any:
    """Return uint8[sum of lengths]: the pieces of each row one after the other.

    begins, lengths  int64[pieces, rows]  where each piece is in `raw`
    """
    out = np.empty(lengths.sum(), np.uint8)
    at = 0
    for row in range(begins.shape[1]):
        for piece in range(begins.shape[0]):
            copy_bytes(out, at, raw, begins[piece, row], lengths[piece, row])
            at += lengths[piece, row]
    return out


@jit
def write_whole(values: Any) -> Any:
    """Return the digits of int64[n], not negative, as uint8[size] and int64[n] lengths."""
    raw = np.empty(values.shape[0] * LONGEST, np.uint8)
    lengths = np.empty(values.shape[0], np.int64)
    at = 0
    for row in range(values.shape[0]):
        end = put_whole(raw, at, values[row], 1)
        lengths[row], at = end - at, end
    return raw[:at], lengths


@jit
def write_decimals(table: Any, digits: Any) -> Any:
    """Return float64[n, columns] with `digits` decimals, tabs between the columns of a row.

    As uint8[size] and int64[n] lengths; and whether all numbers are small enough for it.
    """
    power = 10.0**digits
    raw = np.empty(table.size * (LONGEST + 1), np.uint8)
    lengths, fits = np.empty(table.shape[0], np.int64), True
    at = 0
    for row in range(table.shape[0]):
        begin = at
        for column in range(table.shape[1]):
            if column > 0:
                raw[at] = TAB
                at += 1
            value = table[row, column]
            number = scaled(abs(value), power)
            fits &= number >= 0
            if math.copysign(1.0, value) < 0:
                raw[at] = MINUS
                at += 1
            at = put_whole(raw, at, max(number, 0), digits + 1)
            for i in range(digits):  # make room for the point
                raw[at - i] = raw[at - i - 1]
            raw[at - digits] = POINT
            at += 1
        lengths[row] = at - begin
    return raw[:at], lengths, fits
