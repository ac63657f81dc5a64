"""Files in blocks that stay in the cache of a core."""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import copy_bytes, read_at


@jit_no_alloc
def refill(file: Any, origin: Any, size: Any, block: Any, at: Any, held: Any) -> Any:
    """Move the unread bytes block[at:held] to the front, and fill the block from the file.

    file    an open file's descriptor
    origin  position in the file of what is block[0] then
    size    of the file

    Returns how many bytes the block holds, and False if the file ended before `size`.
    """
    copy_bytes(block, 0, block, at, held - at)
    held -= at
    wanted = min(block.shape[0], size - origin)
    while held < wanted:
        more = read_at(file, origin + held, block, held, wanted - held)
        if more <= 0:
            return held, False
        held += more
    return held, True
