"""Lines of a table, made a column at a time.

Columns of n rows are written to `out`, that of row i at cursors[i], which then moves to its end.
"""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc

MINUS, ZERO = b"-0"


@jit_no_alloc
def put_texts(raw: Any, begins: Any, which: Any, out: Any, cursors: Any) -> None:
    """Write text number which[i] in row i; text k is raw[begins[k] : begins[k + 1]]."""
    for i in range(cursors.shape[0]):
        at = cursors[i]
        for j in range(begins[which[i]], begins[which[i] + 1]):
            out[at] = raw[j]
            at += 1
        cursors[i] = at


@jit_no_alloc
def put_numbers(values: Any, out: Any, cursors: Any) -> None:
    """Write int64 as decimal numbers."""
    for i in range(values.shape[0]):
        left, at = abs(values[i]), cursors[i]
        if values[i] < 0:
            out[at] = MINUS
        cursors[i] = at = at + _count_characters(values[i])
        while left > 9:
            at -= 1
            out[at] = ZERO + left % 10
            left //= 10
        out[at - 1] = ZERO + left


@jit_no_alloc
def add_number_lengths(values: Any, lengths: Any) -> None:
    """Add to each length how many characters `put_numbers` writes in the row."""
    for i in range(values.shape[0]):
        lengths[i] += _count_characters(values[i])


@jit_no_alloc
def _count_characters(value: Any) -> Any:
    """Return the number of characters of a decimal number, with its minus."""
    characters, left = 1 + (value < 0), abs(value)
    while left > 9:
        left //= 10
        characters += 1
    return characters
