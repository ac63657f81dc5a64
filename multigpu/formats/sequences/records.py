"""Record borders: bytes of FASTQ or FASTA to tables of records, and errors in words.

The columns of a table are described in `multigpu.kernels.compiled.text.records`.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.names import LONGEST_NAME, name_problem
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text import fasta, fastq
from multigpu.kernels.compiled.text.fastq import HIGHEST_QUALITY
from multigpu.kernels.compiled.text.lines import GREATER, NEWLINE, copy_letters, skip_blank
from multigpu.kernels.compiled.text.records import COLUMNS, LENGTH, QUALITY, TABLE_FULL, Fault

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


def parse(raw: NDArray[np.uint8], layout: str, *, final: bool, offset: int) -> Parsed:
    """Parse bytes that begin with a record.

    final   whether nothing follows the bytes, so that an incomplete record is an error
    offset  the quality character that means 0
    """
    if layout == "fasta":
        return _parse_fasta(raw, final)
    tables, fault, stop, qualities = [], TABLE_FULL, 0, 0
    while fault == TABLE_FULL:
        table = empty_table(ROWS)
        count, stop, fault, qualities = fastq.parse(raw, stop, len(raw), final, offset, table)
        tables.append(table[:count])
    return Parsed(table=np.concatenate(tables), stop=stop, fault=Fault(fault), qualities=qualities)


def _parse_fasta(raw: NDArray[np.uint8], final: bool) -> Parsed:
    """Parse all records but the last, which may continue; if the bytes are final, all of them."""
    border = len(raw) if final else _last_header(raw)
    stop = skip_blank(raw, 0)
    if stop < border and raw[stop] != GREATER:
        return Parsed(table=empty_table(0), stop=stop, fault=Fault.NO_HEADER)
    tables, fault = [empty_table(0)], TABLE_FULL
    while fault == TABLE_FULL:
        table = empty_table(ROWS)
        count, stop, fault = fasta.parse(raw[:border], stop, table)
        tables.append(table[:count])
    if fault == Fault.NONE and not final:
        fault = Fault.INCOMPLETE
    return Parsed(table=np.concatenate(tables), stop=stop, fault=Fault(fault))


def _last_header(raw: NDArray[np.uint8]) -> int:
    """Return where the last header line begins; 0 where there is none."""
    marks = np.flatnonzero(raw == GREATER)
    headers = marks[(marks == 0) | (raw[marks - 1] == NEWLINE)]
    return int(headers[-1]) if len(headers) else 0


def set_offsets(table: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
    """Set offsets int64[n + 1]: where each record's bases begin among all, and their number."""
    offsets[0] = 0
    np.cumsum(table[:, LENGTH], out=offsets[1:])


# ---- errors in words ------------------------------------------------------------------------


def describe(
    source: Source, raw: NDArray[np.uint8], parsed: Parsed, origin: int, offset: int
) -> InputError | None:
    """Return the error for the record at parsed.stop, if there is a fault.

    origin  where in the file `raw` begins
    offset  the quality character that means 0
    """
    if parsed.fault is Fault.NONE:
        return None
    where = f"byte {origin + parsed.stop}"
    if parsed.fault is Fault.NO_HEADER:
        mark = "@" if source.layout == "fastq" else ">"
        return InputError(source.path, f"a record should begin with {mark!r} here", where)
    words = raw[parsed.stop + 1 : parsed.stop + 1000].tobytes().partition(b"\n")[0].split()
    record = f"record {quoted(words[0] if words else b'')} at {where}"
    return InputError(source.path, _problem(raw, parsed, origin, offset), record)


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
