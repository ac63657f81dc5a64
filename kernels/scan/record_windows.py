"""One window of every record, copied: a slice of it, or a circle that goes on over its origin."""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import copy_bytes
from multigpu.kernels.scan.ambiguous_bases import is_illegal


@jit_no_alloc
def copy_windows(letters: Any, offsets: Any, begins: Any, ends: Any, out: Any) -> Any:
    """Copy the window [begin, end) of every record, one after the other.

    letters, offsets  as in `Chunk`
    begins, ends      int64[records]  in the record; an end beyond its last base continues at its
                      first, up to twice its length
    out               uint8[sum of ends - begins]  takes the letters

    Returns whether all letters of the records are bases; where one is not, `out` is not complete.
    """
    at = 0
    for record in range(offsets.shape[0] - 1):
        first, stop = offsets[record], offsets[record + 1]
        if is_illegal(letters[first:stop]):
            return False
        begin, end, length = begins[record], ends[record], stop - first
        inside = min(end, length) - begin
        copy_bytes(out, at, letters, first + begin, inside)
        copy_bytes(out, at + inside, letters, first, end - begin - inside)
        at += end - begin
    return True
