"""Where workers find counts and regions: in this process, or in a file."""

import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.io.sources import read_into

PIECE_BYTES = 16 << 20  # copied at a time by each of
THREADS = 8

Columns = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]
Room = Callable[[int], NDArray[np.uint8]]  # so many bytes, which may be those given before


class CountsSource(Protocol):
    """Counts of all regions, and where these lie; it pickles."""

    def rows(self, first: int, stop: int, room: Room) -> Columns:
        """[stop - first, samples]: int32 or float64; start and end of each region.

        room: memory for counts that do not lie in this process
        """


@dataclass(frozen=True, eq=False)
class InMemory:
    """Workers that are threads of this process look at the arrays themselves."""

    values: NDArray[Any]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """In their order in files."""
        return self.start, self.end, self.values

    def as_in(self, path: str) -> "InFile":
        """The same in a file that has them."""
        regions, samples = self.values.shape
        return InFile(path, self.values.dtype.str, (regions, samples))

    def rows(self, first: int, stop: int, room: Room) -> Columns:
        return self.values[first:stop], self.start[first:stop], self.end[first:stop]


@dataclass(frozen=True)
class InFile:
    """A file of start, end and counts, which other processes read: they pass no scheduler."""

    path: str
    dtype: str
    shape: tuple[int, int]

    def rows(self, first: int, stop: int, room: Room) -> Columns:
        places = np.memmap(self.path, np.int64, "r", shape=(2, self.shape[0]))
        width = self.shape[1] * np.dtype(self.dtype).itemsize
        # Counts are read, not mapped: all of them are used, and each new page would be a fault.
        raw = room((stop - first) * width)
        if read_into(self.path, places.nbytes + first * width, raw) < len(raw):
            raise InputError(self.path, "was cut while it was read")
        counts = raw.view(self.dtype).reshape(stop - first, self.shape[1])
        return counts, *np.asarray(places[:, first:stop])


@contextmanager
def shared(counts: InMemory) -> Iterator[InFile]:
    """A copy in memory for processes of this machine; it goes with the last of them."""
    with os.fdopen(os.memfd_create("multigpu-counts"), "r+b") as file:
        size = sum(array.nbytes for array in counts.arrays())
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as mapped:
            _fill(mapped, counts.arrays())
        yield counts.as_in(f"/proc/{os.getpid()}/fd/{file.fileno()}")


@contextmanager
def filed(counts: InMemory, folder: Path | None) -> Iterator[InFile]:
    """A copy in a file of `folder` (else of the system's temporary one) for a while."""
    with tempfile.TemporaryDirectory(prefix="multigpu-", dir=folder) as place:
        path = Path(place) / "counts"
        with path.open("wb") as file:
            for array in counts.arrays():
                array.tofile(file)
        yield counts.as_in(str(path))


def _fill(memory: mmap.mmap, arrays: Sequence[NDArray[Any]]) -> None:
    """One array after the other, by several threads: most of the time goes into new pages."""
    begin, pieces = 0, []
    whole = np.frombuffer(memory, np.uint8)
    for array in arrays:
        content = array.reshape(-1).view(np.uint8)
        for at in range(0, len(content), PIECE_BYTES):
            piece = content[at : at + PIECE_BYTES]
            pieces.append((whole[begin + at :][: len(piece)], piece))
        begin += len(content)
    with ThreadPoolExecutor(THREADS) as pool:
        for copied in [pool.submit(np.copyto, *piece) for piece in pieces]:
            copied.result()
