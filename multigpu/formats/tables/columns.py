"""Columns to text, many rows at once: numbers as Python writes them, pieces put together.

Compiled, so that no interpreter is held; loading the compiler takes longer than a few rows do.
Arrow, which joins the columns of `copynumber.lines`, writes no given number of decimals.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.native import copy_bytes
from multigpu.kernels.compiled.text.numbers import scaled

MINUS, POINT, ZERO, TAB = b"-.0\t"
LONGEST = 20  # letters of a number: digits, a sign and a point


def glued(*pieces: Texts | bytes) -> Texts:
    """Of every row the pieces one after the other; bytes are the same in all rows."""
    rows = next(len(piece) for piece in pieces if isinstance(piece, Texts))
    begins = np.empty((len(pieces), rows), np.int64)
    lengths = np.empty_like(begins)
    raws, size = [], 0
    for i, piece in enumerate(pieces):
        if isinstance(piece, Texts):
            raw = piece.raw
            np.add(piece.begins, size, out=begins[i])
            lengths[i] = piece.lengths
        else:
            raw = np.frombuffer(piece, np.uint8)
            begins[i], lengths[i] = size, len(piece)
        raws.append(raw)
        size += len(raw)
    held = raws[0] if len(raws) == 1 else np.concatenate(raws)
    return Texts.one_after_the_other(_glued(held, begins, lengths), lengths.sum(axis=0))


@jit
def _glued(raw: Any, begins: Any, lengths: Any) -> Any:
    out = np.empty(lengths.sum(), np.uint8)
    at = 0
    for row in range(begins.shape[1]):
        for piece in range(begins.shape[0]):
            copy_bytes(out, at, raw, begins[piece, row], lengths[piece, row])
            at += lengths[piece, row]
    return out


def labelled(columns: Mapping[str, Texts], label: bytes, end: bytes) -> Iterator[Texts | bytes]:
    """Pieces to glue: of every column its name, put into the label, its texts, and the end."""
    for name, texts in columns.items():
        yield from (label % name.encode(), texts, end)


def whole(values: NDArray[np.integer[Any]]) -> Texts:
    """Whole numbers, int[n], not negative."""
    return Texts.one_after_the_other(*_whole(values.astype(np.int64, copy=False)))


@jit
def _whole(values: Any) -> Any:
    raw = np.empty(values.shape[0] * LONGEST, np.uint8)
    lengths = np.empty(values.shape[0], np.int64)
    at = 0
    for row in range(values.shape[0]):
        end = put_whole(raw, at, values[row], 1)
        lengths[row], at = end - at, end
    return raw[:at], lengths


def decimals(values: NDArray[np.float64], digits: int) -> Texts:
    """The numbers of each row with so many decimals, tabs between them: `%.*f`.

    values: float64[n] or [n, columns], finite. What is too large for that is written by Python.
    """
    table = values.reshape(len(values), -1)
    raw, lengths, fits = _decimals(table, digits)
    if not fits:
        return Texts.of(["\t".join(f"{x:.{digits}f}" for x in row).encode() for row in table])
    return Texts.one_after_the_other(raw, lengths)


@jit
def _decimals(table: Any, digits: Any) -> Any:
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


@jit
def put_whole(out: Any, at: Any, value: Any, least: Any) -> Any:
    """The digits of a whole number, with zeros before it up to the least; where they end."""
    digits, rest = 1, value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    digits = max(digits, least)
    for i in range(digits):
        out[at + digits - 1 - i] = ZERO + value % 10
        value //= 10
    return at + digits
