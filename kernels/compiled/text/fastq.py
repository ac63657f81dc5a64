"""FASTQ: bytes, or spans of a file, to tables of records.

Sequence and qualities may stand on several lines.
"""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.text.lines import (
    AT,
    NEWLINE,
    PLUS,
    end_of_name,
    is_blank,
    line_end,
    skip_blank,
    trimmed,
)
from multigpu.kernels.compiled.text.records import (
    BASES,
    BLOCK_FULL,
    LENGTH,
    LETTERS_FULL,
    NAME,
    NAME_END,
    QUALITY,
    TABLE_FULL,
    UNREADABLE,
    WRAPPED,
    Fault,
    gather,
    refill,
)

HIGHEST_QUALITY = 126


@jit_no_alloc
def parse(raw: Any, begin: Any, border: Any, final: Any, low: Any, table: Any) -> Any:
    """Fill a table with the records that begin in [begin, border).

    final  whether nothing follows the bytes, so that an incomplete record is what it looks like
    low    the quality character that means 0

    Returns the number of records, where the next one begins or the one at fault, why it stopped (a
    `Fault` or TABLE_FULL), and for LENGTHS how many qualities there are. A record with a wrong
    quality is counted.
    """
    size, count = raw.shape[0], 0
    at = skip_blank(raw, begin)
    while at < border and at < size:
        if count == table.shape[0]:
            return count, at, TABLE_FULL, 0
        if raw[at] != AT:
            return count, at, Fault.NO_HEADER.value, 0
        end = line_end(raw, at)
        plus, letters, lines = _sequence(raw, end + 1)
        if plus >= size:
            return count, at, Fault.INCOMPLETE.value, 0
        if raw[plus] != PLUS:
            return count, at, Fault.NO_PLUS.value, 0
        quality = line_end(raw, plus) + 1
        stop, found, good, wrapped = _qualities(raw, quality, letters, lines, low, final)
        cut = found < letters and raw[size - 1] != NEWLINE
        if stop >= size and (cut or not final):
            return count, at, Fault.INCOMPLETE.value, 0
        name_end = end_of_name(raw, at + 1, trimmed(raw, at + 1, end))
        if name_end < 0:
            return count, at, Fault.NAME.value, 0
        after = skip_blank(raw, min(stop, size))
        if after >= size and not final:  # blank lines that follow belong to the record
            return count, at, Fault.INCOMPLETE.value, 0
        if quality - plus > 2 and not _repeats_name(raw, plus, at, name_end):
            return count, at, Fault.OTHER_NAME.value, 0
        if found != letters:
            return count, at, Fault.LENGTHS.value, found
        table[count, NAME], table[count, NAME_END] = at + 1, name_end
        table[count, BASES], table[count, LENGTH] = end + 1, letters
        table[count, QUALITY], table[count, WRAPPED] = min(quality, size), wrapped
        count += 1
        if not good:
            return count, at, Fault.QUALITY.value, 0
        at = after
    return count, at, Fault.NONE.value, 0


@jit_no_alloc
def _sequence(raw: Any, start: Any) -> Any:
    """Return where the line with + begins that follows the sequence, its letters and its lines.

    A line that begins with @ ends the search too: it is no sequence.
    """
    letters = lines = 0
    at = start
    while at < raw.shape[0] and raw[at] != PLUS and raw[at] != AT:
        end = line_end(raw, at)
        letters += trimmed(raw, at, end) - at
        lines += 1
        at = end + 1
    return at, letters, lines


@jit_no_alloc
def _repeats_name(raw: Any, plus: Any, header: Any, name_end: Any) -> Any:
    """Whether the line with + has no name, or the name of the header."""
    stop = end_of_name(raw, plus + 1, trimmed(raw, plus + 1, line_end(raw, plus)))
    if stop == plus + 1:
        return True
    same = stop - plus == name_end - header
    for i in range(1, stop - plus if same else 1):
        same &= raw[plus + i] == raw[header + i]
    return same


@jit_no_alloc
def _qualities(raw: Any, start: Any, letters: Any, lines: Any, low: Any, final: Any) -> Any:
    """Return where the qualities end, their number, whether all are good, and if lines are wrapped.

    There are as many lines as are needed. Of a sequence on one line these are one, unless several
    have exactly the qualities that it needs, all good, and no other line follows than a header: a
    record that lost qualities is not to take the next one for its own.
    """
    end, size = start + letters, raw.shape[0]
    # Nearly always the line ends where it should, and need not be searched for its end.
    usual = lines <= 1 and end < size and raw[end] == NEWLINE
    if usual and not any_outside(raw, start, letters, low):
        return end + 1, letters, True, False
    found, good, at = 0, True, start
    first_end, first_found, first_good = start, 0, True
    while at < size and (found < letters or at == start):
        end = line_end(raw, at)
        here = trimmed(raw, at, end) - at
        good &= not any_outside(raw, at, here, low)
        found, at = found + here, end + 1
        if first_end == start:
            first_end, first_found, first_good = at, found, good
    if lines > 1:
        return at, found, good, True
    complete = found == letters and good and (at >= size or raw[at] == AT or is_blank(raw[at]))
    if at > first_end and (complete or (at >= size and not final)):
        return at, found, good, True
    return first_end, first_found, first_good, False


@jit_no_alloc
def any_outside(raw: Any, start: Any, count: Any, low: Any) -> Any:
    """Whether some of `count` qualities are below `low` or above '~'."""
    span = np.uint8(HIGHEST_QUALITY - low)
    worst = np.uint8(0)
    for byte in raw[start : start + count]:
        worst = max(worst, np.uint8(byte - np.uint8(low)))
    return worst > span


@jit_no_alloc
def find_wrong(raw: Any, table: Any, low: Any) -> Any:
    """Return the first record with a wrong name, base or quality, or how many there are.

    raw    uint8[size]
    table  int64[n, 6], as in `records`, of records on one line; names end at their first blank or
           tab then
    low    as in `parse`
    """
    for i in range(table.shape[0]):
        begin, length, quality = table[i, NAME], table[i, LENGTH], table[i, QUALITY]
        end = end_of_name(raw, begin, table[i, NAME_END])
        if end <= begin or _any_but_letters(raw, table[i, BASES], length):
            return i
        if quality >= 0 and any_outside(raw, quality, length, low):
            return i
        table[i, NAME_END] = end
    return table.shape[0]


@jit_no_alloc
def _any_but_letters(raw: Any, start: Any, count: Any) -> Any:
    worst = np.uint8(0)
    for byte in raw[start : start + count]:
        worst = max(worst, np.uint8(np.uint8(byte | 0x20) - np.uint8(ord("a"))))
    return worst > ord("z") - ord("a")


@jit_no_alloc
def read(
    file: Any, begin: Any, border: Any, size: Any, low: Any, block: Any, letters: Any, bases: Any,
    table: Any,
) -> Any:  # fmt: skip
    """Fill a table with the records of a file that begin in [begin, border), and copy their bases.

    A block is read, parsed and its bases copied while it is in the cache of a core, and nothing
    holds the interpreter meanwhile.

    file     an open file's descriptor; `begin` is where a record begins, `size` where it ends
    low      as in `parse`
    block    uint8[n]        is overwritten; it has to hold the longest record
    letters  uint8[n]        takes the bases, from letters[bases] on
    table    int64[rows, 6]  takes positions in the file, and BASES in `letters`

    Returns the number of good records, where the letters end, where the block begins in the file,
    how many bytes of the file it holds, where the next record begins in it, why it stopped (a
    `Fault` or what follows it in `records`), and the last value of `parse`. A record with a wrong
    quality is in the table after the good ones, by its positions in the block.
    """
    count, origin, at, held = 0, begin, 0, 0
    while True:
        origin += at
        held, is_complete = refill(file, origin, size, block, at, held)
        at = 0
        if not is_complete:
            return count, bases, origin, held, 0, UNREADABLE, 0
        final = origin + held >= size  # more where the file grew and `begin` was looked for there
        found, stop, why, detail = parse(
            block[:held], 0, border - origin, final, low, table[count:]
        )
        rows = table[count : count + found - (why == Fault.QUALITY.value)]
        if bases + rows[:, LENGTH].sum() > letters.shape[0]:
            return count, bases, origin, held, 0, LETTERS_FULL, 0
        end = gather(block, rows, letters, bases)
        _place(rows, origin, bases)
        count, bases, at = count + rows.shape[0], end, stop
        cut = why == Fault.INCOMPLETE.value and not final
        if cut and at == 0 and held == block.shape[0]:
            return count, bases, origin, held, at, BLOCK_FULL, 0
        # Blank lines may go on after the block.
        complete = final or (origin + at >= border and at < held)
        if not cut and (complete or why != Fault.NONE.value):
            return count, bases, origin, held, at, why, detail


@jit_no_alloc
def _place(rows: Any, origin: Any, bases: Any) -> None:
    """Turn positions in a block into those in the file, and BASES into those in the letters."""
    for i in range(rows.shape[0]):
        rows[i, NAME] += origin
        rows[i, NAME_END] += origin
        rows[i, QUALITY] += origin
        rows[i, BASES] = bases
        bases += rows[i, LENGTH]
