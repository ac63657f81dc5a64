"""Fixtures that the tests of emulated kernels share."""

from collections.abc import Iterator
from typing import Any

import pytest
from emulation.device import Gpu


@pytest.fixture
def gpu(machine: tuple[Gpu, Any]) -> Iterator[Gpu]:
    """The GPU of the file's `machine`, as new."""
    machine[0].seed = 0
    machine[0].launched.clear()
    yield machine[0]
    machine[0].memory_limit = None


@pytest.fixture
def cuda(machine: tuple[Gpu, Any], gpu: Gpu) -> Any:
    """The module `cuda` of the kernel on it."""
    return machine[1]
