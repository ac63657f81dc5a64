"""Noise of samples: how much neighbouring regions differ."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.cnv.records import Floats, Indices

FEWEST_SAMPLES = 3
MOST_PAIRS, MOST_COUNTS = 10_000, 1 << 19  # of neighbours; of counts in them
LEAST_DEPTH = 0.02  # of the mean region: less is as good as none


def neighbour_noise(counts: NDArray[Any], chrom: Indices) -> Floats:
    """Return the median absolute difference of log2 ratios of neighbouring regions, float64[n].

    A ratio is that of a sample's reads to the median of all samples, each by its mean. Gains and
    losses change it little, as few regions are at their borders.

    counts   [regions, n] of samples, of which pairs of neighbours are taken evenly
    chrom    int32[regions]: index of the chromosome
    returns  NaN for fewer than three samples, and where a sample or all regions have no reads
    """
    samples = counts.shape[1]
    some = max(0, min(len(chrom) - 1, MOST_PAIRS, MOST_COUNTS // samples))
    first = np.linspace(0, len(chrom) - 2, some).astype(np.intp)
    first = first[chrom[first] == chrom[first + 1]]
    noise = np.full(samples, np.nan)
    if samples < FEWEST_SAMPLES or not len(first):
        return noise
    pairs = np.stack([counts[first], counts[first + 1]]).astype(np.float64)
    means = pairs.mean(axis=(0, 1))
    depth = np.divide(pairs, means, out=np.zeros_like(pairs), where=means > 0)
    typical = np.median(depth, axis=2, keepdims=True)
    is_read = (typical > LEAST_DEPTH).all(axis=0)[:, 0]
    if not is_read.any():
        return noise
    ratio = np.log2((depth + LEAST_DEPTH) / (typical + LEAST_DEPTH))[:, is_read]
    return np.where(means > 0, np.median(np.abs(ratio[1] - ratio[0]), axis=0), np.nan)
