"""Lines of a table, made a column at a time.

Each function writes a column of n rows to `out`, row i at ends[i], and sets ends[i] behind it.
"""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc

MINUS, ZERO = b"-0"


@jit_no_alloc
def put_texts(raw: Any, begins: Any, which: Any, out: Any, ends: Any) -> None:
    """Write texts: of row i raw[begins[k] : begins[k + 1]], where k is which[i]."""
    for i in range(ends.shape[0]):
        at = ends[i]
        for j in range(begins[which[i]], begins[which[i] + 1]):
            out[at] = raw[j]
            at += 1
        ends[i] = at


@jit_no_alloc
def add_digits(values: Any, lengths: Any) -> None:
    """Add to each length how many letters the int64 of the row takes."""
    for i in range(values.shape[0]):
        lengths[i] += _letters(values[i])


@jit_no_alloc
def put_numbers(values: Any, out: Any, ends: Any) -> None:
    """Write int64 as decimal numbers."""
    for i in range(values.shape[0]):
        left, at = abs(values[i]), ends[i]
        if values[i] < 0:
            out[at] = MINUS
        ends[i] = at = at + _letters(values[i])
        while left > 9:
            at -= 1
            out[at] = ZERO + left % 10
            left //= 10
        out[at - 1] = ZERO + left


@jit_no_alloc
def _letters(value: Any) -> Any:
    letters, left = 1 + (value < 0), abs(value)
    while left > 9:
        left //= 10
        letters += 1
    return letters
