"""Memory of a GPU, or of the host, and errors of CUDA by what they mean.

A device is CUDA's number in this process, or None for the host.
"""

import contextlib
import ctypes
import os
import resource
import sys
from collections.abc import Iterator

import psutil

from multigpu.cluster.devices.context import FORKED, NOT_INITIALIZED
from multigpu.cluster.errors import DeviceFailed, Failure, first_line

# Python with NumPy, SciPy, Numba and Arrow; the stacks of the threads for a CPU.
ADDRESS_SPACE, THREAD_ADDRESS_SPACE = 560 << 20, 32 << 20
M_ARENA_MAX = -8  # of glibc's mallopt
CONTEXT_BYTES = 512 << 20  # about what CUDA takes of a device before anything else
OUT_OF_MEMORY = 2  # the status of errors with these names, which are also in texts of Thrust
OUT_OF_MEMORY_NAMES = ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")
DEVICE_ERRORS = ("CUDARuntimeError", "CUDADriverError")  # CuPy's, which need not be installed


def use(device: int | None) -> None:
    """Make what CUDA does for this thread happen on this device from now on.

    There is no way back, as it would end on GPU 0, where CUDA would make a context for it.
    """
    if device is not None:
        import cupy

        cupy.cuda.Device(device).use()


def free_bytes(device: int | None) -> int:
    """Return the bytes free on a device (0: not even for a context), or available on the host."""
    if device is None:
        return min(int(psutil.virtual_memory().available), _free_address_space())
    import cupy

    with contextlib.suppress(MemoryError), device_errors(""):
        use(device)
        return int(cupy.cuda.runtime.memGetInfo()[0])
    return 0


def _free_address_space() -> int:
    """Return the bytes that `ulimit -v` leaves to this process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(0, limit - int(psutil.Process().memory_info().vms))


def spare_address_space() -> None:
    """Have libraries that are not loaded yet reserve little where `ulimit -v` limits what they may.

    Raises Failure where too little is left: they would abort, or ask for it again for ever.
    """
    left = _free_address_space()
    if left == sys.maxsize:
        return
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # its own reserves 1 GiB
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with contextlib.suppress(AttributeError):  # another library of C
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)  # each thread's reserves 64 MiB
    needed = ADDRESS_SPACE + THREAD_ADDRESS_SPACE * len(os.sched_getaffinity(0))
    if left < needed:
        raise Failure(
            f"`ulimit -v` leaves {left:,} bytes of addresses, and the program needs {needed:,}:"
            " raise the limit"
        )


def cupy_problem() -> str:
    """Return why CuPy cannot be imported, and what to do; empty where it can be."""
    try:
        import cupy  # noqa: F401
    except Exception as error:  # noqa: BLE001 - libraries of CUDA that are missing, or others
        why = first_line(error.__cause__ or error)
        cure = "install it with its libraries (pip install 'multigpu[cu13]' or [cu12])"
        return f"CuPy cannot be imported ({why}): {cure}"
    return ""


def release_pool(device: int | None) -> None:
    """Give back what CuPy keeps, on the device and page-locked; a failed device keeps it."""
    if device is None:
        return
    import cupy

    with contextlib.suppress(DeviceFailed, MemoryError), device_errors(""):
        use(device)
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out, whichever library says so."""
    if isinstance(error, MemoryError) or any(name in str(error) for name in OUT_OF_MEMORY_NAMES):
        return True
    status = getattr(error, "status", None)
    return type(error).__name__ in DEVICE_ERRORS and status == OUT_OF_MEMORY


@contextlib.contextmanager
def device_errors(name: str) -> Iterator[None]:
    """Turn CUDA's errors into MemoryError, or DeviceFailed of worker `name`."""
    try:
        yield
    except Exception as error:
        reason = first_line(error)
        if is_out_of_memory(error) and not isinstance(error, MemoryError):
            raise MemoryError(reason) from error
        if type(error).__name__ not in DEVICE_ERRORS:
            raise
        if getattr(error, "status", None) == NOT_INITIALIZED:
            reason += f"; {FORKED}"
        raise DeviceFailed(name, reason) from error
