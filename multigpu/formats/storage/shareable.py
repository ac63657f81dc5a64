"""Arrays in memory that other processes of this machine read by a path, without a copy."""

import errno
import mmap
import os
from math import prod
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.devices.memory import free_bytes


class _Memory(mmap.mmap):
    """Mapping that knows its file."""

    descriptor: int


def empty(shape: tuple[int, ...], dtype: Any, is_shared: bool = True) -> NDArray[Any]:
    """Return an array as `np.empty` does; is_shared: in memory that has a path. Raises MemoryError.

    Without a path it has large pages, which the system gives and takes back sooner.
    """
    kind = np.dtype(dtype)
    size = max(1, prod(shape) * kind.itemsize)
    # The system would give more than it has.
    if size > free_bytes(None):
        raise MemoryError(f"not enough memory: {size:,} bytes needed")
    if not is_shared:
        return np.empty(shape, kind)
    descriptor = -1
    try:
        descriptor = os.memfd_create("multigpu")
        os.ftruncate(descriptor, size)
        memory = _Memory(descriptor, size)
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        is_limit = error.errno == errno.EFBIG  # such memory counts as a file
        reason = "file too large (see `ulimit -f`)" if is_limit else "not enough memory"
        raise MemoryError(f"{reason}: {size:,} bytes needed") from error
    memory.descriptor = descriptor
    finalize(memory, os.close, descriptor)
    return np.frombuffer(memory, kind, prod(shape)).reshape(shape)


def path_of(array: NDArray[Any]) -> str | None:
    """Return where other processes find an array while it is here; None where they do not.

    Only whole arrays have a path.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    if not isinstance(owner, _Memory) or not array.flags.c_contiguous:
        return None
    if array.nbytes != len(owner):
        return None
    return f"/proc/{os.getpid()}/fd/{owner.descriptor}"
