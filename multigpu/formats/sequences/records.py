"""Tables of the records of bytes in memory, and errors in words.

The columns of a table are described in `multigpu.kernels.compiled.text.records`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.names import LONGEST_NAME, name_problem
from multigpu.kernels.compiled.text.fastq import HIGHEST_QUALITY
from multigpu.kernels.compiled.text.lines import copy_letters
from multigpu.kernels.compiled.text.records import COLUMNS, LENGTH, QUALITY, Fault, gather

ROWS = 1 << 16  # of a table at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parsed:
    """The records that begin before a border, and where and why parsing stopped.

    table      int64[n, 6]; a record with a wrong quality has a row, too
    stop       where the next record begins, or the one with the fault
    qualities  number of quality characters of the record with the fault LENGTHS
    """

    table: NDArray[np.int64]
    stop: int
    fault: Fault = Fault.NONE
    qualities: int = 0


def empty_table(rows: int) -> NDArray[np.int64]:
    """Return a table of this many rows, uninitialized."""
    return np.empty((rows, COLUMNS), np.int64)


def gather_letters(
    raw: NDArray[np.uint8],
    table: NDArray[np.int64],
    allocate: Callable[[int], NDArray[np.uint8]],
) -> NDArray[np.uint8]:
    """Return the bases of all records of a table, one after the other, in memory of the caller."""
    letters = allocate(int(table[:, LENGTH].sum()))
    gather(raw, table, letters, 0)
    return letters


# ---- errors in words ------------------------------------------------------------------------


def describe(
    path: str, mark: bytes, raw: NDArray[np.uint8], parsed: Parsed, origin: int, offset: int
) -> InputError | None:
    """Return the error for the record at parsed.stop, if there is a fault.

    mark    how a record begins
    origin  where in the file `raw` begins
    offset  the quality character that means 0
    """
    if parsed.fault is Fault.NONE:
        return None
    where = f"byte {origin + parsed.stop}"
    if parsed.fault is Fault.NO_HEADER:
        return InputError(path, f"a record should begin with {mark.decode()!r} here", where)
    words = raw[parsed.stop + 1 : parsed.stop + 1000].tobytes().partition(b"\n")[0].split()
    record = f"record {quoted(words[0] if words else b'')} at {where}"
    return InputError(path, _problem(raw, parsed, origin, offset), record)


def _problem(raw: NDArray[np.uint8], parsed: Parsed, origin: int, offset: int) -> str:
    if parsed.fault is Fault.INCOMPLETE:
        return f"the record is cut off: the data end at byte {origin + len(raw)}"
    if parsed.fault is Fault.NO_PLUS:
        return "the sequence is not followed by a line that begins with '+'"
    if parsed.fault is Fault.NAME:
        name = raw[parsed.stop + 1 : parsed.stop + LONGEST_NAME + 2].tobytes()
        return name_problem(re.split(rb"[ \t]|\r?\n", name)[0])
    if parsed.fault is Fault.OTHER_NAME:
        line = raw[parsed.stop :].tobytes().split(b"\n+", 1)[1].partition(b"\n")[0].rstrip()
        return f"the qualities are those of another record: its name after '+' is {quoted(line)}"
    if parsed.fault is Fault.LENGTHS:
        lines = raw[parsed.stop :].tobytes().split(b"\n+", 1)[0].split(b"\n")[1:]
        bases = sum(len(line.rstrip(b"\r")) for line in lines)
        return f"the sequence has {bases} bases, the quality has {parsed.qualities} characters"
    row = parsed.table[-1]
    values = np.empty(row[LENGTH], np.uint8)
    copy_letters(values, 0, raw, row[QUALITY], row[LENGTH], False)
    position = int(np.flatnonzero((values < offset) | (values > HIGHEST_QUALITY))[0])
    letter = quoted(bytes([values[position]]))
    return f"{letter} at position {position} (from 0) is no quality from offset {offset}"
