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

Columns = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]
Room = Callable[[int], NDArray[np.uint8]]  # returns memory of this size; it may be reused


@dataclass(frozen=True, eq=False, kw_only=True)
class InMemory:
    """Counts of all regions and their places, for workers that are threads of this process."""

    values: NDArray[Any]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return start, end and counts."""
        return self.start, self.end, self.values

    def rows(self, first: int, stop: int, room: Room) -> Columns:
        """Return views of int32 or float64[rows, samples], and of start and end of each region."""
        return self.values[first:stop], self.start[first:stop], self.end[first:stop]


@dataclass(frozen=True)
class ArrayInFile:
    """An array in a file, from byte `begin` on."""

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
        rows = (stop - first, *self.shape[1:])
        width = int(np.prod(self.shape[1:])) * np.dtype(self.dtype).itemsize
        raw = room(rows[0] * width)
        if read_into(self.path, self.begin + first * width, raw) < len(raw):
            raise InputError(self.path, "was cut while it was read")
        return raw.view(self.dtype).reshape(rows)


@dataclass(frozen=True)
class InFile:
    """Counts in files, which other processes read: counts pass no scheduler."""

    start: ArrayInFile
    end: ArrayInFile
    values: ArrayInFile

    def rows(self, first: int, stop: int, room: Room) -> Columns:
        """Return copies of what `InMemory.rows` returns, with the counts in memory from `room`."""
        # Read, not mapped: all rows are used, and each new page would be a fault.
        start, end = (each.read(first, stop, _fresh) for each in (self.start, self.end))
        return self.values.read(first, stop, room), start, end


def _fresh(size: int) -> NDArray[np.uint8]:
    return np.empty(size, np.uint8)


CountsSource = InMemory | InFile


@contextmanager
def share_memory(counts: InMemory) -> Iterator[InFile]:
    """Keep the counts where worker processes of this machine read them; copied if they are not."""
    arrays = list(counts.arrays())
    for k, array in enumerate(arrays):
        if shareable.path_of(array) is None:
            arrays[k] = shareable.empty(array.shape, array.dtype)
            arrays[k][...] = array
    # A path is there as long as its array.
    yield InFile(*(ArrayInFile.of(array, str(shareable.path_of(array))) for array in arrays))


@contextmanager
def copy_to_file(counts: InMemory, folder: Path | None) -> Iterator[InFile]:
    """Keep a copy of the counts in a file of `folder`, or of the folder for temporary files."""
    with ExitStack() as stack:
        with failures_named(str(folder or tempfile.gettempdir())):
            place = stack.enter_context(scratch_folder(folder))
        path = Path(place) / "counts"
        found = []
        with failures_named(place), path.open("wb") as file:
            for array in counts.arrays():
                found.append(ArrayInFile.of(array, str(path), file.tell()))
                array.tofile(file)
        yield InFile(*found)
