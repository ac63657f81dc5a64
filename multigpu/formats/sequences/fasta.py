"""Spans of FASTA files: from the file to letters, a block at a time."""

import os
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences.fastq import BLOCK, raise_unreadable
from multigpu.formats.sequences.records import ROWS, empty_table
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text import fasta
from multigpu.kernels.compiled.text.records import BLOCK_FULL, NAME, TABLE_FULL, UNREADABLE
from multigpu.kernels.device.buffers import Buffers

LOOK_BACK = 1 << 16  # bytes before a span: longer header lines are not recognized


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FastaPieces:
    """The records, and pieces of records, that stand in a span of a file.

    table    positions in the file, BASES in `letters`
    letters  uint8[b]  their bases, one after the other
    beyond   how many bases of the last piece stand after the span
    lead     whether the first piece continues a record that began before the span
    error    error of a file that begins with something else than a header, or None
    """

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
    overlap: int,
    buffers: Buffers,
    block_bytes: int = BLOCK,
) -> FastaPieces:
    """Read the records, and pieces of records, whose bases stand in [start, border).

    file     an open file's descriptor
    overlap  bases that the last piece reaches over the border, if its record does
    buffers  source of the memory for the letters

    Raises InputError where the file is shorter now than `source` says, and OSError.
    """
    size = source.size or 0
    begin, line_begins = _first_bases(file, start, border)
    letters = buffers.take(min(border + overlap, size) - start)
    block = np.empty(block_bytes, np.uint8)
    tables, bases, beyond, stop, why = [], 0, 0, begin, TABLE_FULL
    while why in (TABLE_FULL, BLOCK_FULL) and stop < border:
        table = empty_table(ROWS)
        count, bases, beyond, stop, why = fasta.read(
            file, stop, line_begins, border, size, overlap, block, letters, bases, table
        )
        tables.append(table[:count])
        line_begins = True
        if why == BLOCK_FULL:
            block = np.empty(2 * len(block), np.uint8)
    if why == UNREADABLE:
        raise_unreadable(file, source.path, stop, size)
    table = np.concatenate([*tables, empty_table(0)])
    lead, error = len(table) > 0 and bool(table[0, NAME] == begin), None
    if lead and start == 0:
        error = InputError(source.path, "a record should begin with '>' here", f"byte {begin}")
    return FastaPieces(table=table, letters=letters[:bases], beyond=beyond, lead=lead, error=error)


def _first_bases(file: int, start: int, border: int) -> tuple[int, bool]:
    """Return where reading begins, and whether a line begins there.

    Of a span that begins inside of a header line it is after that line, at the start of the file
    after blank lines, else where the span begins.
    """
    if start == 0:
        return _find(file, 0, border, rb"(?=[^\r\n])"), True
    origin = max(0, start - LOOK_BACK)
    before = os.pread(file, start - origin, origin)
    line = before.rfind(b"\n") + 1
    is_header = before.startswith(b">", line) and (line > 0 or origin == 0)
    if is_header:
        return _find(file, start, border, rb"\n"), True
    return start, line == len(before)


def _find(file: int, at: int, border: int, pattern: bytes) -> int:
    """Return where a pattern's first match after `at` ends; the border or later if none does."""
    while at < border and (text := os.pread(file, LOOK_BACK, at)):
        if found := re.search(pattern, text):
            return at + found.end()
        at += len(text)
    return at
