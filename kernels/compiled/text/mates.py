"""Names of mates, the two reads of a pair: compared in tables of records, and found in a file.

Their names are equal up to the number of the mate, 1 or 2, which may stand after the name as /1, or
begin the comment as 1:N: or 1:Y:.
"""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import find_byte, read_at
from multigpu.kernels.compiled.text.lines import AT, NEWLINE, SPACE
from multigpu.kernels.compiled.text.records import NAME, NAME_END

SLASH, COLON, ZERO, ONE, NINE, NO, YES = b"/:019NY"


@jit_no_alloc
def split_name(raw: Any, begin: Any, end: Any) -> Any:
    """Return where the name that mates share ends, and the number of the mate; 0 for none."""
    if end - begin >= 2 and raw[end - 2] == SLASH and ONE <= raw[end - 1] <= NINE:
        return end - 2, raw[end - 1] - ZERO
    at = end + 1
    if at + 3 < raw.shape[0] and raw[at + 1] == COLON and raw[at + 3] == COLON:
        is_number = raw[end] != NEWLINE and ONE <= raw[at] <= NINE
        if is_number and (raw[at + 2] == NO or raw[at + 2] == YES):
            return end, raw[at] - ZERO
    return end, 0


@jit_no_alloc
def find_stray(raw: Any, table: Any) -> Any:
    """Return the first i for which rows 2i and 2i + 1 of a table are no mates, by name or number.

    raw    uint8[size]
    table  int64[n, 6], as in `records`

    Returns -1 where all are mates. A number that is missing fits.
    """
    for i in range(table.shape[0] // 2):
        one, two = table[2 * i, NAME], table[2 * i + 1, NAME]
        end, first = split_name(raw, one, table[2 * i, NAME_END])
        other_end, second = split_name(raw, two, table[2 * i + 1, NAME_END])
        if end - one != other_end - two or first > 1 or second == 1:
            return i
        # A loop that may end early becomes no vector instructions.
        difference = np.uint8(0)
        for k in range(end - one):
            difference |= raw[one + k] ^ raw[two + k]
        if difference != 0:
            return i
    return -1


@jit_no_alloc
def find_name(file: Any, position: Any, border: Any, block: Any, name: Any) -> Any:
    """Return where a line begins in [position, border) of a file that is @ and this name; or -1.

    A number of the mate may follow. The line must come after a newline there.

    file   an open file's descriptor
    block  uint8[n]  is overwritten; it has to hold the longest name
    name   uint8[m]
    """
    length = name.shape[0]
    while position < border:
        held = read_at(file, position, block, 0, block.shape[0])
        at = find_byte(block, 0, held, NEWLINE) if held > 0 else -1
        while at >= 0 and at + length + 2 < held:
            if block[at + 1] == AT and _is_name(block, at + 2, name):
                return position + at + 1
            at = find_byte(block, at + 1, held, NEWLINE)
        if held < block.shape[0] or at == 0:
            return -1
        position += held if at < 0 else at
    return -1


@jit_no_alloc
def _is_name(block: Any, at: Any, name: Any) -> Any:
    """Whether a name stands at `at`, and ends there."""
    for k in range(name.shape[0]):
        if block[at + k] != name[k]:
            return False
    after = block[at + name.shape[0]]
    return after <= SPACE or after == SLASH
