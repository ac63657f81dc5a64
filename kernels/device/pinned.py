"""Page-locked memory of the host, which a GPU copies from and to by itself.

CUDA makes it page by page, for one thread of a process at a time: 0.4 ms a MiB. Pages of 2 MiB that
each thread has the system make for itself, and then registers with CUDA, take half of that, and
several threads do not wait for each other.
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
    device = 0  # whose copies it is for

    def forget(self) -> None:
        """Raises CUDARuntimeError where the device has failed. No copy is under way after that."""
        runtime.deviceSynchronize()
        runtime.hostUnregister(self.address)
        self.address = 0

    def __del__(self) -> None:
        """Any thread may be the last that had it.

        Only one that uses the device can forget it, as in others CUDA would make a context for
        that. What CUDA still knows must stay: new memory would get the same addresses.
        """
        if not self.address:
            return
        try:
            if runtime.getDevice() == self.device:
                self.forget()
                return
        except runtime.CUDARuntimeError:
            pass
        _left.append(self)


_left: list[_Registered] = []  # to be forgotten, by a thread that uses the device


def pinned(size: int) -> NDArray[np.uint8]:
    """Return uint8[size] with anything in it; little comes from CuPy's pool."""
    if size >= HUGE_PAGE:
        with suppress(runtime.CUDARuntimeError, OSError):  # not all systems have it
            _forget_left()
            return _registered(size)
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(max(1, size)), np.uint8, size)


def _forget_left() -> None:
    """Forget memory of this thread's device that others left; what cannot be forgotten stays."""
    device, kept = runtime.getDevice(), []
    with suppress(IndexError):  # another thread may take the last one
        while _left:
            room = _left.pop()
            with suppress(runtime.CUDARuntimeError):
                if room.device == device:
                    room.forget()
            if room.address:
                kept.append(room)
    _left.extend(kept)


def _registered(size: int) -> NDArray[np.uint8]:
    pages = -(-size // HUGE_PAGE) * HUGE_PAGE
    room = _Registered(-1, pages + HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = np.frombuffer(room, np.uint8).ctypes.data
    begin = -address % HUGE_PAGE
    with suppress(OSError):  # a system without large pages
        room.madvise(mmap.MADV_HUGEPAGE, begin, pages)
    # Copies of these pages, as a forked process makes them, would take the GPU's place of writing.
    room.madvise(mmap.MADV_DONTFORK)
    memory = np.frombuffer(room, np.uint8, pages, begin)
    memory[:: mmap.PAGESIZE] = 0  # here the system makes them, without the interpreter
    runtime.hostRegister(address + begin, pages, PORTABLE)
    room.address, room.device = address + begin, runtime.getDevice()
    return memory[:size]
