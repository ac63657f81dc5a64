"""Counts without what depends on a covariate of the regions: GC content, or mappability.

The waves of a sample along the genome come from such covariates (Benjamini & Speed, Nucleic Acids
Research 2012, 40:e72). Regions are binned by quantiles of the covariate. In each bin a sample has a
ratio: its reads by those of the reference samples, so what all share stays, and with it the noise
that belongs to a number of reads. Counts are divided by a smooth curve of the ratios, in which no
change of copies hides. Results are the same whatever the number of threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.parallel import over_spans
from multigpu.kernels.normalization.types import Floats, Mask

LEVELS = 1000  # steps of a covariate between 0 and 1
MOST_BINS, LEAST_REGIONS = 100, 20  # quantiles, and regions in each
PENALTY = 4.0  # of a degree of freedom: targets of a gene have their errors in common
WIDTHS = (100.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12)  # of neighbourhoods, in SD
STRETCHES = 16  # of the genome
FAR = 6.0  # times the median difference from the curve: no wave, but a change of copies
PRIOR_READS = 1000.0  # of a sample, by which its factors are taken for 1
LARGEST_FACTOR = 4.0
ROUNDED = 4096  # regions whose remainders are carried on, whatever the number of threads
LARGEST = np.iinfo(np.int32).max

Levels = NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Correction:
    """Factors by which counts are multiplied."""

    level: Levels  # int16[regions]: rounded covariate × LEVELS; -1 where it is not known
    factors: Floats  # float64[LEVELS + 1, samples]
    bins: int  # number of quantiles; with fewer than two nothing is corrected

    def apply(self, counts: NDArray[Any], columns: slice, threads: int = 1) -> None:
        """Correct int32 or float64[regions, samples] in place: these columns of the factors.

        Whole counts stay whole: what rounding takes from a region the next one of the sample gets.
        """
        factors = np.ascontiguousarray(self.factors[:, columns])

        def work(begin: int, stop: int) -> None:
            for k in range(begin, stop):
                rows = slice(k * ROUNDED, (k + 1) * ROUNDED)
                if counts.dtype == np.int32:
                    _multiply(counts[rows], self.level[rows], factors, np.zeros(counts.shape[1]))
                else:
                    known = self.level[rows] >= 0
                    counts[rows][known] *= factors[self.level[rows][known]]

        over_spans(work, -(-len(counts) // ROUNDED), threads, 1)


def correction(
    tables: Sequence[NDArray[Any]],
    covariate: Floats,
    chosen: Mask,
    is_reference: Mask,
    threads: int = 1,
) -> Correction:
    """Return what makes samples alike in regions of like covariate.

    tables        int32 or float64[regions, samples] each: their samples follow each other
    covariate     float64[regions], 0 to 1; NaN where it is not known
    chosen        bool[regions]: those that tell the factors, as the autosomes
    is_reference  bool[all samples]: whose median is what is expected; where there is one sample in
                  all, the same of each region is
    """
    level, regions = np.empty(len(covariate), np.int16), np.zeros((STRETCHES, LEVELS + 1), np.int64)
    borders = [len(covariate) * k // STRETCHES for k in range(STRETCHES + 1)]

    def count(begin: int, stop: int) -> None:
        for k in range(begin, stop):
            rows = slice(borders[k], borders[k + 1])
            _count(covariate[rows], chosen[rows], level[rows], regions[k])

    over_spans(count, STRETCHES, threads, 1)
    bin_of = bins_of(regions.sum(axis=0))
    bins = int(bin_of.max()) + 1
    sums = [np.zeros((STRETCHES, bins, table.shape[1])) for table in tables]

    def add(begin: int, stop: int) -> None:
        for k in range(begin, stop):
            rows = slice(borders[k], borders[k + 1])
            for table, out in zip(tables, sums, strict=True):
                _add(table[rows], level[rows], chosen[rows], bin_of, out[k])

    over_spans(add, STRETCHES, threads, 1)
    factors = factors_of(np.concatenate(sums, axis=2), regions, bin_of, is_reference)
    return Correction(level, factors, bins)


def bins_of(regions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[levels]: the quantile of each level, numbered from 0 without gaps.

    regions  int64[levels]: number of regions
    """
    total = int(regions.sum())
    count = max(1, min(MOST_BINS, total // LEAST_REGIONS))
    middle = np.cumsum(regions) - regions / 2
    quantile = np.minimum(middle * count // max(1, total), count - 1).astype(np.int64)
    there = np.unique(quantile[regions > 0])
    return np.minimum(np.searchsorted(there, quantile), max(0, len(there) - 1))


def factors_of(
    sums: Floats, regions: NDArray[np.int64], bin_of: NDArray[np.int64], is_reference: Mask
) -> Floats:
    """Return float64[levels, samples]: by what counts are multiplied.

    sums     float64[stretches, bins, samples]: reads
    regions  int64[stretches, levels]: regions with them
    """
    bins, samples = sums.shape[1:]
    in_bin = bin_of == np.arange(bins)[:, None]
    together = sums.sum(axis=2)
    share = np.divide(sums, together[..., None], out=np.zeros_like(sums), where=sums > 0)
    depth = weighted_median(share.reshape(-1, samples), together.ravel())
    scaled = sums / np.where(depth > 0, depth, np.inf)
    expected = (regions @ in_bin.T).astype(np.float64)
    if samples > 1:
        is_reference = is_reference & (depth > 0)
        expected = np.median(scaled[..., is_reference], axis=2) if is_reference.any() else together
    weights = expected.sum(axis=0)
    if bins < 2 or not weights.any():
        return np.ones((LEVELS + 1, samples))
    ratio = scaled / np.where(expected > 0, expected, np.inf)[..., None]
    levels = np.arange(LEVELS + 1.0)
    total = regions.sum(axis=0)
    centers = (in_bin * total * levels).sum(axis=1) / (in_bin * total).sum(axis=1)
    levels = np.clip(levels, *np.flatnonzero(total)[[0, -1]])
    # Medians of three bins resist changes of copies; without these, means tell more.
    near = [slice(max(0, k - 1), k + 2) for k in range(bins)]
    curve = np.stack(
        [weighted_median(ratio[:, k].reshape(-1, samples), expected[:, k].ravel()) for k in near]
    )
    curve = smooth(curve, weights, centers, centers)
    far = abs(ratio - curve)
    typical = weighted_median(far.reshape(-1, samples), expected.ravel())
    ratio = np.where(far > FAR * typical, curve, ratio)
    curve = (ratio * expected[..., None]).sum(axis=0) / np.maximum(weights, 1e-300)[:, None]
    curve = smooth(curve, weights, centers, levels)
    # Factors are 1 in the mean; few reads tell little.
    reads = sums.sum(axis=(0, 1))
    mean = np.einsum("lk,l->k", curve, total) / total.sum()
    curve = np.divide(curve, mean, out=np.ones_like(curve), where=(mean > 0) & (depth > 0))
    curve = 1 + (curve - 1) * reads / (reads + PRIOR_READS)
    # Rounded, as exponentials of other processors may differ in their last bits.
    return np.asarray(np.round(1 / np.clip(curve, 1 / LARGEST_FACTOR, LARGEST_FACTOR), 6))


def smooth(values: Floats, weights: Floats, places: Floats, at: Floats) -> Floats:
    """Return float64[at, columns]: local linear regression of values [n, columns].

    The width of the neighbourhood is that of least generalized cross-validation, for each column
    (Craven & Wahba, Numerische Mathematik 1979, 31:377), where degrees of freedom count `PENALTY`
    times.

    weights  float64[n]
    places   float64[n]: where the values are
    """
    weights = weights / weights.sum()
    center = (weights * places).sum()
    spread = np.sqrt((weights * (places - center) ** 2).sum())
    best, found = np.full(values.shape[1], np.inf), np.ones((len(at), values.shape[1]))
    for width in WIDTHS:
        hat = _regression(places, weights, places, width * spread)
        free = 1 - PENALTY * np.trace(hat) / len(values)
        if free <= 0 and width < WIDTHS[0]:
            break
        error = values - np.einsum("ij,jk->ik", hat, values)
        error = np.einsum("i,ik->k", weights, error**2) / max(free**2, 1e-9)
        better = error < best
        best[better] = error[better]
        hat = _regression(at, weights, places, width * spread)
        found[:, better] = np.einsum("ij,jk->ik", hat, values[:, better])
    return found


def _regression(at: Floats, weights: Floats, places: Floats, width: float) -> Floats:
    """Return float64[at, n]: what each value counts where a line is fitted around each place."""
    step = (places - at[:, None]) / width
    kernel = weights * np.exp(-(step**2) / 2)
    first, second = (kernel * step).sum(axis=1), (kernel * step**2).sum(axis=1) + 1e-9
    shape = kernel * (second[:, None] - first[:, None] * step)
    return np.asarray(shape / shape.sum(axis=1, keepdims=True))


def weighted_median(values: Floats, weights: Floats) -> Floats:
    """Return float64[columns]: medians of values [n, columns] with weights [n]; 1 without any."""
    if not weights.sum() > 0:
        return np.ones(values.shape[1])
    order = np.argsort(values, axis=0, kind="stable")
    reached = np.cumsum(weights[order], axis=0)
    half = reached[-1] / 2
    places = np.stack([(reached < half).sum(axis=0), (reached <= half).sum(axis=0)])
    found: Floats = np.take_along_axis(np.take_along_axis(values, order, 0), places, 0).mean(axis=0)
    return found


@jit_no_alloc
def _count(covariate: Any, chosen: Any, level: Any, out: Any) -> Any:
    for row in range(covariate.shape[0]):
        x = covariate[row]
        level[row] = np.int16(x * LEVELS + 0.5) if 0 <= x <= 1 else -1
        if chosen[row] and level[row] >= 0:
            out[level[row]] += 1


@jit_no_alloc
def _add(counts: Any, level: Any, chosen: Any, bin_of: Any, out: Any) -> Any:
    for row in range(counts.shape[0]):
        if chosen[row] and level[row] >= 0:
            into = bin_of[level[row]]
            for k in range(counts.shape[1]):
                out[into, k] += counts[row, k]


@jit_no_alloc
def _multiply(counts: Any, level: Any, factors: Any, rest: Any) -> Any:
    for row in range(counts.shape[0]):
        at = level[row]
        if at >= 0:
            for k in range(counts.shape[1]):
                exact = counts[row, k] * factors[at, k] + rest[k]
                # No reads stay none.
                whole = np.floor(exact + 0.5) if counts[row, k] > 0 else 0.0
                whole = min(whole, LARGEST)
                rest[k] = exact - whole
                counts[row, k] = np.int32(whole)
