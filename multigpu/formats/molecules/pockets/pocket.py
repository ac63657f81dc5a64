"""Grids of scores, and the class of which every format of them has one object."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, Unreadable, quoted
from multigpu.formats.storage.sources import COMPRESSED, FileKind, inspect_source
from multigpu.formats.storage.stored_streams import is_remote
from multigpu.kernels.maps import Receptor

LARGEST_VALUE = float(np.finfo(np.float32).max)
AXES = "xyz"

Vector = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pocket:
    """One grid, or the maps of AutoGrid.

    values   float32[maps, nx, ny, nz], finite
    origin   float64[3]  where values[:, 0, 0, 0] stands, Å
    spacing  float64[3]  Å, positive
    types    the atom type of each map; after them AutoDock's pockets have electrostatics and
             desolvation. () for a plain grid, which is one score for every atom
    receptor path of the receptor that the maps were made of, which need not be there; "" if unknown
    prepared its atoms, where the maps were made here
    """

    path: str
    layout: str
    values: NDArray[np.float32]
    origin: NDArray[np.float64]
    spacing: NDArray[np.float64]
    types: tuple[str, ...] = ()
    receptor: str = ""
    prepared: Receptor | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Points along x, y and z."""
        nx, ny, nz = self.values.shape[1:]
        return nx, ny, nz

    @property
    def end(self) -> NDArray[np.float64]:
        """float64[3]: where the last value stands."""
        end: NDArray[np.float64] = self.origin + self.spacing * (np.array(self.shape) - 1)
        return end

    @property
    def center(self) -> NDArray[np.float64]:
        """float64[3]: the middle of the box."""
        return (self.origin + self.end) / 2


def check_pocket(pocket: Pocket) -> Pocket:
    """Return the pocket. Raises InputError for a grid that cannot be interpolated."""
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
    name = f"map {[*pocket.types, 'e', 'd'][where]}, " if pocket.types else ""
    more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
    problem = f"the value is {value}{more}: every value must be a number"
    return InputError(pocket.path, problem, f"{name}grid index {index} (from 0)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PocketFile:
    """A file of a pocket, for its reader.

    kind             the files that pockets are made of
    origin, spacing  Å, as the options say; None where they do not
    """

    path: str
    kind: FileKind
    origin: Vector | None = None
    spacing: float | None = None

    def content(self) -> bytes:
        """Return all of it, decompressed. Raises InputError."""
        return inspect_source(self.path, self.kind).content()

    def beside(self, name: str) -> "PocketFile":
        """Return the file that is named in this one."""
        if is_remote(self.path):  # of a URL, Path would make "//" one slash
            path = f"{self.path.rpartition('/')[0]}/{name}"
        else:
            path = str(Path(self.path).parent / name)
        return replace(self, path=path)

    def stored(self) -> "PocketFile | None":
        """Return this file, or a compressed one; None without. Raises InputError: unreadable."""
        for suffix in COMPRESSED:
            try:
                return replace(self, path=inspect_source(self.path + suffix, self.kind).path)
            except Unreadable as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PocketFormat:
    """One format of pockets.

    name       what a source calls its layout
    suffixes   of its files, without those of compression
    read       file → pocket, which is checked afterwards. Raises InputError
    is_marked  whether the beginning of a file shows that it is one, whatever its name; None: the
               name decides
    has_place  whether the files say where the grid stands; else options may
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[PocketFile], Pocket]
    is_marked: Callable[[bytes], bool] | None = None
    has_place: bool = True


def parse_values(
    path: str, text: bytes, shape: Sequence[int], line: int, what: str
) -> NDArray[np.float32]:
    """Return the numbers of a text, as many as the shape has. Raises InputError.

    line  where `text` begins in the file, from 1
    what  says how many there are
    """
    words = text.split()
    expected = math.prod(shape)  # NumPy's product overflows
    if len(words) != expected:
        raise InputError(path, f"{len(words):,} values where {what} says {expected:,}")
    try:
        values = np.array(words, np.float64)
    except ValueError:
        raise _no_number(path, text, line) from None
    return single_precision(values).reshape(shape)


def single_precision(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return float32; what is too large for that becomes infinite, which is refused later."""
    values[np.abs(values) > LARGEST_VALUE] = np.inf
    return np.ascontiguousarray(values, np.float32)


def _no_number(path: str, text: bytes, line: int) -> InputError:
    for number, row in enumerate(text.splitlines(), line):
        for word in row.split():
            try:
                float(word)
            except ValueError:
                return InputError(path, f"{quoted(word)} is no number", f"line {number}")
    raise AssertionError("every word is a number")


def parse_floats(path: str, words: Sequence[str], line: int) -> tuple[float, ...]:
    """Return finite numbers. Raises InputError for anything else."""
    where, shown = f"line {line}", quoted(" ".join(words))
    try:
        numbers = tuple(float(word) for word in words)
    except ValueError:
        raise InputError(path, f"no numbers: {shown}", where) from None
    if not all(math.isfinite(number) for number in numbers):
        raise InputError(path, f"every number must be finite: {shown}", where)
    return numbers
