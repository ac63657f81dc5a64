"""FASTQ: records of bytes in memory, and spans of files, read a block at a time.

A span has the records that begin in it. Where its first one begins is guessed, and the guess is
checked against where the span before ended.
"""

import os
import re

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.pieces import Pieces, TextInFile
from multigpu.formats.sequences.records import ROWS, Parsed, describe, empty_table
from multigpu.formats.sequences.sequence_format import BLOCK, SequenceFormat
from multigpu.formats.sequences.spans import FileSpan
from multigpu.formats.storage.sources import Source, raise_unreadable
from multigpu.kernels.compiled.text import fastq
from multigpu.kernels.compiled.text.records import (
    BLOCK_FULL,
    LETTERS_FULL,
    TABLE_FULL,
    UNREADABLE,
    Fault,
)
from multigpu.kernels.device.buffers import Buffers

LOOK = 1 << 16  # bytes in which the first record of a span is looked for, and then twice as many
# A line that begins with @ may be one of qualities, but then a header follows, which does, too.
HEADER = re.compile(rb"\n(@[^\n]*\n)[^@]")
SHORT_RECORD = 128  # bytes: as many rows as there are such records are made at a time
LAST_RECORD_BYTES = 1 << 20  # for bases of a span's last record, more than half of the span's bytes


def parse(raw: NDArray[np.uint8], final: bool, offset: int) -> Parsed:
    """Parse bytes that begin with a record; see `SequenceFormat`."""
    tables, fault, stop, qualities = [], TABLE_FULL, 0, 0
    while fault == TABLE_FULL:
        table = empty_table(len(raw) // SHORT_RECORD + 1)
        count, stop, fault, qualities = fastq.parse(raw, stop, len(raw), final, offset, table)
        tables.append(table[:count])
    table = np.concatenate(tables) if len(tables) > 1 else tables[0]
    return Parsed(table=table, stop=stop, fault=Fault(fault), qualities=qualities)


def find_first_record(file: int, begin: int, border: int, block_bytes: int = LOOK) -> int:
    """Guess where the first record begins after the first newline in [begin, border); or -1.

    Certain where records have four lines; wrapped ones can mislead it.
    """
    text, size = b"", block_bytes
    while begin + len(text) < border and (more := os.pread(file, size, begin + len(text))):
        text += more
        if found := HEADER.search(text):
            return begin + found.start(1)
        size = len(text)
    return -1


def read_range(
    file: int,
    source: Source,
    span: FileSpan,
    overlap: int,
    offset: int,
    buffers: Buffers,
    block_bytes: int = BLOCK,
) -> Pieces:
    """Read the records that begin in a span; see `SequenceFormat`."""
    # The newline of the line before belongs to the search.
    first = span.start if span.exact else find_first_record(file, span.start - 1, span.stop)
    begin, border = span.stop if first < 0 else first, span.stop
    size = source.size or 0
    block = np.empty(block_bytes, np.uint8)
    letters = buffers.take((border - begin) // 2 + LAST_RECORD_BYTES)
    tables, bases, stop, why = [], 0, begin, TABLE_FULL
    while why in (TABLE_FULL, LETTERS_FULL, BLOCK_FULL):
        table = empty_table(ROWS)
        count, bases, origin, held, at, why, qualities = fastq.read(
            file, stop, border, size, offset, block, letters, bases, table
        )
        tables.append(table[:count])
        stop = origin + at
        if why == LETTERS_FULL:
            full, letters = letters, buffers.take(2 * len(letters))
            letters[:bases] = full[:bases]
            buffers.give(full)
        elif why == BLOCK_FULL:
            block = np.empty(2 * len(block), np.uint8)
    if why == UNREADABLE:
        raise_unreadable(file, source.path, origin + held, size)
    # Of a record with a wrong quality the row follows the good ones.
    parsed = Parsed(table=table[count : count + 1], stop=at, fault=Fault(why), qualities=qualities)
    return Pieces(
        begin=first,
        table=np.concatenate(tables),
        letters=letters[:bases],
        text=TextInFile(source.path),
        stop=stop,
        error=describe(source.path, FASTQ.mark, block[:held], parsed, origin, offset),
    )


FASTQ = SequenceFormat(
    name="fastq",
    suffixes=(".fq", ".fastq"),
    mark=b"@",
    parse=parse,
    read_range=read_range,
    has_qualities=True,
    bases_per_byte=0.5,
)
