"""GPUs by their UUIDs through the CUDA driver: NVML and CUDA may number devices differently.

The driver is called without the GIL, so a context can come up while Python imports modules.
"""

import contextlib
import ctypes
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from multigpu.cluster.errors import Failure

DRIVER = "libcuda.so.1"
NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED and cudaErrorInitializationError
FORKED = (
    "a process that was forked after CUDA was used cannot use it: start it with"
    " multiprocessing.get_context('spawn')"
)


def start(uuid: str) -> None:
    """Create the context of a device. What fails here fails again where the device is used."""
    with contextlib.suppress(Failure):
        context = ctypes.c_void_p()
        _driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal(uuid))


def start_all(uuids: Sequence[str]) -> None:
    """Create contexts of devices in a thread; who uses one earlier waits for it in CUDA."""

    def create() -> None:
        for uuid in uuids:
            start(uuid)

    threading.Thread(target=create, name="contexts", daemon=True).start()


@cache
def ordinal(uuid: str) -> int:
    """Return CUDA's number of a device in this process. Raises Failure where CUDA hides it."""
    for number, found in enumerate(_uuids()):
        if found in uuid.replace("-", "").lower():
            return number
    raise Failure(f"CUDA does not see the GPU {uuid}: `multigpu doctor` says what is there")


def _uuids() -> Iterator[str]:
    """Yield the UUIDs of the devices that CUDA sees, as 32 hexadecimal digits."""
    driver = _driver()
    count, device = ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    for number in range(count.value):
        uuid = (ctypes.c_ubyte * 16)()
        driver.cuDeviceGet(ctypes.byref(device), number)
        driver.cuDeviceGetUuid_v2(ctypes.byref(uuid), device)  # of the instance, where there is MIG
        yield bytes(uuid).hex()


@cache
def _driver() -> Any:
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError as error:
        raise Failure(f"the CUDA driver cannot be loaded ({error})") from error
    if status := driver.cuInit(0):
        cure = f"; {FORKED}" if status == NOT_INITIALIZED else ""
        raise Failure(f"the CUDA driver does not start (error {status}){cure}")
    return driver
