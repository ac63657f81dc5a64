"""Which kernels run where, and our options as theirs."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place
from multigpu.cnv.options import CnvOptions
from multigpu.kernels.cnmops import Model
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.normalization import Normalization
from multigpu.kernels.normalization.types import groups
from multigpu.kernels.segmentation import Circular, Segmentation

STAGED_BYTES = 256 << 20  # page-locked at a time; what is larger is copied as it is, more slowly
AT_ONCE = 3  # chromosomes on a GPU: many kernels have a block a sample, and leave room for others
CBS_WIDEST = 5  # least width of a segment that circular binary segmentation may be given


@dataclass(frozen=True)
class Backend:
    """The kernels of a place, and the way of arrays there and back.

    at_once  chromosomes that may compute at a time
    more  keywords for the kernels: how many threads
    active  around what computes, in any thread
    room  new memory of so many bytes from which `put` is fast
    fetch large matrices: get in two steps, the second of which does without the device
    close gives back what `fetch` has kept to be used again
    wait  until all that this thread has asked of the device is done
    """

    normalization: Any
    cnmops: Any
    segmentation: Any
    at_once: int
    more: dict[str, int]
    active: Callable[[], AbstractContextManager[Any]]
    put: Callable[[Any], Any]
    get: Callable[[Any], Any]
    room: Callable[[int], NDArray[np.uint8]]
    fetch: Callable[[Any], Callable[[], Any]]
    close: Callable[[], None]
    wait: Callable[[], None] = lambda: None


class Staging:
    """Large arrays on their way from a GPU to the host, in two steps.

    The GPU is needed for the first alone, a copy to page-locked memory. The second, to memory of
    the array's own, takes ten times as long: most of that are fresh pages.
    """

    def __init__(self, allocate: Callable[[int], NDArray[np.uint8]]) -> None:
        self._buffers = Buffers(allocate)

    def fetch(self, array: Any) -> Callable[[], NDArray[Any]]:
        """The first step, done; what is given back is the second, for any thread and time."""
        if isinstance(array, np.ndarray):  # it came in pieces
            return lambda: array
        if array.nbytes > STAGED_BYTES:
            own = array.get()
            return lambda: own
        room = self._buffers.take(array.nbytes).view(array.dtype).reshape(array.shape)
        array.get(out=room)
        return partial(self._own, room)

    def _own(self, room: NDArray[Any]) -> NDArray[Any]:
        own = room.copy()
        self._buffers.give(room)
        return own

    def close(self) -> None:
        self._buffers.clear()


def host(size: int) -> NDArray[np.uint8]:
    """uint8[size] with anything in it."""
    return np.empty(size, np.uint8)


def backend_of(place: Place, threads: int) -> Backend:
    """The kernels for a place."""
    if place.gpu is None:
        from multigpu.kernels.cnmops import cpu as cnmops
        from multigpu.kernels.normalization import cpu as normalization
        from multigpu.kernels.segmentation import cpu as segmentation

        return Backend(
            normalization, cnmops, segmentation, 1, {"threads": threads},
            nullcontext, lambda there: there, lambda here: here, host, lambda here: lambda: here,
            lambda: None,
        )  # fmt: skip
    import cupy

    from multigpu.kernels.cnmops import cuda as cnmops_cuda
    from multigpu.kernels.device.pinned import pinned
    from multigpu.kernels.normalization import cuda as normalization_cuda
    from multigpu.kernels.segmentation import cuda as segmentation_cuda

    def put(array: Any) -> Any:
        if isinstance(array, cupy.ndarray):
            return array
        # Not `asarray`, which copies to page-locked memory first and keeps a block of every size.
        there = cupy.empty(array.shape, array.dtype)
        there.set(array, stream=cupy.cuda.get_current_stream())
        return there

    own = threading.local()

    @contextmanager
    def active() -> Iterator[None]:
        with cupy.cuda.Device(place.gpu):
            if not hasattr(own, "stream"):
                own.stream = cupy.cuda.Stream(non_blocking=True)
            with own.stream:
                yield

    staging = Staging(pinned)
    return Backend(
        normalization_cuda, cnmops_cuda, segmentation_cuda, AT_ONCE, {},
        active, put, cupy.asnumpy,
        lambda size: pinned(size) if size <= STAGED_BYTES else host(size),
        staging.fetch, staging.close, lambda: cupy.cuda.get_current_stream().synchronize(),
    )  # fmt: skip


def wiped(counts: NDArray[Any], options: CnvOptions, ploidy: Sequence[int] | None) -> NDArray[Any]:
    """Counts with 0 where all samples that are normalized together are below 1, as in R.

    Whole counts are 0 there.
    """
    if counts.dtype == np.int32:
        return counts
    known = ploidy if ploidy is not None and ploidy.count(2) > 1 else None
    out = counts.copy()
    for members in groups(normalization_options(options, known).ploidies(counts.shape[1])):
        if len(members) > 1:
            rows = np.flatnonzero((counts[:, members] < 1).all(axis=1))
            out[np.ix_(rows, np.array(members))] = 0
    return out


def normalization_options(options: CnvOptions, ploidy: Sequence[int] | None) -> Normalization:
    return Normalization(
        options.norm_type, options.size_factor, options.norm_quantile,
        options.size_factor_quantile, None if ploidy is None else tuple(ploidy),
    )  # fmt: skip


def model_options(options: CnvOptions) -> Model:
    kind = {"single": "single", "reference": "reference"}.get(options.model, "cohort")
    return Model(
        options.fold_changes, options.main, options.prior_impact, options.cycles,
        options.min_read_count, options.posterior, kind, options.compat_r,
    )  # fmt: skip


def segmentation_options(options: CnvOptions) -> Segmentation:
    return Segmentation(
        options.seg_alpha, options.seg_eps, options.seg_delta, options.seg_max_window,
        options.min_width, options.seg_cyber_weight, options.seg_median,
    )  # fmt: skip


def cbs_options(options: CnvOptions) -> Circular:
    return Circular(min_width=min(max(options.min_width, 2), CBS_WIDEST), seed=options.seed)


def robust_options(options: CnvOptions) -> Segmentation:
    return Segmentation(min_segment=options.robust_min_width, thresholds=options.robust)
