"""Large arrays of the host on their way to a GPU, piece by piece.

CUDA copies memory that is not page-locked at 10 GB/s. Several threads copy it to page-locked memory
at 40 GB/s, and from there the GPU takes it at 54 while they copy the next piece.
"""

import atexit
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.device.pinned import pinned

PIECE = 64 << 20  # bytes
ROOMS = 2  # pieces in page-locked memory, of each thread that copies
THREADS = 16

_rooms = Buffers(pinned)  # kept: to lock pages takes longer than to copy them
atexit.register(_rooms.clear)  # while CUDA is there


def upload(array: NDArray[Any]) -> tuple[Any, Iterable[tuple[int, int]]]:
    """Begin to copy a C-contiguous array; return the copy, and spans of its rows as they arrive.

    What is queued on the current stream once a span (begin, stop) is yielded finds its rows there.
    """
    there = cupy.empty(array.shape, array.dtype)
    if array.nbytes <= PIECE:
        # Not `asarray`, which copies to page-locked memory first and keeps a block of every size.
        there.set(array, stream=cupy.cuda.get_current_stream())
        return there, [(0, len(array))]
    return there, _copy_pieces(array, there)


def _copy_pieces(array: NDArray[Any], there: Any) -> Iterator[tuple[int, int]]:
    current, copies = cupy.cuda.get_current_stream(), cupy.cuda.Stream(non_blocking=True)
    size, source = array[:1].nbytes, array.reshape(-1).view(np.uint8)
    rows = max(1, PIECE // size)
    rooms = [_rooms.take(rows * size) for _ in range(ROOMS)]
    events = [cupy.cuda.Event() for _ in rooms]
    events[0].record(current)
    copies.wait_event(events[0])  # others may have had the memory of `there` before
    try:
        with ThreadPoolExecutor(THREADS, "upload") as pool:
            begins = range(0, len(array), rows)
            for begin, room, is_copied in zip(begins, cycle(rooms), cycle(events), strict=False):
                piece = source[begin * size : (begin + rows) * size]
                filled = room[: len(piece)]
                is_copied.synchronize()  # what was in the room
                parts = (np.array_split(each, THREADS) for each in (filled, piece))
                for _ in pool.map(np.copyto, *parts):
                    pass
                address = there.data.ptr + begin * size
                how = runtime.memcpyHostToDevice, copies.ptr
                runtime.memcpyAsync(address, filled.ctypes.data, len(piece), *how)
                is_copied.record(copies)
                current.wait_event(is_copied)
                yield begin, min(begin + rows, len(array))
    finally:
        copies.synchronize()
        for room in rooms:
            _rooms.give(room)
