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
from multigpu.kernels.compiled.text.lines import (
    GREATER,
    NEWLINE,
    PLUS,
    RETURN,
    copy_letters,
    end_of_bases,
    line_end,
    trimmed,
)

NAME, NAME_END, BASES, LENGTH, QUALITY, WRAPPED = range(6)
COLUMNS = 6
SLASH, COLON, ZERO, ONE, NINE, NO, YES = b"/:019NY"
ANY_BASE = ord("N")


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
def move(table: Any, by: Any, out: Any) -> None:
    """Fill a table with the records of another one, with positions that are greater by so much."""
    for i in range(table.shape[0]):
        for column in (NAME, NAME_END, BASES):
            out[i, column] = table[i, column] + by
        out[i, LENGTH], out[i, WRAPPED] = table[i, LENGTH], table[i, WRAPPED]
        out[i, QUALITY] = table[i, QUALITY] + by if table[i, QUALITY] >= 0 else -1


@jit_no_alloc
def mean_qualities(
    file: Any, block: Any, table: Any, rows: Any, starts: Any, ends: Any, offset: Any, means: Any
) -> Any:
    """Average the qualities of windows; return the first that a file ends before, or -1.

    file    an open file's descriptor; -1 where all of the text is in the block
    block   uint8[size]  is overwritten with text of the file
    table   int64[n, 6]  records, in the text
    rows    int[k]       the record of each window
    starts  int64[k]     where the window begins in the record
    ends    int64[k]     where it ends; one beyond the record's last base continues at its first
    offset  the quality character that means 0
    means   float64[k]   takes exact sums, divided once; NaN where there are no qualities
    """
    for i in range(starts.shape[0]):
        record, length = table[rows[i]], ends[i] - starts[i]
        means[i] = np.nan
        if record[QUALITY] >= 0 and length > 0:
            inside = min(length, record[LENGTH] - starts[i])
            one, is_whole = _sum_window(file, block, record, starts[i], inside)
            two, has_rest = _sum_window(file, block, record, np.int64(0), length - inside)
            if not (is_whole and has_rest):
                return i
            means[i] = (one + two - length * offset) / length
    return -1


@jit_no_alloc
def _sum_window(file: Any, block: Any, record: Any, skipped: Any, left: Any) -> Any:
    """Return the sum of `left` quality characters of a record, and whether the file has them."""
    at, sum_of_all = record[QUALITY], np.int64(0)
    if not record[WRAPPED]:
        at, skipped = at + skipped, np.int64(0)
    if file < 0:
        sum_of_all, _, _ = _sum_letters(block, at, block.shape[0], skipped, left)
        return sum_of_all, True
    while left > 0:
        held = read_at(file, at, block, 0, min(block.shape[0], skipped + left))
        if held <= 0:
            return sum_of_all, False
        total, skipped, left = _sum_letters(block, 0, held, skipped, left)
        sum_of_all += total
        at += held
    return sum_of_all, True


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


@jit_no_alloc
def split_name(raw: Any, begin: Any, end: Any) -> Any:
    """Return where the name that mates share ends, and the number of the mate; 0 for none."""
    if end - begin >= 2 and raw[end - 2] == SLASH and ONE <= raw[end - 1] <= NINE:
        return end - 2, raw[end - 1] - ZERO
    at = end + 1
    if at + 3 < raw.shape[0] and raw[at + 1] == COLON and raw[at + 3] == COLON:
        is_number = raw[end] != NEWLINE and ONE <= raw[at] <= NINE
        if is_number and (raw[at + 2] == NO or raw[at + 2] == YES):
            return end, raw[at] - ZERO
    return end, 0


@jit_no_alloc
def find_other_name(raw: Any, table: Any, other_raw: Any, other_table: Any, mates: Any) -> Any:
    """Return the first row in which two tables have other names, up to the numbers of mates.

    raw    uint8[size]
    table  int64[n, 6], as in `records`
    mates  whether the numbers must be 1 and 2; one that is missing fits

    Where the names of all rows that both have are equal, the length of the shorter is returned.
    """
    count = min(table.shape[0], other_table.shape[0])
    for i in range(count):
        one, two = table[i, NAME], other_table[i, NAME]
        end, first = split_name(raw, one, table[i, NAME_END])
        other_end, second = split_name(other_raw, two, other_table[i, NAME_END])
        if end - one != other_end - two or (mates and (first > 1 or second == 1)):
            return i
        # A loop that may end early becomes no vector instructions.
        difference = np.uint8(0)
        for k in range(end - one):
            difference |= raw[one + k] ^ other_raw[two + k]
        if difference != 0:
            return i
    return count


@jit_no_alloc
def find_offsets(raw: Any, begins: Any, ends: Any, chosen: Any, offsets: Any) -> Any:
    """Find where records begin that are copied one after the other; return their bytes.

    begins   int64[n]      where each record begins in the text
    ends     int64[n]      and ends; the line end of the last one is added where it has none
    chosen   int64[k]      numbers of the records
    offsets  int64[k + 1]  takes where they begin, and the end
    """
    offsets[0] = 0
    for i in range(chosen.shape[0]):
        begin, end = begins[chosen[i]], ends[chosen[i]]
        has_end = end > begin and raw[end - 1] == NEWLINE
        offsets[i + 1] = offsets[i] + end - begin + (not has_end)
    return offsets[chosen.shape[0]]


@jit_no_alloc
def copy_records(raw: Any, begins: Any, ends: Any, chosen: Any, offsets: Any, out: Any) -> None:
    """Copy records of a text to `out`; see `find_offsets`."""
    for i in range(chosen.shape[0]):
        begin, size = begins[chosen[i]], ends[chosen[i]] - begins[chosen[i]]
        copy_bytes(out, offsets[i], raw, begin, size)
        if offsets[i + 1] > offsets[i] + size:
            out[offsets[i] + size] = NEWLINE


@jit_no_alloc
def trim_records(out: Any, offsets: Any, kept: Any) -> None:
    """Keep int64[k, 2] windows of bases and qualities; the records move together."""
    to = stop = 0
    for k in range(kept.shape[0]):
        at, stop = stop, offsets[k + 1]
        offsets[k] = to
        is_fasta = out[at] == GREATER
        # Lines of names, and of what belongs to them, follow each other in turn.
        for is_bases in (True, False):
            if at < stop:
                end = line_end(out, at) + 1
                copy_bytes(out, to, out, at, end - at)
                at, to = _trim_lines(
                    out, end, stop, kept[k, 0], kept[k, 1], is_bases, is_fasta, to + end - at
                )
    offsets[kept.shape[0]] = to


@jit_no_alloc
def _trim_lines(
    out: Any, at: Any, stop: Any, begin: Any, end: Any, is_bases: Any, is_fasta: Any, to: Any
) -> Any:
    """Move letters [begin, end) of the lines of bases, or of qualities, at `at` to out[to:].

    Lines of which nothing stays are left out, but for one where nothing stays at all. Returns where
    the lines end, before and after.
    """
    first, before, letters_end = to, 0, at
    while at < stop and not (is_bases and not is_fasta and out[at] == PLUS):
        after = line_end(out, at) + 1
        letters_end = _letters_end(out, at, after - 1, is_fasta)
        left, right = max(at, at + begin - before), min(letters_end, at + end - before)
        before += letters_end - at
        at = after
        if left < right:
            copy_bytes(out, to, out, left, right - left)
            copy_bytes(out, to + right - left, out, letters_end, after - letters_end)
            to += right - left + after - letters_end
    if to == first:
        copy_bytes(out, to, out, letters_end, at - letters_end)
        to += at - letters_end
    return at, to


@jit_no_alloc
def mask_records(out: Any, offsets: Any, which: Any, starts: Any, ends: Any) -> None:
    """Write N over windows of bases: [starts[i], ends[i]) of record which[i]."""
    for i in range(which.shape[0]):
        at, stop = offsets[which[i]], offsets[which[i] + 1]
        is_fasta = out[at] == GREATER
        at, before = line_end(out, at) + 1, 0
        while at < stop and before < ends[i] and not (not is_fasta and out[at] == PLUS):
            end = line_end(out, at)
            letters_end = _letters_end(out, at, end, is_fasta)
            for j in range(
                max(at, at + starts[i] - before), min(letters_end, at + ends[i] - before)
            ):
                out[j] = ANY_BASE
            before += letters_end - at
            at = end + 1


@jit_no_alloc
def _letters_end(out: Any, at: Any, end: Any, is_fasta: Any) -> Any:
    return end_of_bases(out, at, end) if is_fasta else trimmed(out, at, end)
