"""Counts and regions where workers find them: in this process, or in files."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import failures_named, scratch_folder
from multigpu.errors import InputError
from multigpu.formats.storage import shareable
from multigpu.formats.storage.sources import read_into

LoadedRows = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]
Room = Callable[[int], NDArray[np.uint8]]  # returns memory of this size; it may be reused


@dataclass(frozen=True)
class ArrayInFile:
    """An array in a file, from byte `begin` on: other processes read it, it passes no scheduler."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    begin: int = 0

    @classmethod
    def of(cls, array: NDArray[Any], path: str, begin: int = 0) -> "ArrayInFile":
        """Return the place of an array that is in a file."""
        return cls(path, array.dtype.str, array.shape, begin)

    def read(self, first: int, stop: int, room: Room) -> NDArray[Any]:
        """Return the rows [first, stop), in memory from `room`."""
        # Read, not mapped: all rows are used, and each new page would be a fault.
        rows = (stop - first, *self.shape[1:])
        width = int(np.prod(self.shape[1:])) * np.dtype(self.dtype).itemsize
        raw = room(rows[0] * width)
        if read_into(self.path, self.begin + first * width, raw) < len(raw):
            raise InputError(self.path, "was cut while it was read")
        return raw.view(self.dtype).reshape(rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class CountsSource:
    """Counts of all regions, and their places: arrays for threads of this process, or files."""

    values: NDArray[Any] | ArrayInFile
    start: NDArray[np.int64] | ArrayInFile
    end: NDArray[np.int64] | ArrayInFile

    @property
    def paths(self) -> list[str]:
        """Files that workers must see."""
        return [self.values.path] if isinstance(self.values, ArrayInFile) else []

    def rows(self, first: int, stop: int, room: Room) -> LoadedRows:
        """Return int32 or float64[rows, samples], and start and end of each region.

        These are views of arrays; from files they are copies, the counts in memory from `room`.
        """
        return (
            _rows_of(self.values, first, stop, room),
            _rows_of(self.start, first, stop, _fresh),
            _rows_of(self.end, first, stop, _fresh),
        )


def _rows_of(array: NDArray[Any] | ArrayInFile, first: int, stop: int, room: Room) -> NDArray[Any]:
    if isinstance(array, ArrayInFile):
        return array.read(first, stop, room)
    return array[first:stop]


def _fresh(size: int) -> NDArray[np.uint8]:
    return np.empty(size, np.uint8)


@contextmanager
def share_memory(**arrays: NDArray[Any]) -> Iterator[CountsSource]:
    """Keep the counts where worker processes of this machine read them; copied if they are not."""
    kept = {}
    for name, array in arrays.items():
        kept[name] = array
        if shareable.path_of(array) is None:
            kept[name] = shareable.empty(array.shape, array.dtype)
            kept[name][...] = array
    # A path is there as long as its array.
    places = {name: str(shareable.path_of(array)) for name, array in kept.items()}
    yield CountsSource(**{name: ArrayInFile.of(kept[name], places[name]) for name in kept})


@contextmanager
def copy_to_file(folder: Path | None, **arrays: NDArray[Any]) -> Iterator[CountsSource]:
    """Keep a copy of the counts in a file of `folder`, or of the folder for temporary files."""
    with ExitStack() as stack:
        with failures_named(str(folder or tempfile.gettempdir())):
            place = stack.enter_context(scratch_folder(folder))
        path, found = Path(place) / "counts", {}
        with failures_named(place), path.open("wb") as file:
            for name, array in arrays.items():
                found[name] = ArrayInFile.of(array, str(path), file.tell())
                array.tofile(file)
        yield CountsSource(**found)
