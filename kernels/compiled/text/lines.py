"""Lines of a text in uint8[n]: where they end, and the letters on them without line ends.

A line ends with LF or CRLF; the last one may have no end.
"""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import copy_bytes, find_byte
from multigpu.kernels.compiled.text import LONGEST_NAME

NEWLINE, RETURN = 10, 13
AT, GREATER, PLUS, SPACE, TAB = ord("@"), ord(">"), ord("+"), ord(" "), ord("\t")


@jit_no_alloc
def line_end(raw: Any, start: Any) -> Any:
    """Return the newline of the line that begins at `start`, or the end of the bytes."""
    end = find_byte(raw, start, raw.shape[0], NEWLINE)
    return raw.shape[0] if end < 0 else end


@jit_no_alloc
def trimmed(raw: Any, start: Any, end: Any) -> Any:
    """Return `end` without the carriage return before it, if the line ends there."""
    if end > start and raw[end - 1] == RETURN and (end == raw.shape[0] or raw[end] == NEWLINE):
        return end - 1
    return end


@jit_no_alloc
def end_of_name(raw: Any, start: Any, end: Any) -> Any:
    """Return the first blank or tab, or `end`; -1 for names too long or with control signs."""
    for i in range(start, min(end, start + LONGEST_NAME + 1)):
        byte = raw[i]
        if byte <= SPACE or byte == 0x7F:
            return i if byte in (SPACE, TAB) else -1
        if byte == 0xC2 and i + 1 < end and 0x80 <= raw[i + 1] < 0xA0:
            return -1
    return end if end - start <= LONGEST_NAME else -1


@jit_no_alloc
def is_blank(byte: Any) -> Any:
    """Whether a byte is white space or ends a line."""
    return byte == SPACE or TAB <= byte <= RETURN


@jit_no_alloc
def end_of_bases(raw: Any, start: Any, end: Any) -> Any:
    """Return `end` without the white space before it, if nothing else follows on the line."""
    after = end
    while after < raw.shape[0] and raw[after] != NEWLINE and is_blank(raw[after]):
        after += 1
    if after == raw.shape[0] or raw[after] == NEWLINE:
        while end > start and is_blank(raw[end - 1]):
            end -= 1
    return end


@jit_no_alloc
def skip_blank(raw: Any, at: Any) -> Any:
    """Return the first byte at or after `at` that is no white space and ends no line."""
    while at < raw.shape[0] and is_blank(raw[at]):
        at += 1
    return at


@jit_no_alloc
def count_bases(raw: Any, start: Any, stop: Any) -> Any:
    """Return how many bases the lines of FASTA in [start, stop) have."""
    letters = 0
    while start < stop:
        end = min(line_end(raw, start), stop)
        letters += end_of_bases(raw, start, end) - start
        start = end + 1
    return letters


@jit_no_alloc
def copy_letters(letters: Any, at: Any, raw: Any, start: Any, count: Any, fasta: Any) -> None:
    """Copy `count` letters of the lines from `start` on to letters[at:], without line ends.

    fasta  whether lines end at their last base, else at a line end
    """
    while count > 0:
        end = line_end(raw, start)
        stop = end_of_bases(raw, start, end) if fasta else trimmed(raw, start, end)
        here = min(count, stop - start)
        copy_bytes(letters, at, raw, start, here)
        at, count, start = at + here, count - here, end + 1
