"""The statistics on a GPU that the usual options need: `measure.cu` and CuPy's sort.

All others, and those of counts that do not fit, are measured by `cpu.py`. Both have the same bits:
operations and their order are the same.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import cupy
import numpy as np

from multigpu.kernels.device.launch import POINTER, launch, source, struct, usable
from multigpu.kernels.normalization import cpu, density, factors
from multigpu.kernels.normalization.cpu import ADDING, STRETCH, flights
from multigpu.kernels.normalization.types import (
    BAD_COUNT,
    Floats,
    Mask,
    Normalization,
    NormalizationError,
    SizeFactors,
    check_shape,
    groups,
)

THREADS = 256

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
) -> SizeFactors:
    """Return what `reference.size_factors` does; counts of CuPy, or of NumPy, for the CPU."""
    check_shape(counts)
    is_there = isinstance(counts, cupy.ndarray)
    if is_there and _is_usual(options, usable(counts).shape[1]):
        backend: Any = CohortCounts(counts)
        return factors.size_factors(backend, blocks, options, names, totals)
    threads = len(os.sched_getaffinity(0))
    on_host = counts.get() if is_there else counts
    return cpu.size_factors(on_host, blocks, options, names, threads, totals)


def _is_usual(options: Normalization, samples: int) -> bool:
    """Return whether means and dispersions are all that is needed."""
    by_means = options.statistic == "mean" and options.norm_type != "mode"
    return by_means and len(groups(options.ploidies(samples))) == 1


class CohortCounts:
    """int32 or float64[regions, samples] on the device, C-contiguous."""

    def __init__(self, counts: Any) -> None:
        self._counts = counts
        self.shape: tuple[int, int] = counts.shape

    def statistics(self, block: slice, samples: Sequence[int]) -> "ChromosomeStatistics":
        return ChromosomeStatistics(self._counts[block], samples)

    def totals(self) -> Floats:
        return _sums(self._counts, None, range(self.shape[1]))


class ChromosomeStatistics:
    """The statistics of some samples on one chromosome. Raises where a count is impossible."""

    def __init__(self, counts: Any, samples: Sequence[int]) -> None:
        self._counts, self._samples = counts, samples
        self._on_device, illegal = cupy.empty(len(counts), np.uint8), cupy.zeros(1, np.uint32)
        _launch("find_used", counts, samples, None, self._on_device, illegal)
        if illegal.get()[0]:
            raise NormalizationError(BAD_COUNT)
        self._used: Mask = self._on_device.get().astype(bool)

    def used(self) -> Mask:
        return self._used

    def means(self) -> Floats:
        sums = _sums(self._counts, self._on_device, self._samples)
        return np.asarray(sums / self._used.sum())

    def dispersion(self, factors: Floats) -> float:
        return density.mode_of_sorted(cupy.sort(self.ratios(factors)).get()[: self._used.sum()])

    def ratios(self, factors: Floats) -> Any:
        """Return float64[regions] on the device: variance over mean, infinite where not used."""
        out, scale = cupy.empty(len(self._counts), np.float64), cupy.asarray(factors)
        _launch("ratios", self._counts, self._samples, self._on_device, scale, out)
        return out


def _sums(counts: Any, used: Any, samples: Sequence[int]) -> Floats:
    """Return float64[samples], over the used regions; over all where `used` is None."""
    stretches = -(-len(counts) // STRETCH)
    out = cupy.empty((stretches * flights(len(samples)), len(samples)), np.float64)
    threads = stretches * ADDING
    _launch("add_up", counts, samples, used, np.int32(STRETCH), out, threads=threads, block=ADDING)
    return np.asarray(out.get().sum(axis=0))


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
