"""The input of counting: reads and regions as columns, and the rules."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Counting:
    """Rules for which reads count and which bases each covers; the name in R in brackets.

    min_mapq           lowest mapping quality that counts [min.mapq]
    remove_duplicates  a read does not count where an earlier one has its position, its strand and,
                       with `get_width`, its length, whatever the quality of that one [remove.dup]
    read_width         bases that a read covers, from its position on [read.width]
    get_width          it covers as many bases as it has instead [get.width]
    stranded_start     a reverse read covers the last bases of its length, and `get_width` changes
                       nothing in what reads cover, as in R [stranded.start]
    """

    min_mapq: int = 1
    remove_duplicates: bool = False
    read_width: int = 1
    get_width: bool = False
    stranded_start: bool = False


READ_DTYPES: dict[str, type[np.generic]] = {
    "chrom": np.int32,
    "start": np.int64,
    "end": np.int64,
    "length": np.int64,
    "mapq": np.uint8,
    "reverse": np.bool_,
}


@dataclass(frozen=True, eq=False)
class Reads:
    """Mapped reads in the order of the file.

    chrom    int32[n]  number of the reference
    start    int64[n]  the first mapped base, from 0
    end      int64[n]  after the last mapped base
    length   int64[n]  bases of the read, those clipped softly included
    mapq     uint8[n]  mapping quality
    reverse  bool[n]   on the strand -

    Raises ValueError on any other dtype or shape; nothing is converted.
    """

    chrom: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    length: NDArray[np.int64]
    mapq: NDArray[np.uint8]
    reverse: NDArray[np.bool_]

    def __post_init__(self) -> None:
        check_columns(self, READ_DTYPES)

    def __len__(self) -> int:
        return len(self.chrom)


def check_columns(table: object, dtypes: dict[str, type[np.generic]]) -> None:
    """Raise ValueError where a column has another dtype, or another length than the first."""
    length = len(getattr(table, next(iter(dtypes))))
    for name, dtype in dtypes.items():
        column = getattr(table, name)
        if column.dtype != dtype or column.shape != (length,):
            raise ValueError(
                f"{name}: {column.dtype}{list(column.shape)} instead of {np.dtype(dtype)}[{length}]"
            )
