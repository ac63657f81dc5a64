"""The input of counting: reads and regions as columns, and the rules."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

REVERSE, NO_FRAGMENT = 0x10, 0x900  # bits of FLAG: the strand -; secondary and supplementary


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
    aligned_width      a read covers all from its first to its last mapped base instead
    exclude_flags      bits of FLAG in SAM: a read with any of them is not looked at, whatever for
    include_flags      a read without all of these is not, either
    count              "reads", or "fragments": of a proper pair only the mate on the left counts,
                       and no secondary or supplementary read
    """

    min_mapq: int = 1
    remove_duplicates: bool = False
    read_width: int = 1
    get_width: bool = False
    stranded_start: bool = False
    aligned_width: bool = False
    exclude_flags: int = 0
    include_flags: int = 0
    count: Literal["reads", "fragments"] = "reads"


READ_DTYPES: dict[str, type[np.generic]] = {
    "chrom": np.int32,
    "start": np.int64,
    "end": np.int64,
    "length": np.int64,
    "mapq": np.uint8,
    "flag": np.uint16,
    "is_right_mate": np.bool_,
}


@dataclass(frozen=True, eq=False)
class Reads:
    """Mapped reads in the order of the file.

    chrom    int32[n]  number of the reference
    start    int64[n]  the first mapped base, from 0
    end      int64[n]  after the last mapped base
    length   int64[n]  bases of the read, those clipped softly included
    mapq     uint8[n]  mapping quality
    flag     uint16[n]  FLAG of SAM
    is_right_mate  bool[n]  of a proper pair on one reference, the read that begins after its mate;
                   where both begin at one place, the second

    Raises ValueError on any other dtype or shape; nothing is converted.
    """

    chrom: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    length: NDArray[np.int64]
    mapq: NDArray[np.uint8]
    flag: NDArray[np.uint16]
    is_right_mate: NDArray[np.bool_]

    def __post_init__(self) -> None:
        check_columns(self, READ_DTYPES)

    def __len__(self) -> int:
        return len(self.chrom)

    @property
    def reverse(self) -> NDArray[np.bool_]:
        """bool[n]: on the strand -."""
        return np.asarray(self.flag & REVERSE != 0)


def check_columns(table: object, dtypes: dict[str, type[np.generic]]) -> None:
    """Raise ValueError where a column has another dtype, or another length than the first."""
    length = len(getattr(table, next(iter(dtypes))))
    for name, dtype in dtypes.items():
        column = getattr(table, name)
        if column.dtype != dtype or column.shape != (length,):
            raise ValueError(
                f"{name}: {column.dtype}{list(column.shape)} instead of {np.dtype(dtype)}[{length}]"
            )
