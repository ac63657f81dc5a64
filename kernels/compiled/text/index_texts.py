"""Index reads in the titles of reads: name 1:N:0:ACGT+TGCA."""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.text.lines import SPACE
from multigpu.kernels.compiled.text.records import NAME_END

COLON, JOIN, HYPHEN = ord(":"), ord("+"), ord("-")
FIELDS = 3  # before the index: the mate, whether it was filtered, and bits


@jit_no_alloc
def find_index_texts(raw: Any, table: Any, step: Any, borders: Any) -> Any:
    """Fill in where the index reads are in the titles of every `step`-th record.

    raw      uint8[size]: text that the table's positions are in
    table    int64[n, 6], as in `records`
    borders  int64[reads, 4]: begin and end of the first, then of the second, which may be empty

    Returns the first of these records without an index, or -1.
    """
    for i in range(borders.shape[0]):
        at, colons = table[i * step, NAME_END] + 1, 0
        while at < raw.shape[0] and raw[at] > SPACE and colons < FIELDS:
            colons += raw[at] == COLON
            at += 1
        borders[i, 0] = at
        while at < raw.shape[0] and _is_letter(raw[at]):
            at += 1
        borders[i, 1] = borders[i, 2] = borders[i, 3] = at
        if colons < FIELDS or at == borders[i, 0]:
            return i * step
        if at < raw.shape[0] and (raw[at] == JOIN or raw[at] == HYPHEN):
            borders[i, 2] = at = at + 1
            while at < raw.shape[0] and _is_letter(raw[at]):
                at += 1
            borders[i, 3] = at
    return -1


@jit_no_alloc
def _is_letter(byte: Any) -> Any:
    return ord("A") <= (byte & 0xDF) <= ord("Z")
