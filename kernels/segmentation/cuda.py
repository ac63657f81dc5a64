"""The fast segmentation on the current GPU: `statistic.cu` and `spans.cu` through CuPy.

Each launch works on all tracks. Nothing but the spans and numbers of segments comes back to the
host. Segments are those of `cpu.py` bit for bit: operations and their order are the same, and so
are our own logarithms.
"""

import os
from functools import cache
from typing import Any

import cupy
import numpy as np

from multigpu.kernels.device.launch import POINTER, launch, source, struct
from multigpu.kernels.segmentation import cpu
from multigpu.kernels.segmentation.types import (
    Rows,
    Segmentation,
    SegmentedTracks,
    check,
    check_lengths,
)

THREADS = 256
THREADS_OF_TRACK = 1024  # where a block works on one track, or on a long span
POSITIONS = 4  # of each thread in a search
BLOCKS_PER_SM = 2  # of THREADS_OF_TRACK each: all that fit
WARP = 32
STATISTIC, SPANS = "statistic.cu", "spans.cu"
DIFFERENCES, VALUES = np.uint32(0), np.uint32(1)
TRACK = np.dtype([("variance", "<f8"), ("odd", "<u4"), ("_", "<u4")])

_SEARCH = np.dtype(
    [(name, POINTER) for name in ("x", "sums", "squares", "offsets", "tracks", "eps")]
    + [("total", "<i8"), ("weight", "<f8"), ("n_tracks", "<u4")]
    + [(name, "<i4") for name in ("shortest", "largest", "delta")]
)
_THRESHOLDS = np.dtype([("upper", "<f8"), ("lower", "<f8"), ("given", "<u4"), ("_", "<u4")])
_RUNS = np.dtype([(name, POINTER) for name in ("edges", "first", "medians")] + [("n", "<i8")])


@cache
def _module(name: str) -> Any:
    code = source("segmentation", name)
    return cupy.RawModule(code=code, options=("--std=c++17", "--fmad=false"))


def _launch(module: str, name: str, threads: int, block: int, *arguments: Any) -> None:
    launch(_module(module), name, threads, block, *arguments)


def segment(x: Any, offsets: Rows, options: Segmentation) -> SegmentedTracks:
    """Return what `reference.segment` does; x may be an array of CuPy, too, and is not changed.

    Up to 48 bytes a value are held on the device, those of x included. Numbers of breaks, and
    tracks with values that are not finite, are for the CPU.
    """
    check(x, offsets)
    check_lengths(offsets, options)
    if not len(x):
        return SegmentedTracks.none()
    if options.alpha < 1:
        tracks = _Tracks(x if isinstance(x, cupy.ndarray) else cupy.asarray(x), offsets)
        if not tracks.is_odd:
            return tracks.merged(tracks.edges(tracks.statistic(options), options), options)
    threads = len(os.sched_getaffinity(0))
    return cpu.segment(x.get() if isinstance(x, cupy.ndarray) else x, offsets, options, threads)


class _Tracks:
    """Values on the device, and what is known of each track.

    is_odd  whether a value is not finite: nothing else is done with them then
    """

    def __init__(self, x: Any, offsets: Rows) -> None:
        self.x, self.n, self.total = x, len(offsets) - 1, len(x)
        self.offsets = cupy.asarray(offsets)
        self.looks = cupy.zeros(self.n * TRACK.itemsize, np.uint8)
        self._each(STATISTIC, "look", self.x, self.offsets, self.looks)
        self.is_odd = bool(self.looks.get().view(TRACK)["odd"].any())

    def _each(self, module: str, name: str, *arguments: Any, block: int = THREADS_OF_TRACK) -> None:
        """A kernel that has a block for every track."""
        _launch(module, name, self.n * block, block, *arguments)

    def statistic(self, options: Segmentation) -> Any:
        """float64[n]: its local maxima, 0 elsewhere."""
        found, out = (cupy.empty(self.total, np.float64) for _ in range(2))
        sums, squares = (cupy.empty(self.total + self.n, np.float64) for _ in range(2))
        self._each(STATISTIC, "sum_up", self.x, self.offsets, sums, squares, block=WARP)
        if options.eps is None:
            eps = self._quantiles(self.x, DIFFERENCES, 0.75)
        else:
            eps = cupy.asarray(np.full(self.n, options.eps, np.float64))
        search = struct(
            _SEARCH, x=self.x, sums=sums, squares=squares, offsets=self.offsets,
            tracks=self.looks, eps=eps, total=self.total, weight=options.weight, n_tracks=self.n,
            shortest=options.shortest, largest=options.largest,
            delta=min(options.delta, options.largest),
        )  # fmt: skip
        _launch(STATISTIC, "find", -(-self.total // POSITIONS), THREADS, search, found)
        _launch(
            STATISTIC, "maxima", self.total, THREADS, found, self.offsets, np.uint32(self.n),
            np.int64(self.total), np.int32(options.reach), out,
        )  # fmt: skip
        return out

    def _quantiles(self, values: Any, what: np.uint32, share: float) -> Any:
        out = cupy.zeros(self.n, np.float64)
        self._each(STATISTIC, "quantiles", values, self.offsets, what, np.float64(share), out)
        return out

    def edges(self, values: Any, options: Segmentation) -> Any:
        """int64[pieces + 1]: where the pieces of all tracks begin, and the end of the last one."""
        marks = _marks(self.total)
        thresholds = self._quantiles(values, VALUES, 1 - options.alpha)
        _launch(
            SPANS, "mark_above", self.total, THREADS, values, self.offsets,
            np.uint32(self.n), np.int64(self.total), thresholds, marks,
        )  # fmt: skip
        return cupy.flatnonzero(marks)

    def merged(self, edges: Any, options: Segmentation) -> SegmentedTracks:
        """Pieces to segments."""
        upper, lower = options.limits or (0.0, 0.0)
        limits = struct(_THRESHOLDS, upper=upper, lower=lower, given=options.limits is not None)
        common = (self.offsets, self.looks, np.uint32(self.n), limits)
        medians = self._described(edges[:-1], edges[1:])[1]
        marks = _marks(len(medians))
        _launch(
            SPANS, "mark_runs", len(medians), THREADS, edges, np.int64(len(medians)), medians,
            *common, marks,
        )  # fmt: skip
        first = cupy.flatnonzero(marks)
        runs = struct(_RUNS, edges=edges, first=first, medians=medians, n=len(first))
        counts, start, end = self._merged(runs, *common, np.int32(options.shortest))
        mean, median = self._described(start, end)
        return SegmentedTracks(
            np.repeat(np.arange(self.n), counts), start.get(), end.get(), mean.get(), median.get()
        )  # fmt: skip

    def _merged(self, *arguments: Any) -> tuple[Rows, Any, Any]:
        """Return the number of segments of each track, on the host, and where all begin and end."""
        counts = cupy.empty(self.n, np.int64)
        places = (counts, counts, counts, counts)  # all but the second are not looked at
        _launch(SPANS, "merge", self.n, WARP, *arguments, np.uint32(1), *places)
        host_counts = counts.get()
        ends = np.cumsum(host_counts)
        start, end = (cupy.empty(int(ends[-1]), np.int64) for _ in range(2))
        places = (cupy.asarray(ends - host_counts), counts, start, end)
        _launch(SPANS, "merge", self.n, WARP, *arguments, np.uint32(0), *places)
        return host_counts, start, end

    def _described(self, start: Any, end: Any) -> tuple[Any, Any]:
        spans = len(start)
        mean, median = (cupy.empty(spans, np.float64) for _ in range(2))
        listed, n_listed = cupy.empty(spans, np.int64), cupy.zeros(1, np.uint64)
        _launch(
            SPANS, "describe", spans * WARP, THREADS, self.x, start, end, np.int64(spans), mean,
            median, listed, n_listed,
        )  # fmt: skip
        multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
        blocks = min(spans, BLOCKS_PER_SM * int(multiprocessors))
        _launch(
            SPANS, "describe_long", blocks * THREADS_OF_TRACK, THREADS_OF_TRACK, self.x, start,
            end, mean, median, listed, n_listed,
        )  # fmt: skip
        return mean, median


def _marks(n: int) -> Any:
    """uint8[n + 1], on the device: all 0 but the last."""
    marks = cupy.zeros(n + 1, np.uint8)
    marks[n:].data.memset_async(1, 1)
    return marks
