"""Where workers find counts and regions: in this process, or in what they map."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Columns = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]


class CountsSource(Protocol):
    """Counts of all regions, and where these lie; it pickles."""

    def rows(self, first: int, stop: int) -> Columns:
        """[stop - first, samples]: int32 or float64; start and end of each region."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Workers that are threads of this process look at the arrays themselves."""

    values: NDArray[Any]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def rows(self, first: int, stop: int) -> Columns:
        return self.values[first:stop], self.start[first:stop], self.end[first:stop]


@dataclass(frozen=True)
class Mapped:
    """Other processes map them, so that they pass through no scheduler: start, end, counts."""

    path: str
    dtype: str
    shape: tuple[int, int]

    def rows(self, first: int, stop: int) -> Columns:
        places = np.memmap(self.path, np.int64, "r", shape=(2, self.shape[0]))
        values = np.memmap(self.path, self.dtype, "r", places.nbytes, self.shape)
        return np.asarray(values[first:stop]), *np.asarray(places[:, first:stop])


@contextmanager
def shared(counts: InMemory) -> Iterator[Mapped]:
    """A copy in memory for processes of this machine; it goes with the last of them."""
    with os.fdopen(os.memfd_create("multigpu-counts"), "wb") as file:
        yield _written(counts, f"/proc/{os.getpid()}/fd/{file.fileno()}")


@contextmanager
def filed(counts: InMemory, folder: Path | None) -> Iterator[Mapped]:
    """A copy in a file of `folder` (else of the system's temporary one) for a while."""
    with tempfile.TemporaryDirectory(prefix="multigpu-", dir=folder) as place:
        yield _written(counts, str(Path(place) / "counts"))


def _written(counts: InMemory, path: str) -> Mapped:
    with Path(path).open("wb") as file:
        for array in (counts.start, counts.end, counts.values):
            array.tofile(file)
    regions, samples = counts.values.shape
    return Mapped(path, counts.values.dtype.str, (regions, samples))
