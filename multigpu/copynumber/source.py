"""Where workers find the counts: in this process, or in a file that they map."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class CountsSource(Protocol):
    """Counts of all regions; it pickles."""

    def rows(self, first: int, stop: int) -> NDArray[Any]:
        """[stop - first, samples]: int32 or float64."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Workers that are threads of this process look at the counts themselves."""

    values: NDArray[Any]

    def rows(self, first: int, stop: int) -> NDArray[Any]:
        return self.values[first:stop]


@dataclass(frozen=True)
class Mapped:
    """Other processes map a file, so that counts pass through no scheduler."""

    path: str
    dtype: str
    shape: tuple[int, int]

    def rows(self, first: int, stop: int) -> NDArray[Any]:
        values: NDArray[Any] = np.memmap(self.path, self.dtype, "r", shape=self.shape)
        return values[first:stop]


@contextmanager
def mapped(values: NDArray[Any], folder: Path | None) -> Iterator[Mapped]:
    """The counts in a file of `folder` (else of the system's temporary one) for a while."""
    with tempfile.TemporaryDirectory(prefix="multigpu-", dir=folder) as place:
        path = Path(place) / "counts"
        values.tofile(path)
        yield Mapped(str(path), values.dtype.str, (values.shape[0], values.shape[1]))
