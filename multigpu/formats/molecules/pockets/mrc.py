"""MRC and CCP4 maps of densities."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.molecules.pockets.pocket import Pocket
from multigpu.formats.molecules.pockets.pocket_format import PocketFile, PocketFormat

HEADER = 1024  # bytes; then as many as the word EXTENDED says, then the data
COUNTS, MODE, START, SAMPLING, CELL = 1, 4, 5, 8, 11  # words, from 1
ANGLES, AXES, EXTENDED, ORIGIN = 14, 17, 24, 50
MARK, MARK_BEGIN, MARK_END = b"MAP ", 208, 212  # bytes; the machine stamp follows
BYTE_ORDERS = {0x44: "<", 0x11: ">"}
MODES = {0: "i1", 1: "i2", 2: "f4", 6: "u2"}
RIGHT_ANGLES = [90.0, 90.0, 90.0]


@dataclass(frozen=True)
class Header:
    """Words of a header, by their number from 1.

    content  of the whole file
    order    "<" or ">", of all numbers in the file
    """

    content: bytes
    order: str

    def whole(self, word: int, count: int = 3) -> list[int]:
        return self._words("i4", word, count)

    def real(self, word: int, count: int = 3) -> list[float]:
        return self._words("f4", word, count)

    def _words(self, kind: str, word: int, count: int) -> list[Any]:
        found: list[Any] = np.frombuffer(
            self.content, self.order + kind, count, 4 * (word - 1)
        ).tolist()
        return found


def is_marked(start: bytes) -> bool:
    """Whether a file is one, whatever its name: CCP4 maps are called .map, too."""
    return MARK in start[:MARK_END]


def read(file: PocketFile) -> Pocket:
    """Return a map where its ORIGIN says, else where its start is. Raises InputError."""
    path = file.path
    header = _header(path, file.content())
    axes = _axes(path, header)
    spacing = np.array(header.real(CELL)) / _counts(path, header, SAMPLING, "MX MY MZ")
    origin = np.array(header.real(ORIGIN))
    if not origin.any():
        origin = np.array(header.whole(START))[axes] * spacing
    values = _values(path, header).transpose(axes)
    return Pocket(
        path=path,
        layout=MRC.name,
        values=np.ascontiguousarray(values)[None],
        origin=origin,
        spacing=spacing,
    )


def _header(path: str, content: bytes) -> Header:
    if content[MARK_BEGIN:MARK_END] != MARK:
        raise InputError(path, "no MRC or CCP4 map: its header lacks the mark MAP")
    if len(content) < HEADER:
        raise InputError(path, f"no MRC or CCP4 map: its header ends before {HEADER:,} bytes")
    order = BYTE_ORDERS.get(content[MARK_END])
    if order is None:
        raise InputError(path, "its machine stamp says neither little-endian nor big-endian")
    header = Header(content, order)
    if header.real(ANGLES) != RIGHT_ANGLES:
        raise InputError(path, "its axes are not at right angles: this is not read")
    return header


def _axes(path: str, header: Header) -> list[int]:
    """Return where x, y and z are in the file."""
    order = header.whole(AXES)
    if sorted(order) != [1, 2, 3]:
        raise InputError(path, f"its header names no axes: {order}")
    return [order.index(axis) for axis in (1, 2, 3)]


def _counts(path: str, header: Header, word: int, names: str) -> list[int]:
    counts = header.whole(word)
    if min(counts) < 1:
        raise InputError(path, f"{names} of its header are {counts}: they must be above 0")
    return counts


def _values(path: str, header: Header) -> NDArray[np.float32]:
    """Return [column, row, section], the first of which is fastest in the file."""
    (mode,), (extended,) = header.whole(MODE, 1), header.whole(EXTENDED, 1)
    if mode not in MODES:
        known = ", ".join(map(str, MODES))
        raise InputError(path, f"its values are of mode {mode}, which is not read (only {known})")
    if extended < 0:
        raise InputError(path, f"its extended header has {extended} bytes")
    dtype = np.dtype(header.order + MODES[mode])
    shape = _counts(path, header, COUNTS, "NX NY NZ")
    wanted, begin = math.prod(shape), HEADER + extended
    there = max(0, len(header.content) - begin) // dtype.itemsize
    if there < wanted:
        raise InputError(path, f"it ends early: {there:,} values where its header says {wanted:,}")
    values = np.frombuffer(header.content, dtype, wanted, begin).astype(np.float32)
    return values.reshape(shape[::-1]).transpose(2, 1, 0)


MRC = PocketFormat(name="mrc", suffixes=(".mrc", ".ccp4"), read=read, is_marked=is_marked)
