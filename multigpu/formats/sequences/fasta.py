"""FASTA: records of bytes in memory, and spans of files, read a block at a time.

A span has the bases that stand in it, even of records that began before or continue after it; such
a piece extends over the border as far as a signature may reach. Whether it begins in a header line
is guessed where that line is very long, and checked against where the span before ended.
"""

import os
import re

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences.pieces import Pieces, TextInFile
from multigpu.formats.sequences.records import ROWS, Parsed, describe, empty_table
from multigpu.formats.sequences.sequence_format import BLOCK, SequenceFormat
from multigpu.formats.sequences.spans import FileSpan
from multigpu.formats.storage.sources import Source, raise_unreadable
from multigpu.kernels.compiled.text import LONGEST_NAME, fasta
from multigpu.kernels.compiled.text import records as columns
from multigpu.kernels.compiled.text.lines import GREATER, NEWLINE, skip_blank
from multigpu.kernels.compiled.text.records import BLOCK_FULL, TABLE_FULL, UNREADABLE, Fault
from multigpu.kernels.device.buffers import Buffers

LOOK_BACK = 1 << 16  # bytes before a span in which the beginning of its line is looked for


def parse(raw: NDArray[np.uint8], final: bool, offset: int) -> Parsed:
    """Parse all records but the last, which may continue; if the bytes are final, all of them."""
    marks = np.flatnonzero(raw == GREATER)
    headers = marks[(marks == 0) | (raw[marks - 1] == NEWLINE)]
    border = len(raw) if final else int(headers[-1]) if len(headers) else 0
    stop = skip_blank(raw, 0)
    if stop < border and raw[stop] != GREATER:
        return Parsed(table=empty_table(0), stop=stop, fault=Fault.NO_HEADER)
    table = empty_table(len(headers) + 1)  # the first may stand behind blanks
    count, stop, fault = fasta.parse(raw[:border], stop, table)
    if fault == Fault.NONE and not final:
        fault = Fault.INCOMPLETE
    return Parsed(table=table[:count], stop=stop, fault=Fault(fault))


def read_range(
    file: int,
    source: Source,
    span: FileSpan,
    overlap: int,
    offset: int,
    buffers: Buffers,
    block_bytes: int = BLOCK,
) -> Pieces:
    """Read the records, and pieces of records, whose bases stand in a span; see `SequenceFormat`.

    It begins where the span's first line begins, or continues, that is no header line of the span
    before.
    """
    start, border = span.start, span.stop
    size = source.size or 0
    first, line_begins = _first_bases(file, start, border, span.exact)
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
        error = describe(
            source.path, FASTA.mark, raw, Parsed(table=table[:0], stop=0, fault=Fault.NAME), stop, 0
        )
    begin, stop = 0 if start == 0 else first if first < border else -1, border
    # The last header line may continue after the border.
    if len(table) and table[-1, columns.NAME] > first and table[-1, columns.LENGTH] == beyond:
        stop = max(border, _find(file, int(table[-1, columns.NAME_END]), size, rb"\n"))
    return Pieces(
        begin=begin,
        stop=stop,
        table=table,
        letters=letters[:bases],
        text=TextInFile(source.path),
        beyond=beyond,
        lead=lead,
        tail=True,
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


FASTA = SequenceFormat(
    name="fasta",
    suffixes=(".fa", ".fasta", ".fna"),
    mark=b">",
    parse=parse,
    read_range=read_range,
    has_qualities=False,
    bases_per_byte=1.0,
)
