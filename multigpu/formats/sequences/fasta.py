"""Spans of FASTA files: from the file to letters, a block at a time."""

import os
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences.fastq import BLOCK, raise_unreadable
from multigpu.formats.sequences.records import ROWS, Parsed, describe, empty_table
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text import LONGEST_NAME, fasta
from multigpu.kernels.compiled.text import records as columns
from multigpu.kernels.compiled.text.records import BLOCK_FULL, TABLE_FULL, UNREADABLE, Fault
from multigpu.kernels.device.buffers import Buffers

LOOK_BACK = 1 << 16  # bytes before a span in which the beginning of its line is looked for


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FastaPieces:
    """The records, and pieces of records, that stand in a span of a file.

    begin    where the span's first line begins, or continues, that is no header line of the span
             before; -1 for none in the span
    stop     the same of the next span, or later
    table    positions in the file, BASES in `letters`
    letters  uint8[b]  their bases, one after the other
    beyond   how many bases of the last piece stand after the span
    lead     whether the first piece continues a record that began before the span
    error    error of a file that begins with something else than a header, of a name, or None
    """

    begin: int
    stop: int
    table: NDArray[np.int64]
    letters: NDArray[np.uint8]
    beyond: int
    lead: bool
    error: InputError | None


def read_pieces(
    file: int,
    source: Source,
    start: int,
    border: int,
    *,
    exact: bool = False,
    overlap: int,
    buffers: Buffers,
    block_bytes: int = BLOCK,
) -> FastaPieces:
    """Read the records, and pieces of records, whose bases stand in [start, border).

    file     an open file's descriptor
    exact    whether `start` is known to be no part of a header line
    overlap  bases that the last piece reaches over the border, if its record does
    buffers  source of the memory for the letters

    Raises InputError where the file is shorter now than `source` says, and OSError.
    """
    size = source.size or 0
    first, line_begins = _first_bases(file, start, border, exact)
    letters = buffers.take(max(0, min(border + overlap, size) - start))
    block, table = np.empty(block_bytes, np.uint8), empty_table(ROWS)
    tables, count, bases, beyond, stop = [], 0, 0, 0, first
    why = BLOCK_FULL if first < border else Fault.NONE
    while why in (TABLE_FULL, BLOCK_FULL):
        count, bases, beyond, stop, line_begins, why = fasta.read(
            file, stop, line_begins, border, size, overlap, block, letters, bases, table, count,
            beyond,
        )  # fmt: skip
        if why == TABLE_FULL:
            tables.append(table)
            table, count = empty_table(ROWS), 0
        elif why == BLOCK_FULL:
            block = np.empty(2 * len(block), np.uint8)
    if why == UNREADABLE:
        raise_unreadable(file, source.path, stop, size)
    table = np.concatenate([*tables, table[:count]])
    lead, error = len(table) > 0 and bool(table[0, columns.NAME] == first), None
    if lead and start == 0:
        error = InputError(source.path, "a record should begin with '>' here", f"byte {first}")
    elif why == Fault.NAME:
        raw = np.frombuffer(os.pread(file, LONGEST_NAME + 2, stop), np.uint8)
        error = describe(source, raw, Parsed(table=table[:0], stop=0, fault=Fault.NAME), stop, 0)
    begin, stop = 0 if start == 0 else first if first < border else -1, border
    # The last header line may continue after the border.
    if len(table) and table[-1, columns.NAME] > first and table[-1, columns.LENGTH] == beyond:
        stop = max(border, _find(file, int(table[-1, columns.NAME_END]), size, rb"\n"))
    return FastaPieces(
        begin=begin,
        stop=stop,
        table=table,
        letters=letters[:bases],
        beyond=beyond,
        lead=lead,
        error=error,
    )


def _first_bases(file: int, start: int, border: int, exact: bool) -> tuple[int, bool]:
    """Return where reading begins, and whether a line begins there.

    Of a span that begins inside of a header line it is after that line, at the start of the file
    after white space, else where the span begins. Where the beginning of the line is too far off to
    be seen, a header line is not recognized: the part before, which has its end, tells that.
    """
    if start == 0:
        return _find(file, 0, border, rb"(?=\S)"), True
    origin = max(0, start - LOOK_BACK)
    before = os.pread(file, start - origin, origin)
    line = before.rfind(b"\n") + 1
    is_header = before.startswith(b">", line) and (line > 0 or origin == 0)
    if is_header and not exact:
        return _find(file, start, border, rb"\n"), True
    return start, line == len(before)


def _find(file: int, at: int, border: int, pattern: bytes) -> int:
    """Return where a pattern's first match after `at` ends; the border or later if none does."""
    while at < border and (text := os.pread(file, LOOK_BACK, at)):
        if found := re.search(pattern, text):
            return at + found.end()
        at += len(text)
    return at
