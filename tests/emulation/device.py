"""A GPU of ordinary memory, with the few names of CuPy that `kernels/*/cuda.py` use.

Stricter than CuPy where that finds mistakes: an array lies between pages that must not be touched,
and holds garbage at first; copies must stay inside of arrays; a kernel's arguments must have the
sizes that it declares; and what is queued on a stream waits for `synchronize`, so that reading a
result too early, or using another stream's, gives garbage.
"""

import ctypes
import mmap
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

GARBAGE = 0xA5
TO_DEVICE, TO_HOST = 1, 2
USUAL_SHARED = 48 << 10  # bytes of shared memory; a function must announce more

Kernel = Callable[[int, int, int, Sequence[tuple[bytes, bool]], int], None]
Library = Callable[[str], Kernel]  # the name of a kernel -> the kernel


class OutOfMemoryError(MemoryError):
    pass


class NotSupportedError(RuntimeError):
    """Error of a runtime that cannot register memory of the host."""


class Gpu:
    """State that its arrays and streams share, and that a test may set or ask."""

    def __init__(self, build: Callable[[str, Sequence[str]], Library]) -> None:
        self.build = build
        self.seed = 0  # of the order in which lanes, warps and blocks run
        self.memory_limit: int | None = None
        self.launched: Counter[str] = Counter()
        self.live: weakref.WeakSet[Memory] = weakref.WeakSet()
        self.streams: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()
        self.lock = threading.RLock()  # also, the emulator runs one kernel at a time
        self._own = threading.local()
        self.default = Stream(self)

    def entered(self) -> "list[Stream]":
        """The streams whose `with` blocks this thread is in, the current one last."""
        if not hasattr(self._own, "streams"):
            self._own.streams = [self.default]
        entered: list[Stream] = self._own.streams
        return entered

    def current(self) -> "Stream":
        return self.entered()[-1]

    def allocate(self, size: int) -> "Memory":
        with self.lock:
            used = self.used()
            if self.memory_limit is not None and used + size > self.memory_limit:
                raise OutOfMemoryError(f"{size} bytes, {used} of {self.memory_limit} used")
            memory = Memory(size)
            self.live.add(memory)
            return memory

    def used(self) -> int:
        return sum(memory.bytes.nbytes for memory in self.alive())

    def alive(self) -> "tuple[Memory, ...]":
        with self.lock:
            return tuple(self.live)

    def check(self, address: int, size: int) -> None:
        """Raises ValueError unless these bytes lie in one array's memory."""
        for memory in self.alive():
            begin = memory.bytes.ctypes.data
            if begin <= address and address + size <= begin + memory.bytes.nbytes:
                return
        if size:
            raise ValueError(f"{size} bytes at {address:#x} lie in no array")


class Memory:
    """Bytes that end, but for alignment, at a page that must not be touched."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        inside = -(-max(1, size) // page) * page
        pages = mmap.mmap(-1, inside + 2 * page)
        everything = np.frombuffer(pages, np.uint8)
        begin = page + inside - -(-size // 16) * 16
        self.bytes = everything[begin : begin + size]
        self.bytes[:] = GARBAGE
        for guard in (0, page + inside):
            address = ctypes.c_void_p(everything.ctypes.data + guard)
            if ctypes.CDLL(None).mprotect(address, ctypes.c_size_t(page), 0):
                raise OSError("mprotect failed")


class Stream:
    """Work in order; done only when somebody waits for it."""

    def __init__(self, gpu: Gpu, non_blocking: bool = False) -> None:
        self._gpu = gpu
        self._work: list[tuple[Callable[[], object], object]] = []
        self.ptr = id(self)
        gpu.streams[self.ptr] = self

    def put(self, work: Callable[[], object]) -> None:
        held = self._gpu.alive()  # CuPy, too, gives memory to others only in a stream's order
        self._work.append((work, held))

    def synchronize(self, marks: Sequence[float] = ()) -> None:
        """Do all work, or that before a mark is made."""
        while self._work and not marks:
            work, _ = self._work.pop(0)
            work()

    def wait_event(self, event: "Event") -> None:
        self.put(event.synchronize)

    def __enter__(self) -> Self:
        self._gpu.entered().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._gpu.entered().pop()


class Event:
    """A mark in a stream's work: the time at which it was done."""

    def __init__(self) -> None:
        self._marks: list[float] = []
        self.synchronize: Callable[[], None] = lambda: None

    def record(self, stream: Stream) -> None:
        marks: list[float] = []
        self._marks = marks
        self.synchronize = partial(stream.synchronize, marks)
        stream.put(lambda: marks.append(time.perf_counter()))

    @property
    def seconds(self) -> float:
        return self._marks[0]


def get_elapsed_time(begin: Event, end: Event) -> float:
    """Milliseconds."""
    return (end.seconds - begin.seconds) * 1e3


class Pointer:
    def __init__(self, gpu: Gpu, address: int) -> None:
        self._gpu, self.ptr = gpu, address

    def memset_async(self, value: int, size: int, stream: Stream | None = None) -> None:
        self._gpu.check(self.ptr, size)
        (stream or self._gpu.current()).put(lambda: ctypes.memset(self.ptr, value, size))


class Array:
    """`cupy.ndarray`: the host does not see inside."""

    def __init__(self, gpu: Gpu, memory: Memory, inside: NDArray[Any]) -> None:
        self._gpu, self._memory, self._inside = gpu, memory, inside
        self.dtype, self.shape, self.size = inside.dtype, inside.shape, inside.size
        self.ndim, self.flags, self.nbytes = inside.ndim, inside.flags, inside.nbytes
        self.data = Pointer(gpu, inside.ctypes.data if memory.bytes.size else 0)

    def __len__(self) -> int:
        return len(self._inside)

    @property
    def T(self) -> "Array":
        return Array(self._gpu, self._memory, self._inside.T)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self.data.ptr, False), "shape": self.shape, "version": 3}

    def __getitem__(self, span: Any) -> "Array":
        view = self._inside[span]
        if view.base is None:  # of chosen rows or columns, so a copy
            return self._held(self.get()[span])
        return Array(self._gpu, self._memory, view)

    def __setitem__(self, rows: "Array", values: "Array | float") -> None:
        at, given = rows.get(), values.get() if isinstance(values, Array) else values
        self._gpu.current().put(lambda: self._inside.__setitem__(at, given))

    def __mul__(self, other: "Array") -> "Array":
        return self._held(self.get() * other.get())

    def __gt__(self, least: float) -> "Array":
        return self._held(self.get() > least)

    def any(self, axis: int) -> "Array":
        return self._held(np.asarray(self.get().any(axis=axis)))

    def _held(self, values: NDArray[Any]) -> "Array":
        memory = self._gpu.allocate(values.nbytes)
        memory.bytes.view(values.dtype)[:] = values.ravel()
        return Array(self._gpu, memory, memory.bytes.view(values.dtype).reshape(values.shape))

    def copy(self) -> "Array":
        return self._held(self.get())

    def reshape(self, *shape: int) -> "Array":
        view = self._inside.reshape(shape)
        assert np.shares_memory(view, self._inside) or not view.size  # a copy would be no view
        return Array(self._gpu, self._memory, view)

    def set(self, values: NDArray[Any], stream: Stream | None = None) -> None:
        assert (values.shape, values.dtype) == (self.shape, self.dtype)
        (stream or self._gpu.current()).put(lambda: np.copyto(self._inside, values))

    def get(self, stream: Stream | None = None, out: NDArray[Any] | None = None) -> NDArray[Any]:
        (stream or self._gpu.current()).synchronize()
        if out is None:
            return self._inside.copy()
        np.copyto(out, self._inside)
        return out


class Module:
    """`cupy.RawModule`."""

    def __init__(self, gpu: Gpu, code: str, options: Sequence[str]) -> None:
        self._gpu, self._library = gpu, gpu.build(code, options)

    def get_function(self, name: str) -> Any:
        gpu, kernel = self._gpu, self._library(name)

        def launch(
            grid: tuple[int], block: tuple[int], arguments: Sequence[Any], shared_mem: int = 0
        ) -> None:
            most: int = vars(launch).get("max_dynamic_shared_size_bytes", USUAL_SHARED)
            if shared_mem > most:
                raise ValueError(f"{shared_mem} bytes of shared memory, not announced")
            given = [_argument(argument) for argument in arguments]
            ((blocks,), (threads,)) = grid, block

            def run() -> None:
                with gpu.lock:
                    gpu.launched[name] += 1
                    gpu.seed += 1
                    kernel(blocks, threads, shared_mem, given, gpu.seed)

            gpu.current().put(run)

        return launch


def _argument(value: Any) -> tuple[bytes, bool]:
    """A kernel's argument as bytes, and whether it is a pointer."""
    if isinstance(value, Array):
        return np.uint64(value.data.ptr).tobytes(), True
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.shape):
        return value.tobytes(), False
    raise TypeError(f"a kernel's argument of unclear size: {value!r}")


def fake_cupy(gpu: Gpu, multiprocessors: int = 1) -> ModuleType:
    """A module like cupy for one GPU."""

    def empty(shape: Any, dtype: Any = float) -> Array:
        dtype = np.dtype(dtype)
        memory = gpu.allocate(int(np.prod(shape)) * dtype.itemsize)
        return Array(gpu, memory, memory.bytes.view(dtype).reshape(shape))

    def asarray(values: Any) -> Array:
        if isinstance(values, Array):
            return values
        array = empty(values.shape, values.dtype)
        np.copyto(array._inside, values)
        return array

    def zeros(shape: Any, dtype: Any = float) -> Array:
        array = empty(shape, dtype)
        array.data.memset_async(0, array.nbytes)
        return array

    def cumsum(values: Array, dtype: Any) -> Array:
        return asarray(np.cumsum(values.get(), dtype=dtype))

    def flatnonzero(values: Array) -> Array:
        return asarray(np.flatnonzero(values.get()))

    def sort(values: Array) -> Array:
        return asarray(np.sort(values.get()))

    def memcpy(target: int, source: int, size: int, kind: int, stream: int) -> None:
        gpu.check({TO_DEVICE: target, TO_HOST: source}[kind], size)
        gpu.streams[stream].put(lambda: ctypes.memmove(target, source, size))

    def not_supported(*_: int) -> None:
        raise NotSupportedError

    class Device:
        def __init__(self, number: int = 0) -> None:
            self.id = number
            sizes = {"MaxSharedMemoryPerBlockOptin": 227 << 10}
            self.attributes = sizes | {"MultiProcessorCount": multiprocessors}

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    class Pool:
        def free_all_blocks(self) -> None:
            for stream in list(gpu.streams.values()):  # as cudaFree does
                stream.synchronize()

    runtime = ModuleType("cupy.cuda.runtime")
    vars(runtime).update(
        memcpyAsync=memcpy, memcpyHostToDevice=TO_DEVICE, memcpyDeviceToHost=TO_HOST,
        hostRegister=not_supported, CUDARuntimeError=NotSupportedError,
    )  # fmt: skip
    memory = ModuleType("cupy.cuda.memory")
    vars(memory).update(OutOfMemoryError=OutOfMemoryError)
    cuda = ModuleType("cupy.cuda")
    vars(cuda).update(
        Device=Device, Event=Event, memory=memory, runtime=runtime,
        Stream=lambda non_blocking=False: Stream(gpu, non_blocking),
        alloc_pinned_memory=lambda size: bytearray([GARBAGE]) * size,
        get_current_stream=gpu.current, get_elapsed_time=get_elapsed_time,
    )  # fmt: skip
    cupy = ModuleType("cupy")
    vars(cupy).update(
        RawModule=lambda code, options: Module(gpu, code, options),
        asnumpy=lambda array, stream=None: array.get(stream),
        asarray=asarray, cuda=cuda, cumsum=cumsum, empty=empty, flatnonzero=flatnonzero,
        get_default_memory_pool=Pool, ndarray=Array, sort=sort, zeros=zeros,
    )  # fmt: skip
    return cupy
