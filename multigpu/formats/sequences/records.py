"""Record borders: bytes of FASTQ or FASTA to records. Pure functions over arrays.

A table of records is int64[n, 5]: where the name begins, where it ends, where the sequence begins,
how many bases it has, where the qualities begin (-1 for FASTA). Sequences and qualities that stand
on several lines are moved together within the bytes, so every record is two plain slices.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit, lean
from multigpu.kernels.compiled.native import copy_bytes, find_byte

NAME, NAME_END, BASES, LENGTH, QUALITY = range(5)
NEWLINE, RETURN = 10, 13
AT, GREATER, PLUS, SPACE, TAB = ord("@"), ord(">"), ord("+"), ord(" "), ord("\t")
HIGHEST_QUALITY = 126


class Fault(IntEnum):
    """Why parsing stopped before the end of the bytes."""

    NONE = 0
    INCOMPLETE = 1  # the record goes on behind the bytes
    NO_HEADER = 2
    NO_PLUS = 3
    LENGTHS = 4
    QUALITY = 5


@dataclass(frozen=True)
class Parsed:
    """The records that begin before a border, and where and why parsing stopped.

    stop    where the next record begins, or the one with the fault
    where   the byte of the fault (QUALITY), or the length of the qualities (LENGTHS)
    """

    table: NDArray[np.int64]
    stop: int
    fault: Fault
    where: int

    @staticmethod
    def none(stop: int) -> "Parsed":
        """No records."""
        return Parsed(np.empty((0, 5), np.int64), stop, Fault.NONE, 0)


def parse(
    raw: NDArray[np.uint8], begin: int, border: int, layout: str, *, final: bool, offset: int
) -> Parsed:
    """Parse the records that begin in [begin, border); `begin` is a record's first byte.

    raw     uint8[n], changed where records stand on several lines
    final   nothing comes behind the bytes, so an incomplete record is what it looks like
    offset  the quality character that means 0
    """
    if layout == "fastq":
        table, stop, fault, where = _fastq(raw, begin, border, final, offset)
    else:
        table, stop, fault, where = _fasta(raw, begin, border, final)
    return Parsed(table, stop, Fault(fault), where)


def pieces(
    raw: NDArray[np.uint8], begin: int, border: int, overlap: int, final: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], bool] | None:
    """FASTA: the records, and pieces of records, whose bases stand in [begin, border).

    Returns the table, how many bases of each piece stand there, and whether the first piece goes on
    from a record that began before. The last one reaches `overlap` bases over the border if its
    record does; None where they are not all in `raw` (and `final` does not say that this is all).
    """
    table, own, lead, complete = _pieces(raw, begin, border, overlap, final)
    return (table, own, bool(lead)) if complete else None


def first_record(raw: NDArray[np.uint8], begin: int) -> int:
    """Where the first FASTQ record at or after the line start `begin` seems to begin, or -1.

    Certain where records have four lines; wrapped ones can mislead it.
    """
    return int(_first_record(raw, begin))


def find_newline(raw: NDArray[np.uint8], begin: int) -> int:
    """The first newline at or after `begin`, or -1."""
    return int(_find_newline(raw, begin))


def lowest_outside(values: NDArray[np.uint8], low: int) -> int:
    """The first position of a quality character below `low` or above '~', or -1."""
    outside = np.flatnonzero((values < low) | (values > HIGHEST_QUALITY))
    return int(outside[0]) if len(outside) else -1


def set_offsets(table: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
    """Where each record's bases begin among all of them, and their number: offsets int64[n + 1]."""
    offsets[0] = 0
    np.cumsum(table[:, LENGTH], out=offsets[1:])


@jit
def sums(raw: Any, starts: Any, lengths: Any) -> Any:
    """int64[n]: the sum of the bytes of every window raw[start : start + length]."""
    out = np.empty(starts.shape[0], np.int64)
    for i in range(starts.shape[0]):
        total = 0
        for byte in raw[starts[i] : starts[i] + lengths[i]]:
            total += byte
        out[i] = total
    return out


@jit
def gather(raw: Any, table: Any, letters: Any) -> None:
    """All bases one after the other: letters uint8[sum of lengths]."""
    at = 0
    for i in range(table.shape[0]):
        copy_bytes(letters, at, raw, table[i, BASES], table[i, LENGTH])
        at += table[i, LENGTH]


@jit
def _line_end(raw: Any, start: Any) -> Any:
    """The newline of the line that begins at `start`, or the end of the bytes."""
    end = find_byte(raw, start, raw.shape[0], NEWLINE)
    return raw.shape[0] if end < 0 else end


@jit
def _find_newline(raw: Any, start: Any) -> Any:
    return find_byte(raw, start, raw.shape[0], NEWLINE)


@jit
def _trimmed(raw: Any, start: Any, end: Any) -> Any:
    """`end` without the carriage return before it, if the line ends there."""
    if end > start and raw[end - 1] == RETURN and (end == raw.shape[0] or raw[end] == NEWLINE):
        return end - 1
    return end


@lean
def end_of_name(raw: Any, start: Any, end: Any) -> Any:
    for i in range(start, end):
        if raw[i] == SPACE or raw[i] == TAB:
            return i
    return end


@jit
def _skip_blank(raw: Any, at: Any) -> Any:
    while at < raw.shape[0] and (raw[at] == NEWLINE or raw[at] == RETURN):
        at += 1
    return at


@jit
def _first_record(raw: Any, at: Any) -> Any:
    size = raw.shape[0]
    while at < size:
        end = _line_end(raw, at)
        # A quality line may begin with @, but then a header follows, which begins with it too.
        if raw[at] == AT and end + 1 < size and raw[end + 1] != AT:
            return at
        at = end + 1
    return -1


@jit
def _added(table: Any, count: Any) -> Any:
    if count < table.shape[0]:
        return table
    larger = np.empty((2 * count, 5), np.int64)
    larger[:count] = table
    return larger


@jit
def _joined(raw: Any, start: Any, stop: Any) -> Any:
    """Moves the lines in [start, stop) together to `start`; how many letters they have."""
    at = start
    line = start
    while line < stop:
        end = min(_line_end(raw, line), stop)
        length = _trimmed(raw, line, end) - line
        if at != line:
            copy_bytes(raw, at, raw, line, length)
        at += length
        line = end + 1
    return at - start


@jit
def _fasta(raw: Any, begin: Any, border: Any, final: Any) -> Any:
    size = raw.shape[0]
    table, count = np.empty((256, 5), np.int64), 0
    at = _skip_blank(raw, begin)
    while at < border and at < size:
        if raw[at] != GREATER:
            return table[:count], at, Fault.NO_HEADER.value, at
        end = _line_end(raw, at)
        stop = end + 1
        while stop < size and raw[stop] != GREATER:
            stop = _line_end(raw, stop) + 1
        if stop >= size and not final:
            return table[:count], at, Fault.INCOMPLETE.value, at
        name_end = end_of_name(raw, at + 1, _trimmed(raw, at + 1, end))
        table = _added(table, count)
        first = min(end + 1, size)
        table[count, NAME], table[count, NAME_END] = at + 1, name_end
        table[count, BASES], table[count, QUALITY] = first, -1
        table[count, LENGTH] = _joined(raw, first, min(stop, size))
        count += 1
        at = min(stop, size)
    return table[:count], at, Fault.NONE.value, at


@jit
def _letters_in(raw: Any, start: Any, stop: Any) -> Any:
    """How many letters the lines in [start, stop) have."""
    letters = 0
    while start < stop:
        end = min(_line_end(raw, start), stop)
        letters += _trimmed(raw, start, end) - start
        start = end + 1
    return letters


@jit
def _record_end(raw: Any, at: Any) -> Any:
    """The next line that begins with > at or after the line start `at`, or the end of the bytes."""
    size = raw.shape[0]
    while at < size and raw[at] != GREATER:
        at = _line_end(raw, at) + 1
    return min(at, size)


@jit
def _lead_begin(raw: Any, begin: Any) -> Any:
    """Where the sequence goes on at `begin`: behind the header line if `begin` is in one."""
    line = begin
    while line > 0 and raw[line - 1] != NEWLINE:
        line -= 1
    if line < begin and raw[line] == GREATER:
        return min(_line_end(raw, begin) + 1, raw.shape[0])
    return begin


@jit
def _pieces(raw: Any, begin: Any, border: Any, overlap: Any, final: Any) -> Any:
    size = raw.shape[0]
    table, count = np.empty((256, 5), np.int64), 0
    own = np.empty(256, np.int64)
    if border >= size and not final:
        return table[:0], own[:0], False, False
    border = min(border, size)
    at = _lead_begin(raw, begin) if begin else _skip_blank(raw, 0)
    lead = at < border and not (raw[at] == GREATER and (at == 0 or raw[at - 1] == NEWLINE))
    first = lead
    while at < border:
        name, name_end = at, at
        if not first:
            end = _line_end(raw, at)
            name, name_end = at + 1, end_of_name(raw, at + 1, _trimmed(raw, at + 1, end))
            at = min(end + 1, size)
            if end >= size and not final:
                return table[:count], own[:count], lead, False
        line = at if not first or at == 0 or raw[at - 1] == NEWLINE else _line_end(raw, at) + 1
        stop = _record_end(raw, line)
        table = _added(table, count)
        if count == own.shape[0]:
            own = np.append(own, np.empty_like(own))
        reach = stop
        inside = _letters_in(raw, at, min(stop, max(border, at)))
        if stop > border:
            reach = _reach(raw, max(border, at), stop, overlap)
            if stop >= size and reach >= stop and not final:
                return table[:count], own[:count], lead, False
        table[count, NAME], table[count, NAME_END] = name, name_end
        table[count, BASES], table[count, QUALITY] = at, -1
        table[count, LENGTH] = _joined(raw, at, reach)
        own[count] = inside
        count += 1
        at, first = stop, False
    return table[:count], own[:count], lead, True


@jit
def _reach(raw: Any, start: Any, stop: Any, letters: Any) -> Any:
    """Where in [start, stop) so many letters have been passed, or `stop`."""
    while start < stop:
        end = min(_line_end(raw, start), stop)
        here = _trimmed(raw, start, end) - start
        if here >= letters:
            return start + letters
        letters -= here
        start = end + 1
    return stop


@jit
def _fastq(raw: Any, begin: Any, border: Any, final: Any, offset: Any) -> Any:
    size = raw.shape[0]
    table, count = np.empty((256, 5), np.int64), 0
    at = _skip_blank(raw, begin)
    while at < border and at < size:
        if raw[at] != AT:
            return table[:count], at, Fault.NO_HEADER.value, at
        end = _line_end(raw, at)
        bases = end + 1
        plus, letters, lines = _sequence(raw, bases)
        if plus >= size:
            return table[:count], at, Fault.INCOMPLETE.value, at
        if raw[plus] != PLUS:
            return table[:count], at, Fault.NO_PLUS.value, plus
        quality = _line_end(raw, plus) + 1
        stop, found = _qualities(raw, quality, letters, lines)
        if found < letters and stop >= size and (not final or raw[size - 1] != NEWLINE):
            return table[:count], at, Fault.INCOMPLETE.value, at
        if stop >= size and not final:  # the line may go on
            return table[:count], at, Fault.INCOMPLETE.value, at
        if found != letters:
            return table[:count], at, Fault.LENGTHS.value, found
        table = _added(table, count)
        table[count, NAME] = at + 1
        table[count, NAME_END] = end_of_name(raw, at + 1, _trimmed(raw, at + 1, end))
        table[count, BASES], table[count, LENGTH] = bases, letters
        table[count, QUALITY] = min(quality, size)
        if lines > 1:
            _joined(raw, bases, plus)
            _joined(raw, quality, min(stop, size))
        if any_outside(raw, quality, letters, offset):
            end = _line_end(raw, quality)
            if end < quality + letters:  # the line end at the right place was that of a later line
                found = _trimmed(raw, quality, end) - quality
                return table[:count], at, Fault.LENGTHS.value, found
            return table[: count + 1], at, Fault.QUALITY.value, at
        count += 1
        at = _skip_blank(raw, min(stop, size))
    return table[:count], at, Fault.NONE.value, at


@jit
def _sequence(raw: Any, start: Any) -> Any:
    """The lines from `start` to the one that begins with +: (its start, letters, lines).

    A line that begins with @ ends the search too: it is no sequence.
    """
    size = raw.shape[0]
    letters = lines = 0
    at = start
    while at < size and raw[at] != PLUS and raw[at] != AT:
        end = _line_end(raw, at)
        letters += _trimmed(raw, at, end) - at
        lines += 1
        at = end + 1
    return at, letters, lines


@jit
def _qualities(raw: Any, start: Any, letters: Any, lines: Any) -> Any:
    """The end of the quality lines and how many letters they have.

    One line of sequence has one line of qualities; several have as many as are needed.
    """
    size = raw.shape[0]
    if lines <= 1:
        end = start + letters
        if end >= size or raw[end] != NEWLINE:  # else the usual case: no need to look for it
            end = _line_end(raw, min(start, size))
        return end + 1, _trimmed(raw, min(start, size), end) - min(start, size)
    found, at = 0, start
    while at < size and found < letters:
        end = _line_end(raw, at)
        found += _trimmed(raw, at, end) - at
        at = end + 1
    return at, found


@lean
def any_outside(raw: Any, start: Any, count: Any, low: Any) -> Any:
    """Whether some quality is below `low` or above '~'."""
    span = np.uint8(HIGHEST_QUALITY - low)
    worst = np.uint8(0)
    for byte in raw[start : start + count]:
        worst = max(worst, np.uint8(byte - np.uint8(low)))
    return worst > span
