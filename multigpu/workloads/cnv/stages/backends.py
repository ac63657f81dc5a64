"""Kernels of the CPU and of a GPU behind one interface, and the way of arrays there and back."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place
from multigpu.kernels.cnmops import cpu as cnmops_cpu
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.hmm import cpu as hmm_cpu
from multigpu.kernels.normalization import cpu as normalization_cpu
from multigpu.kernels.segmentation import cpu as segmentation_cpu
from multigpu.workloads.cnv.plan import CHROMOSOMES_ON_GPU

STAGED_BYTES = 256 << 20  # page-locked at a time; larger arrays are copied directly, more slowly
LARGEST_SHARE = 8  # of the free memory of a GPU: more for one array stays on the host

Array = Any  # of NumPy on the CPU, of CuPy on a GPU
Fetch = Callable[[], NDArray[Any]]  # the second step of fetching an array, without the device


class KernelBackend:
    """Kernels of a device, and the way of arrays there and back. This one is the CPU.

    The kernels are the functions of these names in `kernels.normalization`, `cnmops`,
    `segmentation` and `hmm`, whose modules `reference` say what they return and raise:
    size_factors, model, model_against, level_of_controls, segment, expect, paths, log2_ratios.

    at_once  chromosomes that may compute at a time
    """

    at_once = 1

    def __init__(self, threads: int) -> None:
        modules = normalization_cpu, cnmops_cpu, segmentation_cpu, hmm_cpu
        self.use(*modules, threads=threads)

    def use(self, normalizer: Any, modeller: Any, segmenter: Any, markov: Any, **how: int) -> None:
        """Take the kernels of these modules, each with these keyword arguments."""
        self.size_factors = partial(normalizer.size_factors, **how)
        self.model = partial(modeller.model, **how)
        self.model_against = partial(modeller.model_against, **how)
        self.level_of_controls = modeller.level_of_controls
        self.segment = partial(segmenter.segment, **how)
        self.expect = partial(markov.expect, **how)
        self.paths = partial(markov.paths, **how)
        self.log2_ratios = partial(markov.log2_ratios, **how)

    def active(self) -> AbstractContextManager[None]:
        """Return a context for a thread that computes."""
        return nullcontext()

    def put(self, array: Array) -> Array:
        """Return an array of the host on the device."""
        return array

    def put_or_keep(self, array: Array) -> Array:
        """Return an array on the device, or as it is where it would take much of the device."""
        return array

    def get(self, array: Array) -> NDArray[Any]:
        """Return an array of the device on the host."""
        return np.asarray(array)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array on the device, or on the host where it would take much of the device."""
        return np.empty(shape, dtype)

    def assign(self, whole: Array, rows: slice, values: Array) -> None:
        """Put values of the device into rows of an array of `empty`."""
        whole[rows] = values

    def fetch(self, array: Array) -> Fetch:
        """Begin to get a large array; the function returned ends it in any thread."""
        return lambda: array

    def allocate(self, size: int) -> NDArray[np.uint8]:
        """Return memory of the host from which `put` is fast."""
        return np.empty(size, np.uint8)

    def wait(self) -> None:
        """Wait for all that this thread has asked of the device."""

    def close(self) -> None:
        """Give back the memory that `fetch` has kept."""


class CudaBackend(KernelBackend):
    """Kernels on a GPU; each thread has a stream of its own."""

    at_once = CHROMOSOMES_ON_GPU

    def __init__(self, gpu: int, free_bytes: int) -> None:
        # CuPy is not installed where there are no GPUs.
        import cupy

        from multigpu.kernels.cnmops import cuda as modeller
        from multigpu.kernels.device.pinned import pinned
        from multigpu.kernels.device.upload import upload
        from multigpu.kernels.hmm import cuda as markov
        from multigpu.kernels.normalization import cuda as normalizer
        from multigpu.kernels.segmentation import cuda as segmenter

        self.use(normalizer, modeller, segmenter, markov)
        self._cupy, self._pinned, self._upload = cupy, pinned, upload
        self._gpu, self._largest = gpu, free_bytes // LARGEST_SHARE
        self._thread = threading.local()
        self._staging = Staging(pinned)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the GPU and this thread's stream the current ones."""
        with self._cupy.cuda.Device(self._gpu):
            if not hasattr(self._thread, "stream"):
                self._thread.stream = self._cupy.cuda.Stream(non_blocking=True)
            with self._thread.stream:
                yield

    def put(self, array: Any) -> Any:
        """Return a copy on the GPU, or the array itself where it is there."""
        cupy = self._cupy
        if isinstance(array, cupy.ndarray):
            return array
        there, spans = self._upload(np.ascontiguousarray(array))
        for _ in spans:  # as they arrive
            pass
        return there

    def put_or_keep(self, array: Any) -> Any:
        return self.put(array) if array.nbytes <= self._largest else array

    def get(self, array: Any) -> NDArray[Any]:
        return np.asarray(self._cupy.asnumpy(array))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        if prod(shape) * np.dtype(dtype).itemsize <= self._largest:
            return self._cupy.empty(shape, dtype)
        return np.empty(shape, dtype)

    def assign(self, whole: Any, rows: slice, values: Any) -> None:
        is_there = isinstance(whole, self._cupy.ndarray)
        whole[rows] = values if is_there else self.get(values)

    def fetch(self, array: Any) -> Fetch:
        """Copy to page-locked memory; the function returned copies from there."""
        return self._staging.fetch(array)

    def allocate(self, size: int) -> NDArray[np.uint8]:
        """Return page-locked memory, or any where that would be too much."""
        if size > STAGED_BYTES:
            return np.empty(size, np.uint8)
        return self._pinned(size)

    def wait(self) -> None:
        self._cupy.cuda.get_current_stream().synchronize()

    def close(self) -> None:
        self._staging.close()


class Staging:
    """Large arrays on their way from a GPU to the host, in two steps.

    The GPU is needed for the first alone, a copy to page-locked memory. The second, to memory of
    the array's own, takes ten times as long: most of that are fresh pages.
    """

    def __init__(self, allocate: Callable[[int], NDArray[np.uint8]]) -> None:
        self._buffers = Buffers(allocate)

    def fetch(self, array: Any) -> Fetch:
        """Do the first step, and return the second for any thread and time."""
        if isinstance(array, np.ndarray):  # it came in pieces, or from the host
            return lambda: array
        if array.nbytes > STAGED_BYTES:
            on_host = array.get()
            return lambda: on_host
        room = self._buffers.take(array.nbytes).view(array.dtype).reshape(array.shape)
        array.get(out=room)
        return partial(self._copy_out, room)

    def _copy_out(self, room: NDArray[Any]) -> NDArray[Any]:
        copied = room.copy()
        self._buffers.give(room)
        return copied

    def close(self) -> None:
        """Give back the buffers."""
        self._buffers.clear()


def open_backend(place: Place, threads: int) -> KernelBackend:
    """Return the backend of a place; `threads` are those of the CPU."""
    return KernelBackend(threads) if place.gpu is None else CudaBackend(place.gpu, place.free_bytes)
