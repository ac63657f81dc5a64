"""The statistics in plain NumPy, on all counts at once. The tests' oracle."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.normalization import density, factors
from multigpu.kernels.normalization.types import (
    Floats,
    Mask,
    Normalization,
    SizeFactors,
    checked,
    groups,
)


def size_factors(
    counts: NDArray[Any],
    blocks: Sequence[slice],
    options: Normalization,
    names: Sequence[str] | None = None,
    totals: Floats | None = None,
) -> SizeFactors:
    """Return what to multiply the counts [regions, samples] by.

    blocks   one slice of regions for each chromosome
    names    of the chromosomes, for notes and errors
    totals   float64[samples]: reads of each on all chromosomes, where `counts` has some only
    raises   NormalizationError where R stops, or counts are negative or not finite
    """
    backend = CohortCounts(checked(counts).astype(np.float64))
    return factors.size_factors(backend, blocks, options, names, totals)


def apply(
    counts: NDArray[Any], blocks: Sequence[slice], factors: Floats, options: Normalization
) -> Floats:
    """Return float64[regions, samples]: counts times factors[chromosome, sample].

    A region where all samples of the same ploidy are below 1 becomes 0 for them, unless there is
    only one. Whole-numbered counts are never between 0 and 1, so there it is the product alone.
    """
    values = counts.astype(np.float64)
    for block, row in zip(blocks, factors, strict=True):
        for members in groups(options.ploidies(counts.shape[1])):
            part = values[block, members]
            used = (part >= 1).any(axis=1, keepdims=True) | (len(members) == 1)
            values[block, members] = part * row[members] * used
    return values


def coverages(counts: NDArray[Any]) -> Floats:
    """Return each sample's mean of the counts strictly between its 5 % and 95 % quantile.

    float64[samples], divided by the median of all: what `norm=2` models in place of normalized
    counts.
    """
    low, high = np.quantile(counts, [0.05, 0.95], axis=0)
    means = np.array(
        [
            column[(column > a) & (column < b)].mean()
            for column, a, b in zip(checked(counts).T, low, high, strict=True)
        ]
    )
    return np.asarray(means / np.median(means))


def mode_of(values: NDArray[Any]) -> float:
    """The most frequent of values [n], the least on a tie; 15 equal digits are equal."""
    rounded = np.array([float(f"{value:.15g}") for value in values])
    each, times = np.unique(rounded, return_counts=True)
    return float(each[np.argmax(times)]) if len(each) else float("nan")


class CohortCounts:
    """float64[regions, samples]."""

    def __init__(self, counts: Floats) -> None:
        self.counts, self.shape = counts, counts.shape

    def statistics(self, block: slice, samples: Sequence[int]) -> "ChromosomeStatistics":
        return ChromosomeStatistics(self.counts[block][:, list(samples)])

    def totals(self) -> Floats:
        return np.asarray(self.counts.sum(axis=0))

    def median(
        self, rows: Mask, samples: Sequence[int], blocks: Sequence[slice], factors: Floats
    ) -> float:
        scaled = [
            (self.counts[block] * row)[rows[block]][:, list(samples)]
            for block, row in zip(blocks, factors, strict=True)
        ]
        return float(np.median(np.concatenate(scaled)))


class ChromosomeStatistics:
    """The statistics of one chromosome."""

    def __init__(self, counts: Floats) -> None:
        self._all = counts
        self._used = counts[self.used()]

    def used(self) -> Mask:
        return np.asarray((self._all >= 1).any(axis=1))

    def means(self) -> Floats:
        return np.asarray(self._used.mean(axis=0))

    def quantiles(self, share: float) -> Floats:
        return np.asarray(np.quantile(self._used, share, axis=0))

    def modes(self) -> Floats:
        return np.array([mode_of(column[column > 0]) for column in self._used.T])

    def mode(self) -> float:
        return mode_of(self._used[self._used > 0])

    def dispersion(self, factors: Floats) -> float:
        scaled = self._used * factors
        ratios = np.sort(scaled.var(axis=1, ddof=1) / scaled.mean(axis=1))
        return density.mode_of_sorted(ratios)
