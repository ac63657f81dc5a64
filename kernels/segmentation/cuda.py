"""The segmentation on the current GPU: `segment.cu` through CuPy, all tracks in each launch.

Nothing but the spans and numbers of segments comes back to the host. Sums are those of `cpu.py` bit
for bit, logarithms within an ulp.
"""

from functools import cache
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from kernels.segmentation import cpu
from kernels.segmentation.types import (
    NOTHING_FINITE,
    ONE_VALUE,
    Circular,
    Rows,
    Segmentation,
    Segments,
    TrackError,
    check,
    notes,
)
from kernels.sources import source

BYTES_PER_VALUE = 48  # that a segmentation holds at most, the values themselves included
THREADS = 256
POSITIONS = 4  # of each thread in a search
BLOCKS_PER_SM = 4
WARP = 32
DIFFERENCES, VALUES = np.uint32(0), np.uint32(1)
TRACK = np.dtype(
    [("low", "<f8"), ("high", "<f8"), ("variance", "<f8"), ("infinite", "<u4"), ("nan", "<u4")]
)

_POINTER = "<u8"
_SEARCH = np.dtype(
    [(name, _POINTER) for name in ("x", "sums", "squares", "offsets", "tracks", "eps")]
    + [("total", "<i8"), ("weight", "<f8"), ("n_tracks", "<u4")]
    + [(name, "<i4") for name in ("shortest", "largest", "delta")]
)


@cache
def _module() -> Any:
    code = source(Path(__file__).with_name("segment.cu"))
    return cupy.RawModule(code=code, options=("--std=c++17", "--fmad=false"))


def _launch(module: Any, name: str, blocks: int, threads: int, *arguments: Any) -> None:
    module.get_function(name)((blocks,), (threads,), arguments)


def segment(x: Any, offsets: Rows, options: Segmentation) -> Segments:
    """As `reference.segment`; x may be an array of CuPy, too, and is not changed."""
    check(x, offsets)
    short = np.flatnonzero(np.diff(offsets) == 1)
    if len(short) and options.limits is None:
        raise TrackError(int(short[0]), ONE_VALUE)
    if not len(x):
        return Segments.none()
    values = x if isinstance(x, cupy.ndarray) else cupy.asarray(x)
    tracks = _Tracks(values, offsets)
    edges = tracks.edges(tracks.statistic(options), options)
    return tracks.merged(edges, options)


def cbs(x: Any, offsets: Rows, options: Circular, threads: int = 1) -> Segments:
    """As `cpu.cbs`, on the host: each test waits for the one before."""
    return cpu.cbs(x.get() if isinstance(x, cupy.ndarray) else x, offsets, options, threads)


def statistic(x: Any, offsets: Rows, options: Segmentation) -> Any:
    """float64[n], on the device: the local maxima of the statistic of every track; x is finite."""
    return _Tracks(x, offsets).statistic(options)


class _Tracks:
    """Values on the device, finite, and what is known of each track."""

    def __init__(self, x: Any, offsets: Rows) -> None:
        self.x, self.host_offsets = x, offsets
        self.n, self.total = len(offsets) - 1, len(x)
        self.offsets = cupy.asarray(offsets)
        self.looks, looks = self._look()
        self.notes = notes(bool(looks["infinite"].any()), bool(looks["nan"].any()))
        self._refuse(looks)
        if self.notes:
            self.x = cupy.empty(self.total, np.float64)
            self._each("clean", x, self.offsets, self.looks, self.x)
            self.looks, _ = self._look()

    def _each(self, name: str, *arguments: Any, threads: int = THREADS) -> None:
        """A kernel that has a block for every track."""
        _launch(_module(), name, self.n, threads, *arguments)

    def _all(self, name: str, *arguments: Any) -> None:
        """A kernel that has a thread for every position."""
        _launch(_module(), name, -(-self.total // THREADS), THREADS, *arguments)

    def _look(self) -> tuple[Any, NDArray[Any]]:
        looks = cupy.zeros(self.n * TRACK.itemsize, np.uint8)
        self._each("look", self.x, self.offsets, looks)
        return looks, looks.get().view(TRACK)

    def _refuse(self, looks: NDArray[Any]) -> None:
        nothing = (looks["infinite"] > 0) & (looks["low"] > looks["high"])
        if nothing.any():
            raise TrackError(int(np.argmax(nothing)), NOTHING_FINITE)

    def statistic(self, options: Segmentation) -> Any:
        """float64[n]: its local maxima, 0 elsewhere."""
        found, out = (cupy.empty(self.total, np.float64) for _ in range(2))
        eps, (sums, squares) = self._eps(options), self._sums()
        search = np.zeros((), _SEARCH)
        pointers = {
            "x": self.x, "sums": sums, "squares": squares, "offsets": self.offsets,
            "tracks": self.looks, "eps": eps,
        }  # fmt: skip
        for name, array in pointers.items():
            search[name] = array.data.ptr
        search["total"], search["weight"], search["n_tracks"] = self.total, options.weight, self.n
        search["shortest"], search["largest"] = options.shortest, options.largest
        search["delta"] = min(options.delta, options.largest)
        blocks = -(-self.total // (POSITIONS * THREADS))
        _launch(_module(), "find", blocks, THREADS, search, found)
        self._all(
            "maxima", found, self.offsets, np.uint32(self.n), np.int64(self.total),
            np.int32(options.reach), out,
        )  # fmt: skip
        return out

    def _eps(self, options: Segmentation) -> Any:
        if options.eps is not None:
            return cupy.asarray(np.full(self.n, options.eps, np.float64))
        return self._quantiles(self.x, DIFFERENCES, 0.75)

    def _quantiles(self, values: Any, what: np.uint32, share: float) -> Any:
        out = cupy.zeros(self.n, np.float64)
        self._each("quantiles", values, self.offsets, what, np.float64(share), out)
        return out

    def _sums(self) -> tuple[Any, Any]:
        sums, squares = (cupy.empty(self.total + self.n, np.float64) for _ in range(2))
        self._each("sum_up", self.x, self.offsets, sums, squares, threads=WARP)
        return sums, squares

    def edges(self, values: Any, options: Segmentation) -> Any:
        """int64[pieces + 1]: where the pieces of all tracks begin, and the end of the last one."""
        marks = cupy.zeros(self.total + 1, np.uint8)
        marks[self.total :].data.memset_async(1, 1)
        if options.alpha < 1:
            thresholds = self._quantiles(values, VALUES, 1 - options.alpha)
            self._all(
                "mark_above", values, self.offsets, np.uint32(self.n), np.int64(self.total),
                thresholds, marks,
            )  # fmt: skip
        else:
            wanted = np.int64(options.alpha)
            self._each("mark_largest", values, self.offsets, wanted, marks, threads=WARP)
        return cupy.flatnonzero(marks)

    def merged(self, edges: Any, options: Segmentation) -> Segments:
        """Pieces to segments."""
        medians = self._described(edges[:-1], edges[1:])[1]
        counts = cupy.empty(self.n, np.int64)
        self._merge(edges, medians, options, True, counts, counts, counts, counts)
        host_counts = counts.get()
        ends = np.cumsum(host_counts)
        start, end = (cupy.empty(int(ends[-1]), np.int64) for _ in range(2))
        place = cupy.asarray(ends - host_counts)
        self._merge(edges, medians, options, False, place, counts, start, end)
        mean, median = self._described(start, end)
        return Segments(
            np.repeat(np.arange(self.n), host_counts), start.get(), end.get(), mean.get(),
            median.get(), self.notes,
        )  # fmt: skip

    def _merge(
        self, edges: Any, medians: Any, options: Segmentation, counting: bool, *arrays: Any
    ) -> None:
        limits = options.limits or (0.0, 0.0)
        _launch(
            _module(), "merge", -(-self.n // WARP), WARP, edges, np.int64(len(edges)), medians,
            self.offsets, self.looks, np.uint32(self.n), np.uint32(options.limits is not None),
            *map(np.float64, limits), np.int32(options.shortest), np.uint32(counting), *arrays,
        )  # fmt: skip

    def _described(self, start: Any, end: Any) -> tuple[Any, Any]:
        """Means and medians of spans."""
        spans = len(start)
        mean, median = (cupy.empty(spans, np.float64) for _ in range(2))
        listed, n_listed = cupy.empty(spans, np.int64), cupy.zeros(1, np.uint64)
        _launch(
            _module(), "describe", -(-spans * WARP // THREADS), THREADS, self.x, start, end,
            np.int64(spans), mean, median, listed, n_listed,
        )  # fmt: skip
        _launch(
            _module(), "describe_long", min(spans, _many()), THREADS, self.x, start, end,
            mean, median, listed, n_listed,
        )  # fmt: skip
        return mean, median


def _many() -> int:
    """Blocks that keep the device busy."""
    return BLOCKS_PER_SM * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
