"""Tables of sequence records, and what is read by them.

A table is int64[n, 6], a record a row:

    NAME, NAME_END  where the name is
    BASES, LENGTH   where the sequence begins, and how many bases it has
    QUALITY         where the qualities begin; -1 for FASTA
    WRAPPED         1 where sequence and qualities may stand on several lines, else 0
"""

from enum import IntEnum
from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import copy_bytes, read_at
from multigpu.kernels.compiled.text.lines import NEWLINE, RETURN, copy_letters

NAME, NAME_END, BASES, LENGTH, QUALITY, WRAPPED = range(6)
COLUMNS = 6


class Fault(IntEnum):
    """Fault of the record at which a parser stopped."""

    NONE = 0
    INCOMPLETE = 1  # the record continues after the bytes
    NO_HEADER = 2
    NO_PLUS = 3
    LENGTHS = 4
    QUALITY = 5
    NAME = 6  # has a control character, or is too long
    OTHER_NAME = 7  # after '+'


# Other reasons to stop: what the caller has to make larger, and a file that cannot be read.
TABLE_FULL, LETTERS_FULL, BLOCK_FULL, UNREADABLE = range(8, 12)


@jit_no_alloc
def refill(file: Any, origin: Any, size: Any, block: Any, at: Any, held: Any) -> Any:
    """Move the unread bytes block[at:held] to the front, and fill the block from the file.

    file    an open file's descriptor
    origin  position in the file of what is block[0] then
    size    of the file

    Returns how many bytes the block holds, and False if the file ended before `size`.
    """
    copy_bytes(block, 0, block, at, held - at)
    held -= at
    wanted = min(block.shape[0], size - origin)
    while held < wanted:
        more = read_at(file, origin + held, block, held, wanted - held)
        if more <= 0:
            return held, False
        held += more
    return held, True


@jit_no_alloc
def gather(raw: Any, table: Any, letters: Any, at: Any) -> Any:
    """Copy the bases of all records of a table to letters[at:]; return where they end."""
    for i in range(table.shape[0]):
        begin, length = table[i, BASES], table[i, LENGTH]
        if table[i, WRAPPED]:
            copy_letters(letters, at, raw, begin, length, table[i, QUALITY] < 0)
        else:
            copy_bytes(letters, at, raw, begin, length)
        at += length
    return at


@jit_no_alloc
def sum_qualities(file: Any, block: Any, table: Any, starts: Any, lengths: Any, sums: Any) -> None:
    """Sum the qualities of windows; -1 where a file ends before.

    file     an open file's descriptor; -1 where all of the text is in the block
    block    uint8[size]  is overwritten with text of the file
    table    int64[n, 6]  the record of each window, in the text
    starts   int64[n]     where the window begins in the record
    lengths  int64[n]     qualities in the window
    sums     int64[n]     takes the sums of their characters
    """
    for i in range(starts.shape[0]):
        at, skipped = _window_begin(table[i], starts[i])
        left = lengths[i]
        sums[i] = 0
        if file < 0:
            sums[i], _, _ = _sum_letters(block, at, block.shape[0], skipped, left)
            continue
        while left > 0:
            held = read_at(file, at, block, 0, min(block.shape[0], skipped + left))
            if held <= 0:
                sums[i] = -1
                break
            total, skipped, left = _sum_letters(block, 0, held, skipped, left)
            sums[i] += total
            at += held


@jit_no_alloc
def _window_begin(row: Any, start: Any) -> Any:
    """Return where to read for qualities from `start` on, and how many of them to skip."""
    if row[WRAPPED]:
        return row[QUALITY], start
    return row[QUALITY] + start, np.int64(0)


@jit_no_alloc
def _sum_letters(raw: Any, at: Any, stop: Any, skipped: Any, left: Any) -> Any:
    """Sum up to `left` characters after `skipped` ones; return the sum, and both that remain.

    Line ends do not count: no quality is one.
    """
    total = np.int64(0)
    while at < stop and left > 0:
        byte = raw[at]
        at += 1
        if byte != NEWLINE and byte != RETURN:
            if skipped > 0:
                skipped -= 1
            else:
                total += byte
                left -= 1
    return total, skipped, left


@jit_no_alloc
def copy_windows(file: Any, begins: Any, ends: Any, out: Any) -> Any:
    """Copy windows of an open file one after the other; return whether the file has them all."""
    at = 0
    for i in range(begins.shape[0]):
        begin = begins[i]
        while begin < ends[i]:
            held = read_at(file, begin, out, at, ends[i] - begin)
            if held <= 0:
                return False
            begin += held
            at += held
    return True
