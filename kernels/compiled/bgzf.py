"""Blocks of BGZF, each of which says how long it is: found without a look at what is in them."""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import read_at

HEADER = 64  # bytes at the front of a block, in which its size is looked for
LENGTH = 4  # bytes at its end: the length of its content
SHORTEST, LARGEST = 26, 64 << 10  # bytes of a block with nothing in it; of its content
EXTRA = 12  # where the extra fields begin


@jit_no_alloc
def follow_blocks(file: Any, room: Any, borders: Any) -> Any:
    """Find where the next blocks of an open file begin; return the number of borders found.

    These are fewer than there is room for where no whole block follows the last.

    room     uint8[LENGTH + HEADER]  is overwritten
    borders  int64[n, 2]  positions in the file and in its content; the first border is given
    """
    count, held = 1, read_at(file, borders[0, 0], room, LENGTH, HEADER)
    while count < borders.shape[0]:
        size = _block_size(room[LENGTH : LENGTH + max(0, held)])
        if size < SHORTEST:
            break
        stored, content = borders[count - 1]
        held = read_at(file, stored + size - LENGTH, room, 0, LENGTH + HEADER) - LENGTH
        length = _whole(room, 0) + (_whole(room, 2) << 16)
        if held < 0 or length > LARGEST:
            break
        borders[count, 0], borders[count, 1] = stored + size, content + length
        count += 1
    return count


@jit_no_alloc
def _block_size(head: Any) -> Any:
    """Return the bytes of the block that begins so; 0 where it is not BGZF."""
    if head.shape[0] < EXTRA or _whole(head, 0) != 0x8B1F or _whole(head, 2) != 0x0408:
        return 0
    at, stop = EXTRA, min(EXTRA + _whole(head, EXTRA - 2), head.shape[0])
    while at + 6 <= stop:
        length = _whole(head, at + 2)
        if head[at] == ord("B") and head[at + 1] == ord("C") and length == 2:
            return _whole(head, at + 4) + 1
        at += 4 + length
    return 0


@jit_no_alloc
def _whole(raw: Any, at: Any) -> Any:
    """Return the number in two bytes, the lower one first."""
    return int(raw[at]) + (int(raw[at + 1]) << 8)
