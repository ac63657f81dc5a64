"""PDBQT as programs write it, many ligands at once: columns to arrays, and poses back to text.

A record is *plain* where

    every line ends with a newline, none begins with a blank, and there are no control characters;
    the lines of its atoms have all columns, with numbers in decimals as in `-14.459`;
    the type of each atom is a word of one to three letters, and has a map.

What is not plain is read and written one by one, by `molecules` and `poses`, which also say what is
wrong with it. Plain records come out the same there, which takes five times as long: this here
makes no objects for atoms or lines, and does not hold the interpreter.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit
from kernels.native import copy_bytes, find_byte
from multigpu.io.autodock import Atoms
from multigpu.io.molecules import Positions
from multigpu.io.poses import DROPPED

NEWLINE, BLANK, PLUS, MINUS, POINT, ZERO = b"\n +-.0"
PLACE, WIDTH = 30, 8  # columns: x y z of this width,
CHARGE, CHARGE_END = 66, 76  # the charge,
TYPE, TYPE_END = 77, 80  # and the type, of which the first must be there
TENS = 10.0 ** np.arange(CHARGE_END - CHARGE + 1)
SPLIT = 2.0**27 + 1  # cuts a float64 into two halves, whose products with 1000 are exact


def _words(words: Sequence[bytes]) -> NDArray[np.uint8]:
    """uint8[n, longest]; zeros behind the shorter ones."""
    longest = max(map(len, words))
    return np.array([list(word.ljust(longest, b"\0")) for word in words], np.uint8)


ATOM_WORDS, DROPPED_WORDS = _words([b"ATOM  ", b"HETATM"]), _words(DROPPED)


def read(texts: Sequence[bytes], maps: Sequence[str]) -> list[Atoms | None]:
    """The atoms of each record; None for one that is not plain. maps: () takes every type."""
    raw, borders = _joined(texts)
    codes = np.array([_code(name) for name in maps], np.int64)
    positions, charges, types, offsets = _read(raw, borders, codes)
    return [
        Atoms(positions[a:b], types[a:b], charges[a:b]) if a < b else None
        for a, b in pairwise(offsets.tolist())
    ]


def moved(texts: Sequence[bytes], positions: Sequence[Positions]) -> list[bytes]:
    """Plain records with these coordinates, without their lines of models and of our remarks.

    Empty where a coordinate is too long for its columns.
    """
    raw, borders = _joined(texts)
    places = np.concatenate([*positions, np.empty((0, 3))])
    offsets = np.array(list(accumulate(map(len, positions), initial=0)), np.int64)
    out, ends = _moved(raw, borders, places, offsets, DROPPED_WORDS)
    data = out.tobytes()
    return [data[a:b] for a, b in pairwise(ends.tolist())]


def _joined(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All of them as one, and their borders in it."""
    raw = np.frombuffer(bytearray().join(texts), np.uint8)
    return raw, np.array(list(accumulate(map(len, texts), initial=0)), np.int64)


def _code(name: str) -> int:
    """The letters of a type as one number, as `_type` reads them; no record has a longer one."""
    letters = name.encode()
    return int.from_bytes(letters, "big") if len(letters) <= TYPE_END - TYPE else -1


# ---- lines ------------------------------------------------------------------------------------


@jit
def _begins(raw: Any, at: Any, stop: Any, words: Any) -> Any:
    """Whether raw[at:stop] begins with one of the words."""
    for i in range(words.shape[0]):
        letter = 0
        while letter < words.shape[1] and words[i, letter] != 0:
            if at + letter >= stop or raw[at + letter] != words[i, letter]:
                break
            letter += 1
        if letter == words.shape[1] or words[i, letter] == 0:
            return True
    return False


@jit
def _are_lines(raw: Any, at: Any, stop: Any) -> Any:
    """Whether raw[at:stop] consists of lines, without other control characters."""
    if at == stop or raw[stop - 1] != NEWLINE:
        return False
    controls = 0
    for byte in raw[at:stop]:
        controls += (byte < BLANK) & (byte != NEWLINE)
    return controls == 0


# ---- reading ----------------------------------------------------------------------------------


@jit
def _read(raw: Any, borders: Any, codes: Any) -> Any:
    """Places, charges and types of all atoms, and which are whose: none of what is not plain."""
    most = raw.shape[0] // TYPE + 1
    positions, charges = np.empty((most, 3), np.float64), np.empty(most, np.float64)
    types, offsets = np.empty(most, np.int32), np.zeros(borders.shape[0], np.int64)
    atom = 0
    for i in range(borders.shape[0] - 1):
        at, stop = borders[i], borders[i + 1]
        plain = _are_lines(raw, at, stop)
        while plain and at < stop:
            end = find_byte(raw, at, stop, NEWLINE)
            plain = raw[at] != BLANK
            if _begins(raw, at, end, ATOM_WORDS):
                plain = _read_atom(raw, at, end, codes, positions[atom], charges, types, atom)
                atom += 1
            at = end + 1
        if not plain:
            atom = offsets[i]
        offsets[i + 1] = atom
    return positions[:atom], charges[:atom], types[:atom], offsets


@jit
def _read_atom(
    raw: Any, at: Any, end: Any, codes: Any, place: Any, charges: Any, types: Any, atom: Any
) -> Any:
    """Whether the line of an atom is plain."""
    if end - at <= TYPE:
        return False
    for axis in range(3):
        begin = at + PLACE + WIDTH * axis
        place[axis] = _number(raw, begin, begin + WIDTH)
    charges[atom] = _number(raw, at + CHARGE, at + CHARGE_END)
    types[atom] = _type(raw, at + TYPE, min(at + TYPE_END, end), codes)
    return types[atom] >= 0 and not math.isnan(place.sum() + charges[atom])


@jit
def _number(raw: Any, at: Any, stop: Any) -> Any:
    """What Python's `float` gives for a decimal number with blanks around it; else NaN.

    Its digits are a whole number below 2^53, and so is the power of ten that divides it, so that
    the quotient is rounded once.
    """
    while at < stop and raw[at] == BLANK:
        at += 1
    while stop > at and raw[stop - 1] == BLANK:
        stop -= 1
    negative = at < stop and raw[at] == MINUS
    if negative or (at < stop and raw[at] == PLUS):
        at += 1
    whole, digits, decimals, seen_point = 0, 0, 0, False
    for byte in raw[at:stop]:
        if byte == POINT and not seen_point:
            seen_point = True
        elif ZERO <= byte <= ZERO + 9:
            whole = 10 * whole + (byte - ZERO)
            digits += 1
            decimals += seen_point
        else:
            return np.nan
    if digits == 0:
        return np.nan
    value = whole / TENS[decimals]
    return -value if negative else value


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
def _moved(raw: Any, borders: Any, places: Any, offsets: Any, dropped: Any) -> Any:
    """The texts one after the other, and where each ends."""
    out, ends = np.empty(raw.shape[0], np.uint8), np.zeros(borders.shape[0], np.int64)
    size = 0
    for i in range(borders.shape[0] - 1):
        at, stop, atom, fits = borders[i], borders[i + 1], offsets[i], True
        while fits and at < stop:
            end = find_byte(raw, at, stop, NEWLINE) + 1
            if not _begins(raw, at, end, dropped):
                copy_bytes(out, size, raw, at, end - at)
                if _begins(raw, at, end, ATOM_WORDS):
                    fits = _put_place(out, size + PLACE, places[atom])
                    atom += 1
                size += end - at
            at = end
        if not fits:
            size = ends[i]
        ends[i + 1] = size
    return out[:size], ends


@jit
def _put_place(out: Any, at: Any, place: Any) -> Any:
    """Whether the coordinates fit."""
    fits = True
    for axis in range(3):
        fits &= _put_number(out, at + WIDTH * axis, place[axis])
    return fits


@jit
def _put_number(out: Any, at: Any, value: Any) -> Any:
    """As `%8.3f`, if it has eight letters."""
    whole = _thousandths(abs(value))
    negative = math.copysign(1.0, value) < 0
    if whole >= (1_000_000 if negative else 10_000_000):
        return False
    last = at + WIDTH - 1
    for i in range(WIDTH):
        if i == 3:
            out[last - i] = POINT
        elif whole > 0 or i < 5:
            out[last - i] = ZERO + whole % 10
            whole //= 10
        else:
            out[last - i] = MINUS if negative else BLANK
            negative = False
    return True


@jit
def _thousandths(value: Any) -> Any:
    """The whole number nearest to 1000 × value, which is not negative; the even one of two.

    The exact product is `product` + `rest` (Dekker).
    """
    if value >= 1e5:  # it does not fit
        return 100_000_000
    product = 1000.0 * value
    high = SPLIT * value - (SPLIT * value - value)
    rest = (1000.0 * high - product) + 1000.0 * (value - high)
    whole = int(product)
    beyond = (product - whole) - 0.5
    if beyond > 0 or (beyond == 0 and (rest > 0 or (rest == 0 and whole % 2 == 1))):
        return whole + 1
    return whole
