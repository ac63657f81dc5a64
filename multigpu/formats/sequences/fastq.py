"""Spans of FASTQ files: from the file to letters, a block at a time."""

import os
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences.records import ROWS, Parsed, describe, empty_table
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text import fastq
from multigpu.kernels.compiled.text.records import (
    BLOCK_FULL,
    LETTERS_FULL,
    TABLE_FULL,
    UNREADABLE,
    Fault,
)
from multigpu.kernels.device.buffers import Buffers

BLOCK = 1 << 19  # bytes: they stay in the cache of a core, and most records fit
LAST_RECORD_BYTES = 1 << 20  # for bases of a span's last record, more than half of the span's bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FastqRecords:
    """The records that begin in a span of a file.

    table    positions in the file, BASES in `letters`
    letters  uint8[b]  their bases, one after the other
    stop     offset of the next record, or of the one that is wrong
    error    error of that record, or None
    """

    table: NDArray[np.int64]
    letters: NDArray[np.uint8]
    stop: int
    error: InputError | None


def find_first_record(file: int, begin: int, border: int, block_bytes: int = BLOCK) -> int:
    """Guess where the first record begins after the first newline in [begin, border); or -1."""
    block = np.empty(block_bytes, np.uint8)
    return int(fastq.find_first_record(file, begin, border, block))


def read_records(
    file: int,
    source: Source,
    begin: int,
    border: int,
    *,
    offset: int,
    buffers: Buffers,
    block_bytes: int = BLOCK,
) -> FastqRecords:
    """Read the records that begin in [begin, border); `begin` is a record's first byte.

    file     an open file's descriptor
    offset   the quality character that means 0
    buffers  source of the memory for the letters

    Raises InputError where the file is shorter now than `source` says, and OSError.
    """
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
    return FastqRecords(
        table=np.concatenate(tables),
        letters=letters[:bases],
        stop=stop,
        error=describe(source, block[:held], parsed, origin, offset),
    )


def raise_unreadable(file: int, path: str, position: int, size: int | None = None) -> NoReturn:
    """Raise what the system says of a position, or InputError where the file ends before it."""
    os.pread(file, 1, position)
    position = min(position, os.fstat(file).st_size)
    end = f": it ends at byte {position}, not at {size}" if size is not None else ""
    raise InputError(path, f"was cut while it was read{end}")
