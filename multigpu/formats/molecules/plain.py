"""What plain records of ligands have in common, whatever the format: lines, numbers in columns.

Plain records are read and written many at once by compiled functions, which make no objects for
atoms or lines and do not hold the interpreter. What is not plain is read and written one by one, by
`molecules` and `poses`, which also say what is wrong with it. There plain records come out the
same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.autodock import Atoms
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.native import find_byte
from multigpu.kernels.compiled.text.numbers import scaled

NEWLINE, BLANK, PLUS, MINUS, POINT, ZERO = b"\n +-.0"
MOST_DIGITS = 15  # of a number: as a whole one it is exact, as is the power of ten behind it
TENS = 10.0 ** np.arange(MOST_DIGITS + 1)


@dataclass(frozen=True, eq=False)
class Plain:
    """What was read of records.

    atoms  of each; none of one that is not plain
    names  what each calls itself; empty where it does not
    named  bool[n]: whether it still says a name, if an empty one, when it is written
    bare   bool[n]: whether it lacks hydrogens
    """

    atoms: Atoms
    names: Texts
    named: NDArray[np.bool_]
    bare: NDArray[np.bool_]


# ---- lines ------------------------------------------------------------------------------------


def words(some: Sequence[bytes]) -> NDArray[np.uint8]:
    """uint8[n, longest], for `begins_with`; zeros behind the shorter ones."""
    longest = max(map(len, some))
    return np.array([list(word.ljust(longest, b"\0")) for word in some], np.uint8)


@jit
def begins_with(raw: Any, at: Any, stop: Any, words: Any) -> Any:
    """Whether raw[at:stop] begins with one of the words."""
    for i in range(words.shape[0]):
        letter = 0
        while letter < words.shape[1] and words[i, letter] != 0:
            if at + letter >= stop or raw[at + letter] != words[i, letter]:
                break
            letter += 1
        if letter == words.shape[1] or words[i, letter] == 0:
            return True
    return False


@jit
def are_lines(raw: Any, at: Any, stop: Any) -> Any:
    """Whether raw[at:stop] consists of lines, without other control characters."""
    if at == stop or raw[stop - 1] != NEWLINE:
        return False
    controls = 0
    for byte in raw[at:stop]:
        controls += (byte < BLANK) & (byte != NEWLINE)
    return controls == 0


@jit
def marked(raw: Any, words: Any) -> Any:
    """int64[n]: where the lines begin that begin with one of the words."""
    shortest = words.shape[1]
    for i in range(words.shape[0]):
        shortest = min(shortest, np.count_nonzero(words[i]))
    found, count = np.empty(raw.shape[0] // shortest + 1, np.int64), 0
    at = 0
    while 0 <= at < raw.shape[0]:
        if begins_with(raw, at, raw.shape[0], words):
            found[count] = at
            count += 1
        newline = find_byte(raw, at, raw.shape[0], NEWLINE)
        at = newline + 1 if newline >= 0 else -1
    return found[:count].copy()


@jit
def found_in(raw: Any, at: Any, stop: Any, word: Any) -> Any:
    """Where raw[at:stop] has the word first; -1: nowhere. word: `words` of one."""
    for begin in range(at, stop - word.shape[1] + 1):
        if begins_with(raw, begin, stop, word):
            return begin
    return -1


# ---- numbers in columns -----------------------------------------------------------------------


@jit
def number(raw: Any, at: Any, stop: Any) -> Any:
    """What Python's `float` gives for a decimal number with blanks around it; else NaN.

    Its digits are a whole number below 2^53, and so is the power of ten that divides it, so that
    the quotient is rounded once. Of more digits than that allows it makes NaN, too.
    """
    while at < stop and raw[at] == BLANK:
        at += 1
    while stop > at and raw[stop - 1] == BLANK:
        stop -= 1
    negative = at < stop and raw[at] == MINUS
    if negative or (at < stop and raw[at] == PLUS):
        at += 1
    whole, digits, decimals, seen_point = 0, 0, 0, False
    for byte in raw[at:stop]:
        if byte == POINT and not seen_point:
            seen_point = True
        elif ZERO <= byte <= ZERO + 9:
            whole = 10 * whole + (byte - ZERO)
            digits += 1
            decimals += seen_point
        else:
            return np.nan
    if digits == 0 or digits > MOST_DIGITS:
        return np.nan
    value = whole / TENS[decimals]
    return -value if negative else value


@jit
def put_number(out: Any, at: Any, value: Any, width: Any, decimals: Any) -> Any:
    """As `%*.*f`, if it has as many letters as the width; else False."""
    whole = scaled(abs(value), TENS[decimals])
    negative = math.copysign(1.0, value) < 0
    if whole < 0 or whole >= TENS[width - 2 if negative else width - 1]:
        return False
    last = at + width - 1
    for i in range(width):
        if i == decimals:
            out[last - i] = POINT
        elif whole > 0 or i < decimals + 2:
            out[last - i] = ZERO + whole % 10
            whole //= 10
        else:
            out[last - i] = MINUS if negative else BLANK
            negative = False
    return True
