"""The statistics in Numba and NumPy, in several threads, without copies of all counts."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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

    def inner_mean(column: Floats) -> float:
        low, high = (density.quantile_of_sorted(column, share) for share in (0.05, 0.95))
        inside = column[(column > low) & (column < high)]
        each, times = np.unique(inside, return_counts=True)
        return float((each * times).sum() / times.sum()) if len(each) else np.nan

    means = _of_sorted(inner_mean, counts, slice(None), range(counts.shape[1]), threads)
    return np.asarray(means / np.median(means))


def mode_of(values: Floats) -> float:
    """Return the most frequent of float64[n], the least on a tie; NaN where there is none.

    Values with the same 15 digits are equal.
    """
    each, times = np.unique(values, return_counts=True)
    rounded, place = np.unique([float(f"{x:.15g}") for x in each.tolist()], return_inverse=True)
    return float(rounded[np.bincount(place, times).argmax()]) if len(each) else np.nan


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
        parts = [
            (self._counts[block][rows[block]][:, samples] * row[samples]).ravel()
            for block, row in zip(blocks, factors, strict=True)
        ]
        return density.quantile_of_sorted(np.sort(np.concatenate(parts)), 0.5)


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

    def used(self) -> Mask:
        return self._used

    def means(self) -> Floats:
        sums = _part_sums(self._counts, self._used, self._samples, self._threads)
        return np.asarray(sums.sum(axis=0) / self._used.sum())

    def quantiles(self, share: float) -> Floats:
        return self._of_samples(lambda column: density.quantile_of_sorted(column, share))

    def modes(self) -> Floats:
        return self._of_samples(lambda column: mode_of(column[column > 0]))

    def mode(self) -> float:
        counts = self._counts[self._used][:, self._samples]
        return mode_of(counts[counts > 0])

    def _of_samples(self, statistic: Callable[[Floats], float]) -> Floats:
        return _of_sorted(statistic, self._counts, self._used, self._samples, self._threads)

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


def _of_sorted(
    statistic: Callable[[Floats], float],
    counts: NDArray[Any],
    rows: Any,
    samples: Iterable[int],
    threads: int,
) -> Floats:
    """Return float64[samples]: a statistic of the ascending counts of each in these rows."""
    with ThreadPoolExecutor(threads) as pool:
        found = pool.map(lambda k: statistic(np.sort(counts[rows, k]).astype(np.float64)), samples)
        return np.array(list(found))


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
