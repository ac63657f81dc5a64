"""MRC and CCP4 maps of densities."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.molecules.pockets.pocket import Pocket, PocketFile, PocketFormat

# After the header come as many bytes as `extended` says, then the data.
HEADER = np.dtype(
    {
        "names": [
            "counts", "mode", "start", "sampling", "cell", "angles", "axes", "extended", "skewed",
            "skew", "origin",
        ],
        "formats": ["3i4", "i4", "3i4", "3i4", "3f4", "3f4", "3i4", "i4", "i4", "12f4", "3f4"],
        "offsets": [0, 12, 16, 28, 40, 52, 64, 92, 96, 100, 196],
        "itemsize": 1024,
    }
)  # fmt: skip
MARK, MARK_BEGIN, MARK_END = b"MAP ", 208, 212  # bytes; the machine stamp follows
BYTE_ORDERS: dict[int, Literal["<", ">"]] = {0x44: "<", 0x11: ">"}
MODES = {0: "i1", 1: "i2", 2: "f4", 6: "u2"}
RIGHT_ANGLES = [90.0, 90.0, 90.0]
NOT_SKEWED = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]  # matrix, translation


def is_marked(start: bytes) -> bool:
    """Whether a file is one, whatever its name: CCP4 maps are called .map, too."""
    return start[MARK_BEGIN:MARK_END] == MARK


def read(file: PocketFile) -> Pocket:
    """Return a map where its ORIGIN says, else where its start is. Raises InputError."""
    path, content = file.path, file.content()
    order = _byte_order(path, content)
    header = np.frombuffer(content, HEADER.newbyteorder(order), 1)[0]
    if header["angles"].tolist() != RIGHT_ANGLES:
        raise InputError(path, "its axes are not at right angles: this is not read")
    if header["skewed"] == 1 and header["skew"].tolist() != NOT_SKEWED:  # of CCP4
        raise InputError(path, "its header has a skew transformation (LSKFLG): this is not read")
    named = header["axes"].tolist()
    if sorted(named) != [1, 2, 3]:
        raise InputError(path, f"its header names no axes: {named}")
    axes = [named.index(axis) for axis in (1, 2, 3)]
    with np.errstate(all="ignore"):  # a spacing that is no number is refused later
        spacing = header["cell"].astype(np.float64) / header["sampling"]
    origin = header["origin"].astype(np.float64)
    if not origin.any():
        origin = header["start"][axes] * spacing
    values = _values(path, content, header, order).transpose(axes)
    return Pocket(
        path=path,
        layout=MRC.name,
        values=np.ascontiguousarray(values)[None],
        origin=origin,
        spacing=spacing,
    )


def _byte_order(path: str, content: bytes) -> Literal["<", ">"]:
    """Return "<" or ">", of all numbers in the file. Raises InputError where it is no map."""
    if not is_marked(content) or len(content) < HEADER.itemsize:
        raise InputError(path, "no MRC or CCP4 map: it has no header of 1,024 bytes with MAP")
    if content[MARK_END] not in BYTE_ORDERS:
        raise InputError(path, "its machine stamp says neither little-endian nor big-endian")
    return BYTE_ORDERS[content[MARK_END]]


def _values(path: str, content: bytes, header: np.void, order: str) -> NDArray[np.float32]:
    """Return [column, row, section], the first of which is fastest in the file."""
    mode, extended = int(header["mode"]), int(header["extended"])
    if mode not in MODES:
        known = ", ".join(map(str, MODES))
        raise InputError(path, f"its values are of mode {mode}, which is not read (only {known})")
    dtype = np.dtype(order + MODES[mode])
    shape = header["counts"].tolist()
    if min(*shape, extended + 1) < 1:
        problem = f"its header says {shape} values after an extended header of {extended} bytes"
        raise InputError(path, problem)
    expected, begin = math.prod(shape), HEADER.itemsize + extended
    stored = max(0, len(content) - begin) // dtype.itemsize
    if stored < expected:
        problem = f"it ends early: {stored:,} values where its header says {expected:,}"
        raise InputError(path, problem)
    values = np.frombuffer(content, dtype, expected, begin).astype(np.float32)
    return values.reshape(shape[::-1]).transpose(2, 1, 0)


MRC = PocketFormat(name="mrc", suffixes=(".mrc", ".ccp4"), read=read, is_marked=is_marked)
