"""The statistics on a GPU: `measure.cu` and CuPy's sort.

Counts may lie on the host or on the device. What lies on the host and is larger than `room` is
brought over in spans of regions or column by column; the statistics are the same. They are those of
`cpu.py` to the last bit: operations and their order are the same.
"""

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Any

import cupy
import numpy as np

from multigpu.kernels.device.launch import POINTER, launch, struct, usable
from multigpu.kernels.device.sources import source
from multigpu.kernels.normalization import density, factors
from multigpu.kernels.normalization.ascending import SUMMING, Ascending
from multigpu.kernels.normalization.cpu import ADDING, STRETCH, contiguous, flights
from multigpu.kernels.normalization.spectrum import Spectral, Spectrum
from multigpu.kernels.normalization.types import (
    BAD_COUNT,
    Floats,
    Mask,
    Normalization,
    NormalizationError,
    SizeFactors,
    check_shape,
)

THREADS = 256
WARP = 32
ROOM = 1 << 30  # bytes of counts that are on the device at a time

_COUNTS = np.dtype(
    [
        ("counts", POINTER),
        ("used", POINTER),
        ("samples", POINTER),
        ("regions", "<i8"),
        ("width", "<i4"),
        ("chosen", "<i4"),
    ]
)


def size_factors(
    counts: Any,
    blocks: Sequence[slice],
    options: Normalization,
    names: Sequence[str] | None = None,
    totals: Floats | None = None,
    room: int = ROOM,
) -> SizeFactors:
    """Return what `reference.size_factors` does; counts of NumPy or CuPy.

    room: bytes of counts that may be brought to the device at a time
    """
    check_shape(counts)
    counts = usable(counts) if isinstance(counts, cupy.ndarray) else contiguous(counts)
    backend = CohortCounts(counts, room)
    return factors.size_factors(backend, blocks, options, names, totals)


class CohortCounts:
    """int32 or float64[regions, samples], C-contiguous."""

    def __init__(self, counts: Any, room: int) -> None:
        self._counts, self._room = counts, room
        self.shape: tuple[int, int] = counts.shape

    def _of(self, block: slice) -> "_Source":
        return _Source(self._counts[block], self._room)

    def statistics(self, block: slice, samples: Sequence[int]) -> "ChromosomeStatistics":
        return ChromosomeStatistics(self._of(block), samples)

    def totals(self) -> Floats:
        return self._of(slice(None)).sums(None, range(self.shape[1]))

    def median(
        self, rows: Mask, samples: Sequence[int], blocks: Sequence[slice], factors: Floats
    ) -> float:
        parts = []
        for block, row in zip(blocks, factors, strict=True):
            here, used = self._of(block), cupy.asarray(rows[block].astype(np.uint8))
            for sample in samples:
                spectrum = here.spectrum(used, int(rows[block].sum()), sample)
                parts.append(spectrum.scaled(row[sample]))
        return Spectrum.together(parts).quantile(0.5)


class ChromosomeStatistics(Spectral):
    """The statistics of some samples on one chromosome."""

    def __init__(self, counts: "_Source", samples: Sequence[int]) -> None:
        self._counts, self._samples = counts, samples
        self._on_device = counts.used(samples)
        self._used: Mask = self._on_device.get().astype(bool)
        self._n = int(self._used.sum())

    @cached_property
    def spectra(self) -> Sequence[Spectrum]:
        return [self._counts.spectrum(self._on_device, self._n, k) for k in self._samples]

    def used(self) -> Mask:
        return self._used

    def means(self) -> Floats:
        return np.asarray(self._counts.sums(self._on_device, self._samples) / self._n)

    def dispersion(self, factors: Floats) -> float:
        ratios = cupy.sort(self._counts.ratios(self._on_device, self._samples, factors))
        return _Sorted(ratios[: self._n]).mode()


class _Source:
    """Counts of one chromosome, on the host or on the device, and what is measured span by span."""

    def __init__(self, counts: Any, room: int) -> None:
        self._counts, self._resident = counts, isinstance(counts, cupy.ndarray)
        if not self._resident and counts.nbytes <= room:
            self._counts, self._resident = cupy.asarray(counts), True
        self._whole = counts.dtype == np.int32
        self._rows = STRETCH * max(1, room // max(1, counts[:1].nbytes * STRETCH))

    def _spans(self) -> Iterator[tuple[slice, Any]]:
        """Yield regions, in order, and their counts on the device."""
        step = max(1, len(self._counts)) if self._resident else self._rows
        for begin in range(0, len(self._counts), step):
            span = slice(begin, min(begin + step, len(self._counts)))
            yield span, self._counts[span] if self._resident else cupy.asarray(self._counts[span])

    def used(self, samples: Sequence[int]) -> Any:
        """uint8[regions]: 1 where a sample has 1 or more. Raises where a count is impossible."""
        used, illegal = cupy.empty(len(self._counts), np.uint8), cupy.zeros(1, np.uint32)
        for span, counts in self._spans():
            _launch("find_used", counts, samples, None, used[span], illegal)
        if illegal.get()[0]:
            raise NormalizationError(BAD_COUNT)
        return used

    def sums(self, used: Any, samples: Sequence[int]) -> Floats:
        """Return float64[samples], over the used regions; over all where `used` is None."""
        each = flights(len(samples))
        parts = [np.zeros((0, len(samples)))]
        for span, counts in self._spans():
            stretches = -(-len(counts) // STRETCH)
            out = cupy.empty((stretches * each, len(samples)), np.float64)
            chosen = None if used is None else used[span]
            threads, block = stretches * ADDING, ADDING
            arguments = (np.int32(STRETCH), out)
            _launch("add_up", counts, samples, chosen, *arguments, threads=threads, block=block)
            parts.append(out.get())
        return np.asarray(np.concatenate(parts).sum(axis=0))

    def ratios(self, used: Any, samples: Sequence[int], factors: Floats) -> Any:
        """Return float64[regions] on the device: variance over mean, infinite where not used."""
        out, scale = cupy.empty(len(self._counts), np.float64), cupy.asarray(factors)
        for span, counts in self._spans():
            _launch("ratios", counts, samples, used[span], scale, out[span])
        return out

    def spectrum(self, used: Any, n: int, sample: int) -> Spectrum:
        """Return the spectrum of one sample in the n used regions."""
        counts, column = self._counts, sample
        if not self._resident:
            counts, column = cupy.asarray(np.ascontiguousarray(counts[:, sample : sample + 1])), 0
        values = cupy.empty(len(counts), counts.dtype)
        greatest = np.int32(2**31 - 1) if self._whole else np.float64(np.inf)
        _launch("column", counts, [column], used, greatest, values)
        return _runs(cupy.sort(values), n, self._whole)


class _Sorted(Ascending):
    """Ascending float64 on the device, read one by one."""

    def __getitem__(self, place: int) -> float:
        return float(self._values[place : place + 1].get()[0])

    def _moments(self, center: float) -> Floats:
        sums = cupy.empty((2, SUMMING), np.float64)
        arguments = (self._values, np.int64(len(self)), np.float64(center), sums)
        launch(_module(True), "moments", SUMMING, THREADS, *arguments)
        return np.asarray(sums.get())

    def _shares(self, grid: density.DensityGrid) -> Floats:
        if grid.size > len(self):  # the values are less to copy than their shares
            return Ascending(self._values.get())._shares(grid)
        cells = grid.size + 1
        shares = cupy.empty((cells, 2), np.float64)
        places = (np.float64(grid.low), np.float64(grid.step), np.int64(cells))
        arguments = (self._values, np.int64(len(self)), *places, shares)
        launch(_module(True), "share_out", cells * WARP, THREADS, *arguments)
        return np.asarray(shares.get())


def _runs(values: Any, n: int, whole: bool) -> Spectrum:
    """Return the spectrum of the first n of ascending values."""
    distinct, places = cupy.empty(n, np.float64), cupy.empty(n, np.int64)
    count = cupy.zeros(1, np.uint64)
    launch(_module(whole), "find_runs", n, THREADS, values, np.int64(n), distinct, places, count)
    found = int(count.get()[0])
    first, each = places[:found].get(), distinct[:found].get()
    order = np.argsort(first)
    return Spectrum(each[order], np.diff(np.append(first[order], n)))


@cache
def _module(whole: bool) -> Any:
    options = ("--std=c++17", "--fmad=false", "-DCOUNT=int" if whole else "-DCOUNT=double")
    return cupy.RawModule(code=source("normalization", "measure.cu"), options=options)


def _launch(
    name: str,
    counts: Any,
    samples: Sequence[int],
    used: Any,
    *arguments: Any,
    threads: int | None = None,
    block: int = THREADS,
) -> None:
    """Queue a kernel with a thread for every region, or this many; `used` may be None."""
    chosen = cupy.asarray(np.array(samples, np.int32))
    regions, width = counts.shape
    view = struct(
        _COUNTS, counts=counts, used=used, samples=chosen, regions=regions, width=width,
        chosen=len(chosen),
    )  # fmt: skip
    module = _module(counts.dtype == np.int32)
    launch(module, name, regions if threads is None else threads, block, view, *arguments)
