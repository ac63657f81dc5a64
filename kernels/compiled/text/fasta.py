"""FASTA: bytes to tables of records, and of pieces of records, that stand in a span."""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import find_byte
from multigpu.kernels.compiled.text.lines import (
    GREATER,
    NEWLINE,
    count_letters,
    end_of_name,
    line_end,
    skip_blank,
    trimmed,
)
from multigpu.kernels.compiled.text.records import (
    BASES,
    LENGTH,
    NAME,
    NAME_END,
    QUALITY,
    TABLE_FULL,
    WRAPPED,
    Fault,
)


@jit_no_alloc
def parse_pieces(
    raw: Any, begin: Any, border: Any, overlap: Any, final: Any, table: Any, inside: Any
) -> Any:
    """Fill a table with the records, and pieces of records, whose bases stand in [begin, border).

    The last piece reaches `overlap` bases over the border if its record does.

    inside  int64[rows]  takes how many bases of each piece stand before the border

    Returns the number of pieces, whether the first one continues a record that began before, and
    why it stopped: INCOMPLETE where the bytes end before what belongs to the last piece.
    """
    size, count = raw.shape[0], 0
    if border >= size and not final:
        return 0, False, Fault.INCOMPLETE.value
    border = min(border, size)
    at = _sequence_begin(raw, begin) if begin else skip_blank(raw, 0)
    lead = at < border and not (raw[at] == GREATER and (begin == 0 or raw[at - 1] == NEWLINE))
    while at < border:
        if count == table.shape[0]:
            return count, lead, TABLE_FULL
        row, line = table[count], at
        if lead and count == 0:
            row[NAME] = row[NAME_END] = at
            if at > 0 and raw[at - 1] != NEWLINE:
                line = line_end(raw, at) + 1
        else:
            at = line = _set_name(raw, at, row)
            if raw[size - 1] != NEWLINE and at == size and not final:
                return count, lead, Fault.INCOMPLETE.value
        stop = _record_end(raw, line)
        cut = min(stop, max(border, at))
        inside[count] = count_letters(raw, at, cut)
        row[BASES], row[LENGTH] = at, inside[count]
        row[QUALITY], row[WRAPPED] = -1, 1
        if stop > border:
            reach = _pass_letters(raw, cut, stop, overlap)
            if stop >= size and reach >= stop and not final:
                return count, lead, Fault.INCOMPLETE.value
            row[LENGTH] += count_letters(raw, cut, reach)
        count += 1
        at = stop
    return count, lead, Fault.NONE.value


@jit_no_alloc
def _sequence_begin(raw: Any, begin: Any) -> Any:
    """Return where the sequence continues from `begin`, or from after the header line it is in."""
    line = begin
    while line > 0 and raw[line - 1] != NEWLINE:
        line -= 1
    if line < begin and raw[line] == GREATER:
        return min(line_end(raw, begin) + 1, raw.shape[0])
    return begin


@jit_no_alloc
def _record_end(raw: Any, line: Any) -> Any:
    """Return the first line that begins with > at or after a line, or the end of the bytes."""
    at = find_byte(raw, min(line, raw.shape[0]), raw.shape[0], GREATER)
    while at > line and raw[at - 1] != NEWLINE:
        at = find_byte(raw, at + 1, raw.shape[0], GREATER)
    return at if at >= 0 else raw.shape[0]


@jit_no_alloc
def _pass_letters(raw: Any, start: Any, stop: Any, letters: Any) -> Any:
    """Return where in [start, stop) `letters` letters have been passed, or `stop`."""
    while start < stop:
        end = min(line_end(raw, start), stop)
        here = trimmed(raw, start, end) - start
        if here >= letters:
            return start + letters
        letters -= here
        start = end + 1
    return stop


@jit_no_alloc
def _set_name(raw: Any, at: Any, row: Any) -> Any:
    """Set the name of a row from the header line at `at`; return where the next line begins."""
    end = line_end(raw, at)
    row[NAME] = at + 1
    row[NAME_END] = end_of_name(raw, at + 1, trimmed(raw, at + 1, end))
    return min(end + 1, raw.shape[0])
