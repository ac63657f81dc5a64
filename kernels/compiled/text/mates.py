"""Names of mates, the two reads of a pair: compared in tables of records.

Their names are equal up to the number of the mate, 1 or 2, which may stand after the name as /1, or
begin the comment as 1:N: or 1:Y:.
"""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.text.lines import NEWLINE
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
def find_other_name(raw: Any, table: Any, other_raw: Any, other_table: Any, mates: Any) -> Any:
    """Return the first row in which two tables have other names, up to the numbers of mates.

    raw    uint8[size]
    table  int64[n, 6], as in `records`
    mates  whether the numbers must be 1 and 2; one that is missing fits

    Where the names of all rows that both have are equal, the length of the shorter is returned.
    """
    count = min(table.shape[0], other_table.shape[0])
    for i in range(count):
        one, two = table[i, NAME], other_table[i, NAME]
        end, first = split_name(raw, one, table[i, NAME_END])
        other_end, second = split_name(other_raw, two, other_table[i, NAME_END])
        if end - one != other_end - two or (mates and (first > 1 or second == 1)):
            return i
        # A loop that may end early becomes no vector instructions.
        difference = np.uint8(0)
        for k in range(end - one):
            difference |= raw[one + k] ^ other_raw[two + k]
        if difference != 0:
            return i
    return count
