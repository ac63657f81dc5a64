"""The statistics in Numba and NumPy, in several threads, without copies of all counts."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.parallel import over_spans
from multigpu.kernels.normalization import density, factors
from multigpu.kernels.normalization.types import Floats, Mask, Normalization, SizeFactors, checked

STRETCH = 4096  # regions that are summed together, whatever the number of threads
ADDING = 256  # threads of a GPU that sum them
LEAST_SPAN = 1 << 14  # regions, for a thread
LEAST_ADDED = 1 << 20  # counts, for a thread that sums them
SAME_15_DIGITS = 4e-15  # relative; values further apart differ in their first 15 digits


@dataclass(frozen=True)
class Spectrum:
    """Distinct values, float64[n], ascending, and how often each occurs, int64[n].

    It takes little space where values are counts, and those of parts make that of the whole.
    """

    values: Floats
    times: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[Any]) -> Self:
        """Return the spectrum of int32 or float64."""
        each, times = np.unique(values, return_counts=True)
        return cls(each.astype(np.float64), times)

    @classmethod
    def together(cls, parts: Sequence["Spectrum"]) -> Self:
        each, place = np.unique(np.concatenate([x.values for x in parts]), return_inverse=True)
        times = np.zeros(len(each), np.int64)
        np.add.at(times, place, np.concatenate([x.times for x in parts]))
        return cls(each, times)

    def positive(self) -> "Spectrum":
        first = int(np.searchsorted(self.values, 0, "right"))
        return Spectrum(self.values[first:], self.times[first:])

    def quantile(self, share: float) -> float:
        """Return the quantile of R's type 7."""
        last = np.cumsum(self.times) - 1  # places in ascending order
        place = share * last[-1]
        low = int(np.floor(place))
        pair = self.values[np.searchsorted(last, [low, min(low + 1, int(last[-1]))])]
        return float(pair[0] + (place - low) * (pair[1] - pair[0]))

    def mode(self) -> float:
        """Return the most frequent value, the least on a tie; NaN where there is none.

        Values with the same 15 digits are equal.
        """
        values = self.values.copy()
        if not len(values):
            return float("nan")
        close = np.diff(values) <= SAME_15_DIGITS * values[1:]
        near = np.r_[False, close] | np.r_[close, False]
        values[near] = [float(f"{value:.15g}") for value in values[near]]
        one = Spectrum.together([Spectrum(values, self.times)])
        return float(f"{one.values[np.argmax(one.times)]:.15g}")


def size_factors(
    counts: NDArray[Any],
    blocks: Sequence[slice],
    options: Normalization,
    names: Sequence[str] | None = None,
    threads: int = 1,
    totals: Floats | None = None,
    leaves_out: bool = False,
) -> SizeFactors:
    """Return what `reference.size_factors` does; `leaves_out` as in `factors.size_factors`."""
    backend = CohortCounts(contiguous(checked(counts)), threads)
    return factors.size_factors(backend, blocks, options, names, totals, leaves_out)


def coverages(counts: NDArray[Any], threads: int = 1) -> Floats:
    """Return what `reference.coverages` does."""
    counts = contiguous(checked(counts))
    spectra = spectra_of(counts, np.ones(len(counts), bool), range(counts.shape[1]), threads)
    means = []
    for each in spectra:
        inside = (each.values > each.quantile(0.05)) & (each.values < each.quantile(0.95))
        times = each.times[inside]
        means.append((each.values[inside] * times).sum() / times.sum() if len(times) else np.nan)
    return np.asarray(np.array(means) / np.median(means))


class CohortCounts:
    """int32 or float64[regions, samples], C-contiguous."""

    def __init__(self, counts: NDArray[Any], threads: int) -> None:
        self._counts, self._threads = counts, threads
        self.shape: tuple[int, int] = counts.shape

    def statistics(self, block: slice, samples: Sequence[int]) -> "ChromosomeStatistics":
        return ChromosomeStatistics(self._counts[block], samples, self._threads)

    def totals(self) -> Floats:
        return np.asarray(self.sums().sum(axis=0))

    def sums(self, rows: Mask | None = None) -> Floats:
        """float64[parts, samples]: of a few thousand regions each, the same for equal counts.

        rows  bool[regions]: of these alone
        """
        chosen = np.ones(len(self._counts), bool) if rows is None else rows
        return _part_sums(self._counts, chosen, np.arange(self.shape[1]), self._threads)

    def median(
        self, rows: Mask, samples: Sequence[int], blocks: Sequence[slice], factors: Floats
    ) -> float:
        parts: list[Spectrum] = []
        for block, row in zip(blocks, factors, strict=True):
            spectra = spectra_of(self._counts[block], rows[block], samples, self._threads)
            parts += [
                Spectrum(each.values * row[k], each.times)
                for k, each in zip(samples, spectra, strict=True)
            ]
        return Spectrum.together(parts).quantile(0.5)


class ChromosomeStatistics:
    """The statistics of some samples on one chromosome."""

    def __init__(self, counts: NDArray[Any], samples: Sequence[int], threads: int) -> None:
        self._counts, self._threads = counts, threads
        self._samples = np.array(samples)
        self._used = np.empty(len(counts), bool)
        over_spans(self._find_used, len(counts), threads, LEAST_SPAN)

    def _find_used(self, begin: int, stop: int) -> None:
        for first in range(begin, stop, STRETCH):  # of which there are copies
            some = slice(first, min(first + STRETCH, stop))
            self._used[some] = (self._counts[some][:, self._samples] >= 1).any(axis=1)

    @cached_property
    def _spectra(self) -> Sequence[Spectrum]:
        return spectra_of(self._counts, self._used, self._samples.tolist(), self._threads)

    def used(self) -> Mask:
        return self._used

    def means(self) -> Floats:
        sums = _part_sums(self._counts, self._used, self._samples, self._threads)
        return np.asarray(sums.sum(axis=0) / self._used.sum())

    def quantiles(self, share: float) -> Floats:
        return np.array([each.quantile(share) for each in self._spectra])

    def modes(self) -> Floats:
        return np.array([each.positive().mode() for each in self._spectra])

    def mode(self) -> float:
        return Spectrum.together(self._spectra).positive().mode()

    def dispersion(self, factors: Floats) -> float:
        rows = np.flatnonzero(self._used)
        ratios = np.empty(len(rows))

        def work(begin: int, stop: int) -> None:
            for first in range(begin, stop, STRETCH):  # of which there are copies
                some = slice(first, min(first + STRETCH, stop))
                counts = self._counts[np.ix_(rows[some], self._samples)]
                ratios[some] = _ratios(counts, factors)

        over_spans(work, len(rows), self._threads, LEAST_SPAN)
        ratios.sort()
        return density.mode_of_sorted(ratios)


def contiguous(counts: NDArray[Any]) -> NDArray[Any]:
    """Return counts, any shape, as int32 or float64, C-contiguous."""
    return np.ascontiguousarray(counts, np.int32 if counts.dtype == np.int32 else np.float64)


def flights(samples: int) -> int:
    """Return the sums n that a stretch has of each sample: each is of every n-th region."""
    return max(1, ADDING // samples)


def _part_sums(counts: NDArray[Any], rows: Mask, samples: NDArray[Any], threads: int) -> Floats:
    """Return float64[parts, samples], the same whatever the number of threads, and on a GPU."""
    stretches, each = -(-len(counts) // STRETCH), flights(len(samples))
    out = np.zeros((stretches * each, len(samples)))

    def work(begin: int, stop: int) -> None:
        for k in range(begin, stop):
            span = slice(k * STRETCH, (k + 1) * STRETCH)
            _add(counts[span], rows[span], samples, out[k * each : (k + 1) * each])

    over_spans(work, stretches, threads, max(1, LEAST_ADDED // (STRETCH * len(samples))))
    return out


def spectra_of(
    counts: NDArray[Any], rows: Mask, samples: Sequence[int], threads: int
) -> list[Spectrum]:
    """Return the spectrum of each sample of counts [regions, samples] where `rows` is true."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda k: Spectrum.of(counts[rows, k]), samples))


@jit_no_alloc
def _add(x: Any, rows: Any, samples: Any, out: Any) -> Any:
    flight = 0
    for row in range(x.shape[0]):
        if rows[row]:
            for k in range(samples.shape[0]):
                out[flight, k] += x[row, samples[k]]
        flight = flight + 1 if flight + 1 < out.shape[0] else 0


def _ratios(counts: NDArray[Any], factors: Floats) -> Floats:
    """Return float64[regions]: variance over mean of counts times factors, added as on a GPU."""
    samples = counts.shape[1]
    mean, squares = np.zeros((2, len(counts)))
    for k in range(samples):
        mean += counts[:, k] * factors[k]
    mean /= samples
    for k in range(samples):
        squares += (counts[:, k] * factors[k] - mean) ** 2
    return np.asarray(squares / (samples - 1) / mean)
