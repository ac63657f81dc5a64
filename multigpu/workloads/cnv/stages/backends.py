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
from multigpu.kernels import cnmops, hmm, normalization, segmentation
from multigpu.kernels.cnmops import cpu as cnmops_cpu
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.hmm import cpu as hmm_cpu
from multigpu.kernels.normalization import cpu as normalization_cpu
from multigpu.kernels.segmentation import cpu as segmentation_cpu
from multigpu.workloads.cnv.plan import CHROMOSOMES_ON_GPU
from multigpu.workloads.cnv.records import Floats, Rows

STAGED_BYTES = 256 << 20  # page-locked at a time; larger arrays are copied directly, more slowly
LARGEST_SHARE = 8  # of the free memory of a GPU: more for one array stays on the host

Array = Any  # of NumPy on the CPU, of CuPy on a GPU
Fetch = Callable[[], NDArray[Any]]  # the second step of fetching an array, without the device


class KernelBackend:
    """Kernels of a device, and the way of arrays there and back. This one is the CPU.

    normalizer, modeller, segmenter, markov  modules of kernels
    threads   keyword arguments for each kernel
    room      keyword arguments for normalization
    at_once   chromosomes that may compute at a time
    """

    normalizer: Any = normalization_cpu
    modeller: Any = cnmops_cpu
    segmenter: Any = segmentation_cpu
    markov: Any = hmm_cpu
    at_once = 1

    def __init__(self, threads: int) -> None:
        self.threads = self.room = {"threads": threads}

    # ---- kernels ------------------------------------------------------------------------------

    def size_factors(
        self, counts: Array, name: str, how: normalization.Normalization, totals: Floats
    ) -> normalization.SizeFactors:
        """Return the size factors of all columns on the chromosome `name`.

        totals  float64[columns]: reads of each on all chromosomes

        Raises NormalizationError.
        """
        found: normalization.SizeFactors = self.normalizer.size_factors(
            counts, [slice(0, len(counts))], how, [name], totals=totals, **self.room
        )
        return found

    def model(
        self,
        counts: Array,
        level: Array | None,
        coverages: Floats,
        how: cnmops.Model,
        scale: Floats,
    ) -> cnmops.Result:
        """Return the model of counts [regions, samples] times `scale`, float64[samples].

        level  float64[regions], where it is given

        Raises ModelError.
        """
        found: cnmops.Result
        if level is None:
            found = self.modeller.model(counts, coverages, how, scale, **self.threads)
        else:
            found = self.modeller.model_against(
                counts, level, coverages, how, scale, **self.threads
            )
        return found

    def level_of_controls(self, controls: Array, scale: Floats | None, coverages: Floats) -> Array:
        """Return float64[regions]: the level of controls, int32 or float64[regions, controls]."""
        return self.modeller.level_of_controls(controls, scale, coverages)

    def level_of_sample(self, counts: Array) -> float:
        """Return the level of a single sample. Raises ModelError where it has none."""
        return float(self.modeller.level_of_sample(counts))

    def segment(
        self, values: Array, offsets: Rows, how: segmentation.Segmentation | segmentation.Circular
    ) -> segmentation.SegmentedTracks:
        """Return the segments of tracks; values are float64, one track after the other.

        Raises TrackError.
        """
        is_circular = isinstance(how, segmentation.Circular)
        kernel = self.segmenter.cbs if is_circular else self.segmenter.segment
        found: segmentation.SegmentedTracks = kernel(values, offsets, how, **self.threads)
        return found

    def expect(self, counts: Array, model: hmm.SampleModel, inside: Array) -> hmm.ExpectedCounts:
        """Return what samples should have with their usual copies; see `kernels.hmm`."""
        found: hmm.ExpectedCounts = self.markov.expect(counts, model, inside, **self.threads)
        return found

    def log2_ratios(self, counts: Array, expected: hmm.ExpectedCounts, samples: int) -> Array:
        """Return float32[regions, samples]: log2 of counts over expected ones."""
        return self.markov.log2_ratios(counts, expected, samples, **self.threads)

    def paths(
        self,
        counts: Array,
        expected: hmm.ExpectedCounts,
        model: hmm.SampleModel,
        moves: Array,
        inside: Array,
    ) -> Array:
        """Return int8[regions, samples]: the likeliest states of the model's samples."""
        return self.markov.paths(counts, expected, model, moves, inside, **self.threads)

    # ---- arrays -------------------------------------------------------------------------------

    def active(self) -> AbstractContextManager[None]:
        """Return a context for a thread that computes."""
        return nullcontext()

    def put(self, array: Array) -> Array:
        """Return an array of the host on the device."""
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
        from multigpu.kernels.hmm import cuda as markov
        from multigpu.kernels.normalization import cuda as normalizer
        from multigpu.kernels.segmentation import cuda as segmenter

        self.normalizer, self.modeller, self.segmenter = normalizer, modeller, segmenter
        self.markov = markov
        self.threads, self.room = {}, {"room": min(normalizer.ROOM, free_bytes // 8)}
        self._cupy, self._pinned = cupy, pinned
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
        # Not `asarray`, which copies to page-locked memory first and keeps a block of every size.
        there = cupy.empty(array.shape, array.dtype)
        there.set(array, stream=cupy.cuda.get_current_stream())
        return there

    def get(self, array: Any) -> NDArray[Any]:
        """Return a copy on the host."""
        return np.asarray(self._cupy.asnumpy(array))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array on the GPU, or on the host where it would take much of the GPU."""
        if prod(shape) * np.dtype(dtype).itemsize <= self._largest:
            return self._cupy.empty(shape, dtype)
        return np.empty(shape, dtype)

    def assign(self, whole: Any, rows: slice, values: Any) -> None:
        """Put values of the GPU into rows of an array of `empty`."""
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
        """Wait for this thread's stream."""
        self._cupy.cuda.get_current_stream().synchronize()

    def close(self) -> None:
        """Give back the page-locked memory."""
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
        if isinstance(array, np.ndarray):  # it came in pieces
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
