"""Page-locked memory: whole large pages, known to CUDA as long as somebody has them."""

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from multigpu import kernels

HUGE = 2 << 20


class CUDARuntimeError(RuntimeError):
    pass


class Runtime(ModuleType):
    """The functions of CUDA's runtime that have to do with memory of the host."""

    def __init__(self) -> None:
        super().__init__("cupy.cuda.runtime")
        self.CUDARuntimeError = CUDARuntimeError
        self.registered: dict[int, int] = {}
        self.device = 0  # the current one
        self.synchronized: list[int] = []
        self.pool: list[int] = []  # sizes that CuPy's pool was asked for
        self.refuses = self.fails = False

    def getDevice(self) -> int:
        return self.device

    def deviceSynchronize(self) -> None:
        if self.fails:
            raise CUDARuntimeError
        self.synchronized.append(self.device)

    def hostRegister(self, address: int, size: int, _: int) -> None:
        if self.refuses:
            raise CUDARuntimeError
        self.registered[address] = size

    def hostUnregister(self, address: int) -> None:
        del self.registered[address]


@pytest.fixture
def runtime() -> Runtime:
    return Runtime()


@pytest.fixture
def pinned(runtime: Runtime) -> Any:
    """The function on such a runtime; the real module is not touched."""

    def alloc(size: int) -> bytearray:
        runtime.pool.append(size)
        return bytearray(size)

    cuda, cupy = ModuleType("cupy.cuda"), ModuleType("cupy")
    vars(cuda).update(runtime=runtime, alloc_pinned_memory=alloc)
    vars(cupy).update(cuda=cuda)
    path = Path(kernels.__file__).parent / "device" / "pinned.py"
    spec = importlib.util.spec_from_file_location("emulation.pinned", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with patch.dict(sys.modules, {part.__name__: part for part in (cupy, cuda, runtime)}):
        spec.loader.exec_module(module)
    return module.pinned


@pytest.mark.parametrize("size", [HUGE, HUGE + 1, 5 * HUGE - 3])
def test_much_memory_is_whole_pages(pinned: Any, runtime: Runtime, size: int) -> None:
    memory = pinned(size)
    memory[:] = 7
    assert (len(memory), runtime.pool) == (size, [])
    ((address, registered),) = runtime.registered.items()
    assert (address, address % HUGE) == (memory.ctypes.data, 0)
    assert registered == -(-size // HUGE) * HUGE
    # `Buffers` keeps the base of a view: what was taken is given back as a whole.
    assert memory[:100].base.ctypes.data == address
    assert len(memory[:100].base) == registered


def test_it_is_registered_until_nobody_has_a_part_of_it(pinned: Any, runtime: Runtime) -> None:
    memory = pinned(2 * HUGE)
    part = memory[HUGE:].view("<i8")[3:]
    other = pinned(HUGE)
    assert len(runtime.registered) == 2
    del memory
    assert len(runtime.registered) == 2
    del part
    assert list(runtime.registered) == [other.ctypes.data]
    assert runtime.synchronized == [0]  # a copy might have been under way


def test_it_is_forgotten_by_a_thread_that_uses_the_device(pinned: Any, runtime: Runtime) -> None:
    """Another one is not used: CUDA would make a context on the device that is current there."""
    runtime.device = 3
    memory = pinned(HUGE)
    runtime.device = 0
    del memory
    assert len(runtime.registered) == 1
    other = pinned(HUGE)
    assert len(runtime.registered) == 2
    runtime.device = 3
    third = pinned(HUGE)
    assert set(runtime.registered) == {other.ctypes.data, third.ctypes.data}
    assert runtime.synchronized == [3]


def test_it_stays_where_cuda_still_knows_it(pinned: Any, runtime: Runtime) -> None:
    """Else the next memory at these addresses would be taken for it."""
    memory = pinned(HUGE)
    address = memory.ctypes.data
    runtime.fails = True
    del memory
    others = [np.empty(HUGE + 4096, np.uint8) for _ in range(20)]
    assert not [o for o in others if o.ctypes.data < address + HUGE <= o.ctypes.data + len(o)]
    assert len(pinned(HUGE)) == HUGE
    runtime.fails = False
    memory = pinned(HUGE)
    assert address not in set(runtime.registered) - {memory.ctypes.data}


@pytest.mark.parametrize("size", [0, 1, HUGE - 1, HUGE])
def test_little_is_of_the_pool_and_all_where_cuda_refuses(
    pinned: Any, runtime: Runtime, size: int
) -> None:
    runtime.refuses = size == HUGE
    assert len(pinned(size)) == size
    assert (runtime.pool, runtime.registered) == ([max(1, size)], {})


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1000, HUGE, 3 * HUGE + 777])
def test_a_gpu_copies_from_it_and_to_it_and_reads_it(size: int) -> None:
    import cupy

    from multigpu.kernels.device.pinned import pinned

    values = np.random.default_rng(size).integers(0, 256, size, np.uint8)

    def through(_: int) -> Any:
        memory, back = pinned(size), pinned(size)
        memory[:] = values
        with cupy.cuda.Stream(non_blocking=True) as stream:
            there = cupy.empty(size, np.uint8)
            there.set(memory, stream=stream)
            there.get(stream=stream, out=back)
            owner = cupy.cuda.UnownedMemory(memory.ctypes.data, size, memory)
            seen = cupy.ndarray(size, np.uint8, cupy.cuda.MemoryPointer(owner, 0)).copy().get()
        return back.copy(), seen

    with ThreadPoolExecutor(8) as threads:
        for back, seen in threads.map(through, range(16)):
            assert (back == values).all()
            assert (seen == values).all()
