"""Regions of the genome: windows of references and BED files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kernels.counting.types import check_columns


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions, one in each row.

    names  the chromosomes, each once
    chrom  int32[n]  index into `names`
    start  int64[n]  from 0
    end    int64[n]  half open

    Raises ValueError on any other dtype or shape; nothing is converted.
    """

    names: tuple[str, ...]
    chrom: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def __post_init__(self) -> None:
        check_columns(self, {"chrom": np.int32, "start": np.int64, "end": np.int64})

    def __len__(self) -> int:
        return len(self.chrom)

    def take(self, rows: NDArray[np.intp]) -> "Regions":
        """The rows of these indices, in this order; the names stay."""
        return Regions(self.names, self.chrom[rows], self.start[rows], self.end[rows])

    @property
    def blocks(self) -> list[slice]:
        """The rows of every run of one chromosome, in order."""
        borders = np.flatnonzero(np.diff(self.chrom, prepend=-1, append=-1)).tolist()
        return [slice(a, b) for a, b in pairwise(borders)]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, int, int]]) -> Self:
        """From (chromosome, start, end); the names in the order in which they appear."""
        names: dict[str, int] = {}
        table = [(names.setdefault(name, len(names)), start, end) for name, start, end in rows]
        columns = np.array(table, np.int64).reshape(-1, 3)
        chrom = columns[:, 0].astype(np.int32)
        return cls(tuple(names), chrom, columns[:, 1].copy(), columns[:, 2].copy())


def windows(references: Sequence[tuple[str, int]], width: int) -> Regions:
    """Consecutive windows of `width` bases over (name, length); the last ones are shorter."""
    counts = [-(-length // width) for _, length in references]
    chrom = np.repeat(np.arange(len(references), dtype=np.int32), counts)
    start = np.concatenate([np.arange(n, dtype=np.int64) * width for n in (*counts, 0)])
    lengths = np.array([length for _, length in references], np.int64)
    end = np.minimum(start + width, lengths[chrom])
    return Regions(tuple(name for name, _ in references), chrom, start, end)
