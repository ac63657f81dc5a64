"""Grids of one score for all atoms: OpenDX as APBS and others write it, MRC and CCP4, NumPy.

Each format ends with its `PocketFormat`.
"""

import math
import re
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, UsageError, first_line
from multigpu.formats.molecules.pockets.pocket import (
    Pocket,
    PocketFile,
    PocketFormat,
    parse_floats,
    parse_values,
    single_precision,
)
from multigpu.formats.storage.npy import UNREADABLE, read_arrays

COUNTS = re.compile(rb"class\s+gridpositions\s+counts" + 3 * rb"\s+(\d{1,18})" + rb"(?!\S)")
DATA = re.compile(rb"^\s*object\s.*class\s+array\s.*data\s+follows\s*$", re.MULTILINE)
END = re.compile(rb"^\s*(attribute|component|object)\b", re.MULTILINE)
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


def read_opendx(file: PocketFile) -> Pocket:
    """Return the field of a file, in which z is fastest. Raises InputError."""
    content, path = file.content(), file.path
    counts, data = COUNTS.search(content), DATA.search(content)
    if counts is None:
        raise InputError(path, "it has no 'class gridpositions counts nx ny nz'")
    if data is None:
        raise InputError(path, "it has no array with 'data follows' as text")
    header = content[: data.start()]
    shape = tuple(int(word) for word in counts.groups())
    (origin,) = _rows(path, header, "origin", 1)
    steps = np.array(_rows(path, header, "delta", 3))
    if np.any(steps != np.diag(np.diag(steps))):
        raise InputError(path, "its axes are not parallel to x, y and z: this is not read")
    end = END.search(content, data.end())
    body = content[data.end() : end.start() if end else len(content)]
    line = content.count(b"\n", 0, data.end()) + 1
    values = parse_values(path, body, shape, line, "'gridpositions counts'")
    step = np.diag(steps)
    ways = tuple(slice(None, None, -1 if each < 0 else 1) for each in step)  # an axis may run down
    return Pocket(
        path=path,
        layout=OPENDX.name,
        values=np.ascontiguousarray(values[ways])[None],
        origin=origin + np.minimum(step, 0) * (np.array(shape) - 1),
        spacing=np.abs(step),
    )


def _rows(path: str, header: bytes, name: str, count: int) -> list[tuple[float, ...]]:
    """Return the numbers of all lines of this name. Raises InputError for another count."""
    rows = []
    for number, line in enumerate(header.decode("latin-1").splitlines(), 1):
        words = line.split()
        if words[:1] == [name]:
            rows.append(parse_floats(path, words[1:], number))
    if len(rows) != count or any(len(row) != 3 for row in rows):
        raise InputError(path, f"it needs {count} line(s) '{name} x y z'")
    return rows


OPENDX = PocketFormat(name="dx", suffixes=(".dx",), read=read_opendx)


def is_mrc(start: bytes) -> bool:
    """Whether a file is one, whatever its name: CCP4 maps are called .map, too."""
    return start[MARK_BEGIN:MARK_END] == MARK


def read_mrc(file: PocketFile) -> Pocket:
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
    if not is_mrc(content) or len(content) < HEADER.itemsize:
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


MRC = PocketFormat(name="mrc", suffixes=(".mrc", ".ccp4"), read=read_mrc, is_marked=is_mrc)


def read_numpy(file: PocketFile) -> Pocket:
    """Return the array of a .npy file, or `grid` (with `origin` and `spacing`, if there) of a .npz.

    Raises InputError, and UsageError where neither the file nor the options say where it stands.
    """
    path, content = file.path, file.content()
    try:
        arrays = read_arrays(content, "grid", "origin", "spacing")
    except UNREADABLE as error:
        raise InputError(path, f"no array: {first_line(error)}") from error
    grid = _grid(path, arrays)
    origin = _vector(path, "origin", arrays.get("origin") if file.origin is None else file.origin)
    spacing = arrays.get("spacing") if file.spacing is None else file.spacing
    with np.errstate(all="ignore"):  # what is no number is refused later, with its place
        values = grid.astype(np.float64)
    return Pocket(
        path=path,
        layout=NUMPY.name,
        values=single_precision(values)[None],
        origin=origin,
        spacing=_vector(path, "spacing", spacing),
    )


def _vector(path: str, name: str, value: Any) -> NDArray[np.float64]:
    """Return float64[3] of one number or three. Raises UsageError for None, else InputError."""
    if value is None:
        raise UsageError(f"{path} does not say its {name}: give --{name}")
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape not in ((3,), ()):
        raise InputError(path, f"its {name} is not one number, or three")
    with np.errstate(all="ignore"):
        return np.broadcast_to(array.astype(np.float64), 3).copy()


def _grid(path: str, arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the array called grid, or the only one. Raises InputError."""
    names = ", ".join(arrays) or "nothing"
    if "grid" not in arrays and len(arrays) != 1:
        raise InputError(path, f"which array is the grid? Call it 'grid'; there is {names}")
    grid = arrays.get("grid", next(iter(arrays.values())))
    if grid.ndim != 3 or grid.dtype.kind not in "fiub":
        raise InputError(path, f"the grid is {grid.dtype}{list(grid.shape)}: three axes are needed")
    return grid


NUMPY = PocketFormat(name="numpy", suffixes=(".npy", ".npz"), read=read_numpy, has_place=False)
