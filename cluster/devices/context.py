"""A GPU by its UUID through the CUDA driver: NVML and CUDA may number devices differently.

The driver is called without the GIL, so a context can come up while Python imports modules.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from multigpu.cluster.errors import Failure

DRIVER = "libcuda.so.1"
COMPUTE_MODE, ONE_PROCESS = 20, 3  # an attribute of devices, and its value for those of one alone


def start(uuid: str) -> bool:
    """Create the context of a device; whether it is there.

    What fails here fails again where it is used, and is said.
    """
    with contextlib.suppress(Failure):
        context = ctypes.c_void_p()
        return not _driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal(uuid))
    return False


def shared(uuid: str) -> bool:
    """Whether CUDA sees the device, and several processes may use it at a time."""
    with contextlib.suppress(Failure):
        mode = ctypes.c_int()
        _driver().cuDeviceGetAttribute(ctypes.byref(mode), COMPUTE_MODE, ordinal(uuid))
        return mode.value != ONE_PROCESS
    return False


class Contexts:
    """Contexts of devices, which come up one after the other behind our back.

    All but the first are left to others where CUDA does not see them, as with parts of a GPU (MIG),
    or has them for one process alone.

    prepare  called with each device whose context is up, in a thread of its own
    """

    def __init__(
        self, uuids: Sequence[str], prepare: Callable[[str], object] | None = None
    ) -> None:
        self._up = {uuid: threading.Event() for uuid in uuids}
        self._prepare = prepare
        self._over = False
        threading.Thread(target=self._start, name="contexts", daemon=True).start()

    def _start(self) -> None:
        for number, (uuid, up) in enumerate(self._up.items()):
            if self._over:
                return
            if (number == 0 or shared(uuid)) and start(uuid):
                up.set()
                if self._prepare:
                    threading.Thread(target=self._prepared, args=(uuid,), daemon=True).start()

    def _prepared(self, uuid: str) -> None:
        """What fails here fails again where it is used, and is said."""
        assert self._prepare
        with contextlib.suppress(Exception):
            self._prepare(uuid)

    def wait(self, uuid: str) -> None:
        """Until it is there, which may be never, or nobody wants it any more."""
        self._up[uuid].wait()

    def close(self) -> None:
        self._over = True
        for up in self._up.values():
            up.set()


@cache
def ordinal(uuid: str) -> int:
    """CUDA's number of a device in this process. Raises Failure where it is not visible to CUDA."""
    for number, found in enumerate(_uuids()):
        if found in uuid.replace("-", "").lower():
            return number
    raise Failure(f"CUDA does not see the GPU {uuid}: `multigpu doctor` says what is there")


def _uuids() -> Iterator[str]:
    """The UUIDs of the devices that CUDA sees, as 32 hexadecimal digits."""
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
        raise Failure(f"the CUDA driver does not start (error {status})")
    return driver
