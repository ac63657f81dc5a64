"""Noise of samples, and how many regions a change must have to be seen by their depth and noise."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import option, printable_name
from multigpu.kernels.hmm.moves import EVENTS, STAYING
from multigpu.run.command import number_of
from multigpu.workloads.cnv.records import Floats, Indices, Rows
from multigpu.workloads.cnv.samples.cohort import Cohort

FEWEST_SAMPLES = 3
MOST_PAIRS, MOST_COUNTS = 10_000, 1 << 19  # of neighbours; of counts in them
LEAST_DEPTH = 0.02  # of the mean region: less is as good as none
LOSS, GAIN = 0.5, 1.5  # share of the usual reads with one copy less, and one more
CHANCE = 1.64  # standard deviations: 19 of 20 such changes are seen
LARGEST = 10_000  # regions that are looked at
EVEN = 0.9  # share of regions that are as long as the median one in genomes
EXOME_REGIONS = 20_000  # at least
WEAK = 2  # times as many regions as in the median sample


def neighbour_noise(counts: NDArray[Any], chrom: Indices) -> Floats:
    """Return the median absolute difference of log2 ratios of neighbouring regions, float64[n].

    A ratio is that of a sample's reads to the median of all samples, each by its mean.

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


def least_regions(reads: Floats, dispersion: Floats, regions: int, share: float) -> Rows:
    """Return int64[samples]: regions of the smallest change that is seen in 19 of 20 samples.

    It is where the log-likelihood of negative binomials outweighs what it costs the model to leave
    the usual copies for it, in a mean region.

    reads       float64[samples]: of a region with the usual copies
    dispersion  float64[samples]: variance beyond Poisson's over the squared mean
    regions     of the whole run
    share       of the usual reads that a sample with the change has
    """
    reads, size = np.maximum(reads, 1e-3), 1 / np.maximum(dispersion, 1e-6)
    by_read = np.log(share * (size + reads) / (size + share * reads))
    gained = share * reads * by_read - size * np.log((size + share * reads) / (size + reads))
    spread = np.abs(by_read) * np.sqrt(share * reads * (1 + share * reads / size))
    cost = -np.log(EVENTS / regions) - np.log(1 - STAYING)
    # k · gained − CHANCE · √k · spread = cost
    root = (CHANCE * spread + np.sqrt((CHANCE * spread) ** 2 + 4 * gained * cost)) / (2 * gained)
    return np.asarray(np.minimum(np.ceil(root**2), LARGEST), np.int64)


def power_notes(
    cohort: Cohort, totals: Floats, dispersion: float, noise: Floats, min_width: int
) -> Iterator[str]:
    """Yield a note on the changes that can be seen, and on samples in which only larger ones can.

    totals      float64[columns]: reads of each
    dispersion  that of a usual region; float64[columns] noise is a factor on it
    min_width   regions that a CNV must have
    """
    cases, regions = len(cohort.cases), len(cohort.regions)
    reads, variance = totals[:cases] / regions, dispersion * noise[:cases]
    least = (least_regions(reads, variance, regions, each) for each in (LOSS, GAIN))
    losses, gains = (np.maximum(each, min_width) for each in least)
    loss, gain = int(np.median(losses)), int(np.median(gains))
    note = f"seen in the median sample are losses of one copy of {number_of(loss, 'region')} or"
    note += f" more and gains of {gain:,} ({np.median(reads):,.3g} reads a region)"
    if len(weak := np.flatnonzero((gains > WEAK * gain) | (losses > WEAK * loss))):
        named = [
            f"{printable_name(cohort.cases[k])} ({losses[k]:,} and {gains[k]:,})"
            for k in weak[:3].tolist()
        ]
        more = f" and {len(weak) - 3:,} more" if len(weak) > 3 else ""
        note += f"; in {', '.join(named)}{more} only larger ones"
    yield note


def preset_notes(cohort: Cohort) -> Iterator[str]:
    """Yield advice on the preset that fits the regions."""
    regions = cohort.regions
    lengths = regions.end - regions.start
    is_even = float((lengths == np.median(lengths)).mean()) > EVEN
    preset = "genome" if is_even else "panel" if len(regions) < EXOME_REGIONS else "exome"
    yield f"{option('preset')} {preset} finds more in such regions, single ones and common changes"
