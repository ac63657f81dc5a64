"""Backends of the kernels: plain, on the CPU, on an emulated GPU, on a real one.

backend = backends("cnmops", ALL)  # a fixture: tests with it run on each of them
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest
from emulation import emulated
from emulation.device import Gpu

DEVICES = [
    "cpu",
    pytest.param("emulated", marks=pytest.mark.emulated),
    pytest.param("cuda", marks=pytest.mark.gpu),
]
ALL, GPUS = ["reference", *DEVICES], DEVICES[1:]
EMULATED: dict[str, Any] = {}
SMALL = {  # so that there are many blocks, and little for each
    "rotation": {"SHARE": 64, "PACK_BLOCKS": 3},
    "rotation/whole_box": {"GREEDY": 8, "ROUND_BLOCKS": 3, "SEARCH_BLOCKS": 3},
}


def backends(kernel: str, devices: Sequence[Any] = DEVICES) -> Any:
    """Return a fixture: the module of a kernel for each of the devices."""

    @pytest.fixture(scope="session", params=devices)
    def backend(request: pytest.FixtureRequest) -> Any:
        return backend_of(kernel, request.param)

    return backend


def backend_of(kernel: str, device: str) -> Any:
    """Return the module of a kernel for a device; "emulated": its cuda module, emulated."""
    if device != "emulated":
        return import_module(f"multigpu.kernels.{kernel.replace('/', '.')}.{device}")
    if emulated.why_not():
        pytest.skip(emulated.why_not())
    if kernel not in EMULATED:
        EMULATED[kernel] = _emulated(kernel)[1]
    return EMULATED[kernel]


def machine_of(kernel: str) -> Any:
    """Return a fixture: an emulated GPU of its own, and a kernel's module `cuda` on it."""

    @pytest.fixture(scope="session")
    def machine() -> tuple[Gpu, Any]:
        return _emulated(kernel)

    return machine


def _emulated(kernel: str) -> tuple[Gpu, Any]:
    folder, _, inner = kernel.partition("/")
    gpu, module = emulated.load(folder)
    vars(module).update(SMALL.get(folder, {}))
    if inner:  # it imports the folder's module, which is on the same GPU
        module = emulated.load(kernel, gpu, {f"multigpu.kernels.{folder}.cuda": module})[1]
        vars(module).update(SMALL.get(kernel, {}))
    return gpu, module


def is_emulated(backend: Any) -> bool:
    return bool(backend.__name__.startswith("emulation."))


def on_host(array: Any) -> Any:
    """Return an array of NumPy; None stays None."""
    return array.get() if hasattr(array, "get") else array
