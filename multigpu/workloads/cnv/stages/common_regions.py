"""Regions where most samples may have other copies than two, so that the cohort misleads.

Reference samples tell what is usual, not what two copies are: with a loss in half of the cohort,
the other half would seem to have a gain. Here neighbouring regions are taken together, and the
depth of two copies is what explains the depths of all samples best as multiples of its half. Where
the depths of regions are much alike, as in genomes, two copies have about the depth they have
elsewhere; where they are not, as in panels, that tells little, and what cannot be told is flagged.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.hmm import ExpectedCounts, SampleModel
from multigpu.kernels.hmm.types import LEAST_DISPERSION, NORMAL_MAD
from multigpu.workloads.cnv.records import Floats, Mask, Rows

LEAST_SAMPLES = 6
READS = 1000.0  # of a block of regions in the median sample
ROWS = (3, 20)  # regions of a block
APART, CARRIERS, FEWEST = 0.3, 0.1, 2  # change that carriers have; their share and number at least
LEAST_NOISE, LEAST_SPREAD = 0.02, 0.05  # of depths, relative; of regions' depths, as logarithms
CANDIDATES = np.array([1 / 2, 2 / 3, 1.0, 4 / 3, 2.0])  # levels of two copies by the median one
COPIES = np.arange(5)
CHANCES = np.log([0.02, 0.16, 0.64, 0.16, 0.02])  # of these copies, where a change is common
SURE = 3.0  # nats by which one level is better than all others


@dataclass(frozen=True, eq=False, kw_only=True)
class CommonRegions:
    """Regions of a chromosome in which a change is common.

    rows     int64[n]
    mean     float32[n, samples]: what samples should have with their usual copies
    unsure   bool[n]: whether the level of two copies cannot be told
    dispersion  of these regions, which their spread does not tell
    """

    rows: Rows
    mean: NDArray[np.float32]
    unsure: Mask
    dispersion: float

    @classmethod
    def of(
        cls, counts: NDArray[Any], model: SampleModel, inside: Mask, breaks: Mask
    ) -> "Self | None":
        """Return those of a chromosome, or None.

        counts  int32 or float64[regions, columns] in the order of the model
        inside  bool[regions]: where everybody has two copies
        breaks  bool[regions]: regions that are no neighbours of those before them
        """
        samples = model.samples
        if samples < LEAST_SAMPLES or inside.any() or not len(counts):
            return None
        reads = max(float(np.median(counts[:: max(1, len(counts) // 4096), :samples])), 1.0)
        width = int(np.clip(np.ceil(READS / reads), *ROWS))
        first = _blocks(breaks, width)
        sums = np.add.reduceat(counts, first, axis=0)[:, :samples].astype(np.float64)
        sizes = np.diff(np.append(first, len(counts)))
        depths = sums / sizes[:, None] / model.sizes[0]
        typical = np.median(depths, axis=1)
        found = _is_common(depths, typical)
        if not found.any():
            return None
        level, unsure = _levels(depths, typical, found)
        blocks = np.flatnonzero(found)
        rows = np.concatenate(
            [np.arange(a, a + n) for a, n in zip(first[blocks], sizes[blocks], strict=True)]
        )
        block = np.repeat(np.arange(len(blocks)), sizes[blocks])
        within = counts[rows, :samples].sum(axis=1, dtype=np.float64)
        share = within / np.maximum(sums.sum(axis=1)[blocks][block] / sizes[blocks][block], 1e-9)
        mean = (level[block] * share)[:, None] * model.sizes[0]
        return cls(
            rows=rows,
            mean=np.maximum(mean, 0.5).astype(np.float32),
            unsure=unsure[block],
            dispersion=model.dispersion + LEAST_DISPERSION,
        )

    def share_of(self, first: Rows, stop: Rows, only_unsure: bool = False) -> Floats:
        """Return float64[spans]: the share of the rows of each that are common, or unsure."""
        rows = self.rows[self.unsure] if only_unsure else self.rows
        inside = np.searchsorted(rows, stop) - np.searchsorted(rows, first)
        return np.asarray(inside / (stop - first))

    def replace_in(self, expected: ExpectedCounts, rows: Rows, put: Any = np.asarray) -> None:
        """Set what is expected in the common ones of some rows, int64[n], ascending.

        put  copies an array of the host to where `expected` is
        """
        _, there, own = np.intersect1d(rows, self.rows, assume_unique=True, return_indices=True)
        if len(there):
            expected.mean[put(there)] = put(self.mean[own])
            expected.dispersion[put(there)] = self.dispersion


def _blocks(breaks: Mask, width: int) -> Rows:
    """Return the first rows of blocks of so many neighbours, or fewer before a break."""
    begins = np.flatnonzero(breaks | (np.arange(len(breaks)) == 0))
    stops = np.append(begins[1:], len(breaks))
    return np.concatenate([np.arange(a, b, width) for a, b in zip(begins, stops, strict=True)])


def _is_common(depths: Floats, typical: Floats) -> Mask:
    """Return bool[blocks]: whether many samples differ from the median one."""
    few = max(FEWEST, int(np.ceil(CARRIERS * depths.shape[1])))
    change = depths / np.maximum(typical, 1e-9)[:, None] - 1
    many = ((change > APART).sum(axis=1) >= few) | ((change < -APART).sum(axis=1) >= few)
    return np.asarray(many & (typical > 0.05 * np.median(typical)))


def _levels(depths: Floats, typical: Floats, found: Mask) -> tuple[Floats, Mask]:
    """Return the depth of two copies in the blocks that were found, and whether it is unsure."""
    alike = ~found & (typical > 0)
    others = depths[alike] / typical[alike, None]
    noise = NORMAL_MAD * float(np.median(np.abs(others - 1))) if alike.any() else 0.0
    noise = max(noise, LEAST_NOISE)
    logs = np.log(typical[alike]) if alike.any() else np.zeros(1)
    elsewhere = float(np.median(logs))
    spread = max(NORMAL_MAD * float(np.median(np.abs(logs - elsewhere))), LEAST_SPREAD)
    x = depths[found]
    # Between two clusters of samples the median may be neither's: both ends of the middle count.
    ends = np.quantile(x, [0.25, 0.5, 0.75], axis=1)
    levels = (ends[:, None] * CANDIDATES[None, :, None]).reshape(-1, len(x.T[0]))
    scores = np.array([_score(x, level, noise) for level in levels])
    scores -= (np.log(np.maximum(levels, 1e-9)) - elsewhere) ** 2 / (2 * spread**2)
    best = scores.argmax(axis=0)
    level = levels[best, np.arange(len(x))]
    rivals = np.where(np.abs(np.log(levels / level)) > np.log(1.2), scores, -np.inf).max(axis=0)
    return level, scores.max(axis=0) - rivals < SURE


def _score(depths: Floats, level: Floats, noise: float) -> Floats:
    """Return float64[blocks]: log-likelihoods of a level of two copies, by all samples."""
    share = depths / np.maximum(level, 1e-9)[:, None]
    deviation = noise * np.sqrt(np.maximum(COPIES / 2, 0.1))
    off = (share[:, :, None] - COPIES / 2) / deviation
    logs = CHANCES - np.minimum(off**2 / 2, 12) - np.log(deviation)
    most = logs.max(axis=2)
    found: Floats = (most + np.log(np.exp(logs - most[:, :, None]).sum(axis=2))).sum(axis=1)
    return found
