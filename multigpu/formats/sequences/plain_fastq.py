"""Plain FASTQ, four lines a record, from a file to letters in one go.

A block is read, looked through and its bases moved on while it is in a core's cache, and nothing
holds the interpreter meanwhile: a byte of the file passes through memory once, a base twice.

What is not plain (wrapped or blank lines, CRLF, anything wrong) is only noticed; `reader` then
reads the span again in the way that knows of everything.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.records import (
    AT,
    BASES,
    LENGTH,
    NAME,
    NAME_END,
    NEWLINE,
    PLUS,
    QUALITY,
    RETURN,
    any_outside,
    end_of_name,
)
from multigpu.kernels.compiled.jit import jit, lean
from multigpu.kernels.compiled.native import copy_bytes, find_byte, read_at

BLOCK = 1 << 18  # bytes: half of a small core's second-level cache
FIRST_ROWS = 256  # of a table


def read(
    file: int, begin: int, border: int, low: int, letters: NDArray[np.uint8], size: int = BLOCK
) -> tuple[NDArray[np.int64], int] | None:
    """The records that begin in [begin, border) of an open file; `begin` is a record's first byte.

    file     a descriptor
    low      the quality character that means 0
    letters  uint8[n], takes the bases one after the other
    size     of a block; longer header lines are not plain

    Returns their table as in `records`, with positions in the file, BASES in `letters`; and where
    the next record begins. None where it is not plain, or where the letters have too little room.
    """
    block, table = np.empty(size, np.uint8), np.empty((FIRST_ROWS, 5), np.int64)
    count, bases, at = 0, 0, begin
    while at < border:
        more, bases, at = _read(file, at, border, low, letters, bases, table[count:], block)
        if more < 0:
            return None
        count += more
        if at < border:  # there are more; as many for each byte as up to here
            larger = np.empty((count * (border - begin) // (at - begin) * 9 // 8 + 8, 5), np.int64)
            larger[:count] = table[:count]
            table = larger
    return table[:count], at


def first_record(file: int, begin: int, border: int, size: int = BLOCK) -> int:
    """The first record in [begin, border) behind the first newline there, as it seems; or -1."""
    return int(_first_record(file, begin, border, np.empty(size, np.uint8)))


@jit
def gather(file: Any, begins: Any, ends: Any, out: Any) -> Any:
    """Windows of an open file one after the other, uint8[sum of lengths]; whether it has them."""
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


@jit
def sums(file: Any, starts: Any, lengths: Any) -> Any:
    """int64[n]: the sum of the bytes of every window of an open file; -1 where it ends before."""
    block = np.empty(BLOCK, np.uint8)
    out = np.zeros(starts.shape[0], np.int64)
    for i in range(starts.shape[0]):
        at, stop = starts[i], starts[i] + lengths[i]
        while at < stop:
            held = read_at(file, at, block, 0, min(BLOCK, stop - at))
            if held <= 0:
                out[i] = -1
                break
            for byte in block[:held]:
                out[i] += byte
            at += held
    return out


@jit
def _first_record(file: Any, position: Any, border: Any, block: Any) -> Any:
    line_begins, candidate = False, -1
    while position < border:
        held = read_at(file, position, block, 0, block.shape[0])
        if held <= 0:
            return -1
        at = 0
        while at < held:
            if line_begins:
                # A quality line may begin with @, but then a header follows, which does too.
                if candidate >= 0 and block[at] != AT:
                    return candidate
                candidate = position + at if block[at] == AT else -1
            end = find_byte(block, at, held, NEWLINE)
            line_begins = end >= 0
            at = end + 1 if line_begins else held
        position += held
    return -1


# A view is (where in the file the block begins, what of it is not looked at yet begins, and ends).


@lean
def _read(
    file: Any, begin: Any, border: Any, low: Any, letters: Any, bases: Any, table: Any, block: Any
) -> Any:
    """As many records as the table has rows for: (rows, the letters' end, where it stopped).

    letters: those before `bases` are there already. -1 rows: something is not plain.
    """
    count = 0
    view = (begin, 0, max(0, read_at(file, begin, block, 0, block.shape[0])))
    while view[0] + view[1] < border and count < table.shape[0]:
        view, end = _line(file, block, view, AT)
        if end < 0 or block[end - 1] == RETURN:
            return -1, bases, 0
        origin, at, held = view
        table[count, NAME] = origin + at + 1
        table[count, NAME_END] = origin + end_of_name(block, at + 1, end)
        first = bases
        view, bases = _sequence(file, block, (origin, end + 1, held), letters, first)
        if bases < 0:
            return -1, bases, 0
        view, end = _line(file, block, view, PLUS)
        if end < 0:
            return -1, bases, 0
        origin, at, held = view
        table[count, BASES], table[count, LENGTH] = first, bases - first
        table[count, QUALITY] = origin + end + 1
        view, good = _qualities(file, block, (origin, end + 1, held), bases - first, low)
        if not good:
            return -1, bases, 0
        count += 1
    return count, bases, view[0] + view[1]


@lean
def _more(file: Any, block: Any, view: Any) -> Any:
    """What is left of the block comes to its front, and more bytes of the file behind it."""
    origin, at, held = view
    copy_bytes(block, 0, block, at, held - at)
    count = read_at(file, origin + held, block, held - at, block.shape[0] - (held - at))
    return origin + at, 0, held - at + max(0, count)


@lean
def _line(file: Any, block: Any, view: Any, mark: Any) -> Any:
    """A line, whole in the block: the view of its begin, and its end; -1 if it has not the mark."""
    end = find_byte(block, view[1], view[2], NEWLINE)
    if end < 0:
        view = _more(file, block, view)
        end = find_byte(block, 0, view[2], NEWLINE)
    if end >= 0 and block[view[1]] != mark:
        end = -1
    return view, end


@lean
def _sequence(file: Any, block: Any, view: Any, letters: Any, first: Any) -> Any:
    """A line of letters, moved to letters[first:]: the view behind it, and where they end; or -1.

    The line may be longer than the block.
    """
    bases, end = first, -1
    while end < 0:
        if view[1] == view[2]:
            view = _more(file, block, view)
        origin, at, held = view
        end = find_byte(block, at, held, NEWLINE)
        stop = held if end < 0 else end
        if at == held or bases + stop - at > letters.shape[0]:
            return view, -1
        copy_bytes(letters, bases, block, at, stop - at)
        bases += stop - at
        view = (origin, stop, held)
    view = (view[0], view[1] + 1, view[2])
    return view, -1 if bases > first and _odd(letters[first], letters[bases - 1]) else bases


@lean
def _odd(first: Any, last: Any) -> Any:
    """Whether a line that begins and ends so is no sequence, or ends with CRLF."""
    return first in (PLUS, AT) or last == RETURN


@lean
def _qualities(file: Any, block: Any, view: Any, left: Any, low: Any) -> Any:
    """So many qualities and the end of their line: the view of the next line, and if all is good.

    A blank line behind them is not.
    """
    while left:
        if view[1] == view[2]:
            view = _more(file, block, view)
        origin, at, held = view
        here = min(left, held - at)
        if here == 0 or any_outside(block, at, here, low):
            return view, False
        view = (origin, at + here, held)
        left -= here
    if view[1] + 1 >= view[2]:
        view = _more(file, block, view)
    origin, at, held = view
    if at == held:  # the file ends here, unless it cannot be read
        return view, read_at(file, origin + held, block, 0, 1) == 0
    good = block[at] == NEWLINE
    at += 1
    blank = at < held and (block[at] == NEWLINE or block[at] == RETURN)
    return (origin, at, held), good and not blank
