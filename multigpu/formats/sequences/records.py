"""Record borders: bytes of FASTQ or FASTA to tables of records. Pure functions over arrays.

What the columns of a table are says `multigpu.kernels.compiled.text.records`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.text import fasta, fastq
from multigpu.kernels.compiled.text.records import COLUMNS, LENGTH, TABLE_FULL, Fault

ROWS = 1 << 16  # of a table at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parsed:
    """The records that begin before a border, and where and why parsing stopped.

    table      int64[n, 6]; of a record with a wrong quality there is a row, too
    stop       where the next record begins, or the one with the fault
    qualities  how many the record with the fault LENGTHS has
    """

    table: NDArray[np.int64]
    stop: int
    fault: Fault = Fault.NONE
    qualities: int = 0

    @staticmethod
    def none(stop: int) -> "Parsed":
        """Return no records."""
        return Parsed(table=empty_table(0), stop=stop)


def empty_table(rows: int) -> NDArray[np.int64]:
    """Return a table with anything in it."""
    return np.empty((rows, COLUMNS), np.int64)


def parse(
    raw: NDArray[np.uint8], begin: int, border: int, layout: str, *, final: bool, offset: int
) -> Parsed:
    """Parse the records that begin in [begin, border); `begin` is a record's first byte.

    final   nothing follows the bytes, so an incomplete record is what it looks like
    offset  the quality character that means 0
    """
    tables, fault, stop, qualities = [], TABLE_FULL, begin, 0
    while fault == TABLE_FULL:
        table = empty_table(ROWS)
        if layout == "fastq":
            found = fastq.parse(raw, stop, border, final, offset, table)
            count, stop, fault, qualities = found
        else:
            count, stop, fault = fasta.parse(raw, stop, border, final, table)
        tables.append(table[:count])
    return Parsed(table=np.concatenate(tables), stop=stop, fault=Fault(fault), qualities=qualities)


def parse_pieces(
    raw: NDArray[np.uint8], begin: int, border: int, overlap: int, final: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], bool] | None:
    """Parse the FASTA records, and pieces of records, whose bases stand in [begin, border).

    Returns the table, how many bases of each piece stand there, and whether the first piece goes on
    from a record that began before. The last one reaches `overlap` bases over the border if its
    record does; None where they are not all in `raw` (and `final` does not say that this is all).
    """
    rows = ROWS
    while True:
        table, inside = empty_table(rows), np.empty(rows, np.int64)
        count, lead, fault = fasta.parse_pieces(raw, begin, border, overlap, final, table, inside)
        if fault != TABLE_FULL:
            break
        rows *= 8
    return (table[:count], inside[:count], bool(lead)) if fault == Fault.NONE else None


def set_offsets(table: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
    """Set offsets int64[n + 1]: where each record's bases begin among all, and their number."""
    offsets[0] = 0
    np.cumsum(table[:, LENGTH], out=offsets[1:])
