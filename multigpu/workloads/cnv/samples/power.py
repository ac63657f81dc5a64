"""Power: how many regions a change must have to be seen in a sample, by its depth and noise."""

from collections.abc import Iterator

import numpy as np

from multigpu.errors import option, printable_name
from multigpu.kernels.hmm.moves import EVENTS, STAYING
from multigpu.run.command import number_of
from multigpu.workloads.cnv.records import Floats, Rows
from multigpu.workloads.cnv.samples.cohort import Cohort

LOSS, GAIN = 0.5, 1.5  # share of the usual reads with one copy less, and one more
CHANCE = 1.64  # standard deviations: 19 of 20 such changes are seen
LARGEST = 10_000  # regions that are looked at
EVEN = 0.9  # share of regions that are as long as the median one in genomes
EXOME_REGIONS = 20_000  # at least
WEAK = 2  # times as many regions as in the median sample


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
