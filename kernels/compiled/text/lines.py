"""Lines of a text in uint8[n]: where they end, and the letters on them without line ends.

A line ends with LF or CRLF; the last one may have no end.
"""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import copy_bytes, find_byte

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
    """Return the first space or tab in [start, end), or `end`."""
    for i in range(start, end):
        if raw[i] == SPACE or raw[i] == TAB:
            return i
    return end


@jit_no_alloc
def skip_blank(raw: Any, at: Any) -> Any:
    """Return the first byte at or after `at` that ends no line."""
    while at < raw.shape[0] and (raw[at] == NEWLINE or raw[at] == RETURN):
        at += 1
    return at


@jit_no_alloc
def count_letters(raw: Any, start: Any, stop: Any) -> Any:
    """Return how many letters the lines in [start, stop) have."""
    letters = 0
    while start < stop:
        end = min(line_end(raw, start), stop)
        letters += trimmed(raw, start, end) - start
        start = end + 1
    return letters


@jit_no_alloc
def copy_letters(letters: Any, at: Any, raw: Any, start: Any, count: Any) -> None:
    """Copy `count` letters of the lines from `start` on to letters[at:], without line ends."""
    while count > 0:
        end = line_end(raw, start)
        here = min(count, trimmed(raw, start, end) - start)
        copy_bytes(letters, at, raw, start, here)
        at, count, start = at + here, count - here, end + 1
