"""Page-locked memory of the host, which a GPU copies from and to by itself.

CUDA makes it page by page, for one thread of a process at a time: 0.4 ms a MiB. Pages of 2 MiB that
each thread has the kernel make for itself, and then registers with CUDA, take a quarter of that,
and several threads do not wait for each other.
"""

import mmap
from contextlib import suppress

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

HUGE_PAGE = 2 << 20  # bytes
PORTABLE = 1  # cudaHostRegisterPortable: for all devices


class _Registered(mmap.mmap):
    """Memory that CUDA knows until nobody has it any more."""

    address = 0

    def __del__(self) -> None:
        if self.address:
            with suppress(runtime.CUDARuntimeError):
                runtime.hostUnregister(self.address)


def pinned(size: int) -> NDArray[np.uint8]:
    """uint8[size] with anything in it; little comes from CuPy's pool."""
    if size >= HUGE_PAGE:
        with suppress(runtime.CUDARuntimeError, OSError):  # not all systems have it
            return _registered(size)
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(max(1, size)), np.uint8, size)


def _registered(size: int) -> NDArray[np.uint8]:
    pages = -(-size // HUGE_PAGE) * HUGE_PAGE
    room = _Registered(-1, pages + HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = np.frombuffer(room, np.uint8).ctypes.data
    begin = -address % HUGE_PAGE
    with suppress(OSError):  # a kernel without large pages
        room.madvise(mmap.MADV_HUGEPAGE, begin, pages)
    # Copies of these pages, as a forked process makes them, would take the GPU's place of writing.
    room.madvise(mmap.MADV_DONTFORK)
    memory = np.frombuffer(room, np.uint8, pages, begin)
    memory[:: mmap.PAGESIZE] = 0  # here the kernel makes them, without the interpreter
    runtime.hostRegister(address + begin, pages, PORTABLE)
    room.address = address + begin
    return memory[:size]
