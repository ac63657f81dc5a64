"""FASTA: bytes, or spans of a file, to tables of records and their bases."""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import copy_bytes, find_byte
from multigpu.kernels.compiled.text.lines import (
    GREATER,
    NEWLINE,
    count_bases,
    end_of_bases,
    end_of_name,
    is_blank,
    line_end,
    trimmed,
)
from multigpu.kernels.compiled.text.records import (
    BASES,
    BLOCK_FULL,
    LENGTH,
    NAME,
    NAME_END,
    QUALITY,
    TABLE_FULL,
    UNREADABLE,
    WRAPPED,
    Fault,
    refill,
)


@jit_no_alloc
def parse(raw: Any, at: Any, table: Any) -> Any:
    """Fill a table with the records from `at` on, where one begins.

    Returns the number of records; where the next one begins, at the end of the bytes, or the one at
    fault; and why it stopped: NONE, NAME or TABLE_FULL.
    """
    size, count = raw.shape[0], 0
    while at < size:
        if count == table.shape[0]:
            return count, at, TABLE_FULL
        row, end = table[count], line_end(raw, at)
        name_end = end_of_name(raw, at + 1, trimmed(raw, at + 1, end))
        if name_end < 0:
            return count, at, Fault.NAME.value
        _set_row(at + 1, name_end, row)
        begin = min(end + 1, size)
        at = _record_end(raw, begin)
        row[BASES], row[LENGTH] = begin, count_bases(raw, begin, at)
        count += 1
    return count, at, Fault.NONE.value


@jit_no_alloc
def _set_row(name: Any, name_end: Any, row: Any) -> None:
    row[NAME], row[NAME_END] = name, name_end
    row[LENGTH], row[QUALITY], row[WRAPPED] = 0, -1, 1


@jit_no_alloc
def _record_end(raw: Any, line: Any) -> Any:
    """Return where the next header line begins, at or after `line`, or the end of the bytes."""
    at = find_byte(raw, line, raw.shape[0], GREATER)
    while at > line and raw[at - 1] != NEWLINE:
        at = find_byte(raw, at + 1, raw.shape[0], GREATER)
    return at if at >= 0 else raw.shape[0]


@jit_no_alloc
def read(
    file: Any, begin: Any, line_begins: Any, border: Any, size: Any, overlap: Any, block: Any,
    letters: Any, bases: Any, table: Any, count: Any, beyond: Any,
) -> Any:  # fmt: skip
    """Fill a table with the records and pieces of a file that stand in [begin, border).

    The last piece reaches `overlap` bases over the border if its record does. A block is read, and
    its bases are copied, while it is in the cache of a core, without the GIL.

    file         an open file's descriptor; `size` is where it ends
    line_begins  whether a line begins at `begin`; if none does, or no header, the first piece
                 continues a record, and its name is empty and stands at `begin`
    block        uint8[n]        is overwritten; it has to hold the longest name
    letters      uint8[n]        takes the bases, from letters[bases] on
    table        int64[rows, 6]  takes positions in the file, and BASES in `letters`
    count        number of pieces in the table; `beyond` bases of the last stand after the border

    Returns the number of pieces; where the letters end; how many bases of the last piece stand
    after the border; the position in the file where it stopped; whether a line begins there; and
    why: NONE, UNREADABLE, NAME, TABLE_FULL or BLOCK_FULL. After the last two it is called again
    from there.
    """
    origin, at, held, in_header = begin, 0, 0, False
    while True:
        origin += at
        held, is_complete = refill(file, origin, size, block, at, held)
        if not is_complete:
            return count, bases, beyond, origin + held, line_begins, UNREADABLE
        at, final, raw = 0, origin + held >= size, block[:held]
        if in_header:
            at, in_header = _next_line(raw, at)
        # White space belongs to a line end or not: it waits for what follows.
        stop = held
        while not final and stop > 0 and raw[stop - 1] != NEWLINE and is_blank(raw[stop - 1]):
            stop -= 1
        while at < stop:
            is_header = line_begins and raw[at] == GREATER
            inside = origin + at < border
            if not inside and (is_header or count == 0 or beyond == overlap):
                return count, bases, beyond, origin + at, line_begins, Fault.NONE.value
            if is_header:
                if count == table.shape[0]:
                    return count, bases, beyond, origin + at, line_begins, TABLE_FULL
                end = line_end(raw, at)
                name_end = end_of_name(raw, at + 1, trimmed(raw, at + 1, end))
                if name_end < 0:
                    return count, bases, beyond, origin + at, line_begins, Fault.NAME.value
                if end == held and name_end >= held - 1 and not final:
                    break
                _set_row(origin + at + 1, origin + name_end, table[count])
                table[count, BASES] = bases
                count += 1
                at, in_header = _next_line(raw, name_end)
                continue
            if count == 0:
                _set_row(begin, begin, table[0])
                table[0, BASES] = bases
                count = 1
            room = size if inside else overlap - beyond
            until = min(stop, border - origin) if inside else stop
            at, line_begins, end = _copy_lines(raw, at, until, line_begins, letters, bases, room)
            table[count - 1, LENGTH] += end - bases
            beyond += 0 if inside else end - bases
            bases = end
        if final:
            return count, bases, beyond, size, line_begins, Fault.NONE.value
        if at == 0 and held == block.shape[0]:
            return count, bases, beyond, origin, line_begins, BLOCK_FULL


@jit_no_alloc
def _next_line(raw: Any, at: Any) -> Any:
    """Return where the next line begins, or the end of the bytes, and whether that is not seen."""
    end = find_byte(raw, at, raw.shape[0], NEWLINE)
    return (raw.shape[0], True) if end < 0 else (end + 1, False)


@jit_no_alloc
def _copy_lines(
    raw: Any, at: Any, stop: Any, line_begins: Any, letters: Any, bases: Any, room: Any
) -> Any:
    """Copy up to `room` letters before a header; return place, if a line begins, letters' end."""
    letters_stop = bases + room
    while at < stop and not (line_begins and raw[at] == GREATER):
        end = find_byte(raw, at, stop, NEWLINE)
        line_begins = end >= 0
        if not line_begins:
            end = stop
        here = end_of_bases(raw, at, end) - at
        if bases + here > letters_stop:
            copy_bytes(letters, bases, raw, at, letters_stop - bases)
            return at + letters_stop - bases, False, letters_stop
        copy_bytes(letters, bases, raw, at, here)
        bases += here
        at = end + line_begins
    return at, line_begins, bases
