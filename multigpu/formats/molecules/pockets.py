"""Score grids of pockets: AutoGrid, OpenDX, MRC/CCP4 and NumPy files to arrays.

All end as value [ix, iy, iz] at origin + spacing * (ix, iy, iz), in Å. Axes that are not those of
the coordinates, and grids with values that are no numbers, are refused.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, Unreadable, UsageError, first_line, quoted
from multigpu.formats.storage.inlets import is_remote
from multigpu.formats.storage.npy import UNREADABLE, read_arrays
from multigpu.formats.storage.sources import (
    COMPRESSED,
    Kind,
    blocks,
    expand,
    inspect_source,
    suffix_of,
)

READ_BYTES = 16 << 20
LARGEST_VALUE = float(np.finfo(np.float32).max)
AXES = "xyz"
STRUCTURE = re.compile(rb"^(ATOM  |HETATM|@<TRIPOS>)", re.MULTILINE)
NO_GRID = (
    "this is a structure, and a pocket is a grid of scores: make AutoGrid's maps of the receptor"
    " (`autogrid4 -p RECEPTOR.gpf`) and give the .maps.fld that it writes"
)

Vector = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Pocket:
    """One grid, or the maps of AutoGrid.

    values   float32[maps, nx, ny, nz], finite
    origin   float64[3]  where values[:, 0, 0, 0] stands, Å
    spacing  float64[3]  Å, positive
    types    the atom type of each map but the last two, which are electrostatics and
             desolvation; () for a plain grid, which is one score for every atom
    absent   atom types whose maps are named and not there
    """

    path: str
    layout: str
    values: NDArray[np.float32]
    origin: NDArray[np.float64]
    spacing: NDArray[np.float64]
    types: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        nx, ny, nz = self.values.shape[1:]
        return nx, ny, nz

    @property
    def end(self) -> NDArray[np.float64]:
        """float64[3]: where the last value stands."""
        end: NDArray[np.float64] = self.origin + self.spacing * (np.array(self.shape) - 1)
        return end

    @property
    def center(self) -> NDArray[np.float64]:
        return (self.origin + self.end) / 2

    def distance(self, point: NDArray[np.float64]) -> float:
        """From a point to the grid, Å; 0 inside."""
        outside = np.maximum(np.maximum(self.origin - point, point - self.end), 0)
        return float(np.sqrt((outside**2).sum()))


def read_pocket(path: str, origin: Vector | None = None, spacing: float | None = None) -> Pocket:
    """The grid of a file; `origin` and `spacing` are those of NumPy files, which need not have any.

    Raises InputError for what is wrong with the file, UsageError for options that do not fit.
    """
    (path,) = expand([path], POCKETS)
    layout = inspect_source(path, POCKETS).layout
    if layout == "numpy":
        return _checked(_read_numpy(path, origin, spacing))
    if origin is not None or spacing is not None:
        raise UsageError(f"{path} says itself where it stands: leave out --origin and --spacing")
    return _checked(READERS[layout](path))


def _layout(path: str, start: bytes) -> str:
    if MRC_MARK in start[:MRC_MARK_END]:
        return "mrc"  # CCP4 maps are called .map, too
    layout = LAYOUTS.get(suffix_of(Path(path).name, POCKETS), "")
    if not layout and STRUCTURE.search(start):
        raise InputError(path, NO_GRID)
    return layout


def _checked(pocket: Pocket) -> Pocket:
    """Raises InputError for a grid that cannot be interpolated."""
    for axis, points, step in zip(AXES, pocket.shape, pocket.spacing, strict=True):
        if points < 2:
            problem = f"the grid has {points} point along {axis}: it needs at least two"
            raise InputError(pocket.path, problem)
        if not 0 < step < np.inf:
            problem = f"the spacing along {axis} is {step:g}, not positive and finite"
            raise InputError(pocket.path, problem)
    if not np.isfinite(pocket.origin).all():
        raise InputError(pocket.path, "the origin is no place: it is not finite")
    if not np.isfinite(pocket.values).all():
        raise _not_finite(pocket)
    return pocket


def _not_finite(pocket: Pocket) -> InputError:
    places = np.argwhere(~np.isfinite(pocket.values))
    where, index = int(places[0][0]), places[0][1:].tolist()
    value = pocket.values[(where, *index)]
    name = f"map {_map_names(pocket)[where]}, " if pocket.types else ""
    more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
    return InputError(
        pocket.path, f"the value is {value}{more}: every value must be a number",
        f"{name}grid index {index} (from 0)",
    )  # fmt: skip


def _map_names(pocket: Pocket) -> list[str]:
    return [*pocket.types, "e", "d"]


def _content(path: str) -> bytes:
    return b"".join(block.tobytes() for block in blocks(inspect_source(path, POCKETS), READ_BYTES))


def _values(
    path: str, text: bytes, shape: Sequence[int], line: int, what: str
) -> NDArray[np.float32]:
    """As many numbers as the shape has, parted by white space, the last axis fastest.

    line: where `text` begins in the file, from 1
    """
    words = text.split()
    wanted = math.prod(shape)  # NumPy's product goes round
    if len(words) != wanted:
        problem = f"{len(words):,} values where {what} says {wanted:,}"
        raise InputError(path, problem)
    try:
        values = np.array(words, np.float64)
    except ValueError:
        raise _no_number(path, text, line) from None
    values[np.abs(values) > LARGEST_VALUE] = np.inf
    return values.astype(np.float32).reshape(shape)


def _no_number(path: str, text: bytes, line: int) -> InputError:
    for number, row in enumerate(text.splitlines(), line):
        for word in row.split():
            try:
                float(word)
            except ValueError:
                return InputError(path, f"{quoted(word)} is no number", f"line {number}")
    raise AssertionError("every word is a number")


# ---- AutoGrid ---------------------------------------------------------------------------------

GEOMETRY = ("SPACING", "NELEMENTS", "CENTER")
MAP_HEADER = 6  # lines
MOST_STEPS = 1_000_000_000  # along an axis: more are a slip, and would be told in 900 digits
Geometry = dict[str, tuple[float, ...]]


def _read_autogrid(path: str) -> Pocket:
    """`*.maps.fld` and the maps that it names, which must agree with it.

    Maps of atom types may be missing: which ones are needed depends on the ligands.
    """
    lines = _content(path).decode("latin-1").splitlines()
    header = [line[1:] if line.startswith("#") else "" for line in lines]
    geometry = _geometry(path, header)
    maps = dict(_autogrid_maps(path, lines))
    for missing in {"e", "d"} - set(maps):
        name = {"e": "electrostatics", "d": "desolvation"}[missing]
        raise InputError(path, f"there is no map of {name} (.{missing}.map)")
    if set(maps) == {"e", "d"}:
        raise InputError(path, "there is no map of an atom type")
    there = {name: file for name in maps if (file := _stored(maps[name]))}
    types = tuple(name for name in there if name not in ("e", "d"))
    needed = (*types, "e", "d") if types else maps
    values = [_read_map(there.get(name, maps[name]), path, geometry) for name in needed]
    spacing = np.full(3, geometry["SPACING"][0])
    origin = np.array(geometry["CENTER"]) - spacing * (np.array(_points(geometry)) - 1) / 2
    absent = tuple(name for name in maps if name not in there)
    return Pocket(path, "autogrid", np.ascontiguousarray(values), origin, spacing, types, absent)


def _stored(path: str) -> str:
    """The file itself, or a compressed one in its place; empty where there is none.

    Raises InputError where it cannot be read for another reason.
    """
    for suffix in COMPRESSED:
        try:
            return inspect_source(path + suffix, POCKETS).path
        except Unreadable as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
    return ""


def _autogrid_maps(path: str, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each map's atom type ("e" and "d": electrostatics, desolvation) and file."""
    labels = [match[1] for line in lines if (match := re.match(r"label=(\S+)", line))]
    files = [match[1] for line in lines if (match := re.match(r"variable\s.*file=(\S+)", line))]
    if not files:
        raise InputError(path, "it names no maps (variable 1 file=…)")
    if len(labels) != len(files):
        raise InputError(path, f"it has {len(labels)} labels for {len(files)} maps")
    known = {"electrostatics": "e", "desolvation": "d"}
    for label, file in zip(labels, files, strict=True):
        name = known.get(label.lower(), label.removesuffix("-affinity"))
        yield name, _beside(path, file)


def _beside(path: str, name: str) -> str:
    """Where a file lies that is named in another."""
    if is_remote(path):  # of a URL, Path would make "//" one slash
        return f"{path.rpartition('/')[0]}/{name}"
    return str(Path(path).parent / name)


def _geometry(path: str, lines: Sequence[str]) -> Geometry:
    found: Geometry = {}
    for number, line in enumerate(lines, 1):
        name, _, rest = line.partition(" ")
        if name in GEOMETRY and name not in found:
            found[name] = _floats(path, rest.split(), number)
            _check_geometry(path, name, found[name], number)
    for name, count in zip(GEOMETRY, (1, 3, 3), strict=True):
        if len(found.get(name, ())) != count:
            raise InputError(path, f"it does not say {name} as AutoGrid does")
    return found


def _check_geometry(path: str, name: str, numbers: Sequence[float], line: int) -> None:
    """Raises InputError for numbers that are finite and yet make no grid."""
    problem = f"{name} is {_shown(numbers)}"
    if name == "SPACING" and not all(number > 0 for number in numbers):
        raise InputError(path, f"{problem}: it must be above 0", f"line {line}")
    whole = all(number.is_integer() and 1 <= number <= MOST_STEPS for number in numbers)
    if name == "NELEMENTS" and not whole:
        rule = f"they must be whole numbers from 1 to {MOST_STEPS:,}"
        raise InputError(path, f"{problem}: {rule}", f"line {line}")


def _floats(path: str, words: Sequence[str], line: int) -> tuple[float, ...]:
    """Finite ones. Raises InputError for anything else."""
    where, shown = f"line {line}", quoted(" ".join(words))
    try:
        numbers = tuple(float(word) for word in words)
    except ValueError:
        raise InputError(path, f"no numbers: {shown}", where) from None
    if not all(math.isfinite(number) for number in numbers):
        raise InputError(path, f"every number must be finite: {shown}", where)
    return numbers


def _points(geometry: Geometry) -> tuple[int, ...]:
    """Along x, y and z; AutoGrid counts the steps between them, whole numbers."""
    return tuple(int(steps) + 1 for steps in geometry["NELEMENTS"])


def _read_map(path: str, field: str, geometry: Geometry) -> NDArray[np.float32]:
    content = _content(path)
    *header, body = content.split(b"\n", MAP_HEADER)
    own = _geometry(path, [line.decode("latin-1").strip() for line in header])
    for name in GEOMETRY:
        if own[name] != geometry[name]:
            problem = f"{name} is {_shown(own[name])}, but {_shown(geometry[name])} in {field}"
            raise InputError(path, f"{problem}: the maps are not of one grid")
    nx, ny, nz = _points(geometry)
    return _values(path, body, (nz, ny, nx), MAP_HEADER + 1, "NELEMENTS").transpose(2, 1, 0)


def _shown(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers)


def _read_single_map(path: str) -> Pocket:
    raise InputError(path, "this is one map of several: give the .maps.fld that names them")


# ---- OpenDX -----------------------------------------------------------------------------------

DX_COUNTS = re.compile(rb"class\s+gridpositions\s+counts" + 3 * rb"\s+(\d{1,18})" + rb"(?!\S)")
DX_DATA = re.compile(rb"^\s*object\s.*class\s+array\s.*data\s+follows\s*$", re.MULTILINE)
DX_END = re.compile(rb"^\s*(attribute|component|object)\b", re.MULTILINE)


def _read_dx(path: str) -> Pocket:
    """The scalar field of an OpenDX file as APBS and others write it: z is fastest."""
    content = _content(path)
    counts, data = DX_COUNTS.search(content), DX_DATA.search(content)
    if counts is None:
        raise InputError(path, "it has no 'class gridpositions counts nx ny nz'")
    if data is None:
        raise InputError(path, "it has no array with 'data follows' as text")
    header = content[: data.start()]
    shape = tuple(int(word) for word in counts.groups())
    (origin,) = _dx_rows(path, header, "origin", 1)
    steps = np.array(_dx_rows(path, header, "delta", 3))
    if np.any(steps != np.diag(np.diag(steps))):
        raise InputError(path, "its axes are not parallel to x, y and z: this is not read")
    end = DX_END.search(content, data.end())
    body = content[data.end() : end.start() if end else len(content)]
    line = content.count(b"\n", 0, data.end()) + 1
    values = _values(path, body, shape, line, "'gridpositions counts'")
    return Pocket(path, "dx", values[None], np.array(origin), np.diag(steps).copy())


def _dx_rows(path: str, header: bytes, name: str, count: int) -> list[tuple[float, ...]]:
    rows = []
    for number, line in enumerate(header.decode("latin-1").splitlines(), 1):
        words = line.split()
        if words[:1] == [name]:
            rows.append(_floats(path, words[1:], number))
    if len(rows) != count or any(len(row) != 3 for row in rows):
        raise InputError(path, f"it needs {count} line(s) '{name} x y z'")
    return rows


# ---- MRC and CCP4 -----------------------------------------------------------------------------

MRC_HEADER = 1024  # bytes; behind them stand as many as the word MRC_EXTENDED says, then the data
MRC_COUNTS, MRC_MODE, MRC_START, MRC_SAMPLING, MRC_CELL = 1, 4, 5, 8, 11  # words, from 1
MRC_ANGLES, MRC_AXES, MRC_EXTENDED, MRC_ORIGIN = 14, 17, 24, 50
MRC_MARK, MRC_MARK_AT, MRC_MARK_END = b"MAP ", 208, 212  # bytes; the machine stamp follows
MRC_BYTE_ORDERS = {0x44: "<", 0x11: ">"}
MRC_MODES = {0: "i1", 1: "i2", 2: "f4", 6: "u2"}
RIGHT_ANGLES = [90.0, 90.0, 90.0]


@dataclass(frozen=True)
class MrcHeader:
    """Words of a header, by their number from 1. order: "<" or ">", of all numbers in the file."""

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


def _read_mrc(path: str) -> Pocket:
    """A map as it stands in the file; where it says an ORIGIN that is used, else its start."""
    content = _content(path)
    header = _mrc_header(path, content)
    axes = _mrc_axes(path, header)
    spacing = np.array(header.real(MRC_CELL)) / _mrc_counts(path, header, MRC_SAMPLING, "MX MY MZ")
    origin = np.array(header.real(MRC_ORIGIN))
    if not origin.any():
        origin = np.array(header.whole(MRC_START))[axes] * spacing
    values = _mrc_values(path, header).transpose(axes)
    return Pocket(path, "mrc", np.ascontiguousarray(values)[None], origin, spacing)


def _mrc_header(path: str, content: bytes) -> MrcHeader:
    if content[MRC_MARK_AT:MRC_MARK_END] != MRC_MARK:
        raise InputError(path, "no MRC or CCP4 map: its header lacks the mark MAP")
    if len(content) < MRC_HEADER:
        raise InputError(path, f"no MRC or CCP4 map: its header ends before {MRC_HEADER:,} bytes")
    order = MRC_BYTE_ORDERS.get(content[MRC_MARK_END])
    if order is None:
        raise InputError(path, "its machine stamp says neither little-endian nor big-endian")
    header = MrcHeader(content, order)
    if header.real(MRC_ANGLES) != RIGHT_ANGLES:
        raise InputError(path, "its axes are not at right angles: this is not read")
    return header


def _mrc_axes(path: str, header: MrcHeader) -> list[int]:
    """Where x, y and z are in the file."""
    order = header.whole(MRC_AXES)
    if sorted(order) != [1, 2, 3]:
        raise InputError(path, f"its header names no axes: {order}")
    return [order.index(axis) for axis in (1, 2, 3)]


def _mrc_counts(path: str, header: MrcHeader, word: int, names: str) -> list[int]:
    counts = header.whole(word)
    if min(counts) < 1:
        raise InputError(path, f"{names} of its header are {counts}: they must be above 0")
    return counts


def _mrc_values(path: str, header: MrcHeader) -> NDArray[np.float32]:
    """[column, row, section], the first of which is fastest in the file."""
    (mode,), (extended,) = header.whole(MRC_MODE, 1), header.whole(MRC_EXTENDED, 1)
    if mode not in MRC_MODES:
        known = ", ".join(map(str, MRC_MODES))
        raise InputError(path, f"its values are of mode {mode}, which is not read (only {known})")
    if extended < 0:
        raise InputError(path, f"its extended header has {extended} bytes")
    dtype = np.dtype(header.order + MRC_MODES[mode])
    shape = _mrc_counts(path, header, MRC_COUNTS, "NX NY NZ")
    wanted, begin = math.prod(shape), MRC_HEADER + extended
    there = max(0, len(header.content) - begin) // dtype.itemsize
    if there < wanted:
        raise InputError(path, f"it ends early: {there:,} values where its header says {wanted:,}")
    values = np.frombuffer(header.content, dtype, wanted, begin).astype(np.float32)
    return values.reshape(shape[::-1]).transpose(2, 1, 0)


# ---- NumPy ------------------------------------------------------------------------------------


def _read_numpy(path: str, origin: Vector | None, spacing: float | None) -> Pocket:
    """An array of a .npy file, or `grid` (with `origin` and `spacing`, if there) of a .npz."""
    content = _content(path)
    try:
        arrays = read_arrays(content)
    except UNREADABLE as error:
        raise InputError(path, f"no array: {first_line(error)}") from error
    grid = _grid(path, arrays)
    start = _place(path, "origin", arrays.get("origin") if origin is None else origin)
    step = _place(path, "spacing", arrays.get("spacing") if spacing is None else spacing)
    for name, array in (("origin", start), ("spacing", step)):
        if array.dtype == object:
            raise UsageError(f"{path} does not say its {name}: give --{name}")
        if array.dtype.kind not in "fiu" or array.shape not in ((3,), ()):
            raise InputError(path, f"its {name} is not one number, or three")
    with np.errstate(all="ignore"):  # what is no number is refused later, with its place
        values = grid.astype(np.float64)
        start, step = start.astype(np.float64), step.astype(np.float64)
    values[np.abs(values) > LARGEST_VALUE] = np.inf
    return Pocket(
        path, "numpy", np.ascontiguousarray(values, np.float32)[None],
        np.broadcast_to(start, 3).copy(), np.broadcast_to(step, 3).copy(),
    )  # fmt: skip


def _place(path: str, name: str, value: Any) -> NDArray[Any]:
    """As an array, of whatever type."""
    try:
        return np.asarray(value)
    except ValueError:  # rows of different lengths
        raise InputError(path, f"its {name} is not one number, or three") from None


def _grid(path: str, arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    names = ", ".join(arrays) or "nothing"
    if "grid" not in arrays and len(arrays) != 1:
        raise InputError(path, f"which array is the grid? Call it 'grid'; there is {names}")
    grid = arrays.get("grid", next(iter(arrays.values())))
    if grid.ndim != 3 or grid.dtype.kind not in "fiub":
        raise InputError(path, f"the grid is {grid.dtype}{list(grid.shape)}: three axes are needed")
    return grid


LAYOUTS = {
    ".maps.fld": "autogrid",
    ".fld": "autogrid",
    ".map": "map",
    ".dx": "dx",
    ".mrc": "mrc",
    ".ccp4": "mrc",
    ".npy": "numpy",
    ".npz": "numpy",
}
READERS: dict[str, Callable[[str], Pocket]] = {
    "autogrid": _read_autogrid,
    "map": _read_single_map,
    "dx": _read_dx,
    "mrc": _read_mrc,
}
POCKETS = Kind(
    "pocket", tuple(LAYOUTS), _layout,
    "no pocket by its name (.maps.fld, .dx, .mrc, .ccp4, .npy, .npz)",
)  # fmt: skip
