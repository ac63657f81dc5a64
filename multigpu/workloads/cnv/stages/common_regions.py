"""Regions where many samples have other copies than two, so that the cohort misleads.

Reference samples tell what is usual, not what two copies are: with a loss in half of the cohort,
the other half would seem to have a gain. Here neighbouring regions are taken together as blocks,
and the depth of two copies is what explains the depths of all samples best as multiples of its
half. Where depths of regions are much alike, as in genomes, two copies have about the depth they
have elsewhere; where they are not, as in panels, that tells little, and what cannot be told is
flagged.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.hmm.levels import likeliest_copies, likelihoods
from multigpu.kernels.hmm.types import (
    LEAST_DISPERSION,
    LEAST_MEAN,
    NORMAL_MAD,
    ExpectedCounts,
    SampleModel,
)
from multigpu.workloads.cnv.records import Copies, Floats, Mask, Rows
from multigpu.workloads.cnv.samples.reference_samples import LEAST_SPREAD

LEAST_SAMPLES = 5
READS = 1000.0  # of a block in the median sample
ROWS = (3, 20)  # regions of a block
FEWEST, CARRIERS = 2, 0.05  # samples at either end that are apart: their number and share at least
APART = 1.25  # factor between their depths
MAJORITY = 0.8  # share of samples that have two copies, unless their depth says otherwise
DEPTH_SAYS = 1.5  # nats
ALIKE = 0.75  # share of samples with the same copies in neighbouring blocks of one change
COMMON = 0.2  # share of samples with other copies than two
OUTSIDE = 2  # blocks beyond those of a change in which it may end
LEAST_NOISE = 0.02  # of depths, relative
LEAST_BLOCKS = 50  # that tell how much their depths vary: of those, 95 % within twice as much
LEAST_LEVEL = 0.05  # of the usual depth: below it nothing is told
CANDIDATES = np.array([1 / 2, 2 / 3, 1.0, 4 / 3, 2.0])  # levels of two copies by the median one
COPIES = np.arange(5)
CLUSTERED = 5.0  # nats by which multiples of a level explain samples better than one cluster
BATCH = 3.0  # times as large as noise are squared differences between batches elsewhere
BATCH_SIZE = 3  # samples at least
ROOM = 0.5  # of the difference between neighbouring copies that is free of samples
SURE = 3.0  # nats by which one level is better than all others
ONE_LEVEL = 1.2  # factor within which levels are the same
NONE_LEFT = 0.05  # copies, in place of none
TINY = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class CommonRegions:
    """Regions of a chromosome in which a change is common.

    rows        int64[n], ascending
    mean        float32[n, samples]: what samples should have with their usual copies
    unsure      bool[n]: whether the level of two copies cannot be told
    dispersion  of these regions, which their spread does not tell
    """

    rows: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    mean: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))
    unsure: Mask = field(default_factory=lambda: np.empty(0, np.bool_))
    dispersion: float = 0.0

    @classmethod
    def of(
        cls,
        counts: NDArray[Any],
        model: SampleModel,
        elsewhere: tuple[float, float],
        breaks: Mask,
    ) -> Self:
        """Return those of a chromosome where all samples have the same usual copies.

        counts     int32 or float64[regions, columns] in the order of the model
        elsewhere  middle and spread of the logarithms of depths of two copies in all regions
        breaks     bool[regions]: regions that are no neighbours of those before them
        """
        if model.samples < LEAST_SAMPLES or not len(counts):
            return cls()
        blocks = _Blocks.of(counts[:, : model.samples], model.sizes[0], elsewhere, breaks)
        runs = [*blocks.runs()] if blocks is not None else []
        if blocks is None or not runs:
            return cls()
        parts = [blocks.means(*run) for run in runs]
        rows = np.concatenate([part[0] for part in parts])
        _, once = np.unique(rows, return_index=True)
        unsure = np.concatenate(
            [np.full(len(p[0]), blocks.unsure[r[0]]) for p, r in zip(parts, runs, strict=True)]
        )
        return cls(
            rows=rows[once],
            mean=np.concatenate([part[1] for part in parts])[once],
            unsure=unsure[once],
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


@dataclass(frozen=True, eq=False, kw_only=True)
class _Blocks:
    """Blocks of neighbouring regions in which many samples are apart.

    counts  [regions, samples] of the chromosome
    sizes   float64[samples] of the samples
    border  int64[all blocks + 1]: first rows of all blocks, and the end
    breaks  bool[all blocks]: those that are no neighbours of the one before
    number  int64[blocks]: numbers of these among all
    level   float64[blocks]: depth of two copies
    copies  float64[blocks, samples]
    unsure  bool[blocks]: whether another level explains the samples nearly as well
    """

    counts: NDArray[Any]
    sizes: Floats
    border: Rows
    breaks: Mask
    number: Rows
    level: Floats
    copies: Floats
    unsure: Mask

    @classmethod
    def of(
        cls, counts: NDArray[Any], sizes: Floats, elsewhere: tuple[float, float], breaks: Mask
    ) -> "Self | None":
        usual = float(np.median(counts[:: max(1, len(counts) // 4096)]))
        width = int(np.clip(np.ceil(READS / max(usual, 1.0)), *ROWS))
        first = _first_rows(breaks, width)
        border = np.append(first, len(counts))
        depths = _sums_of_rows(counts, border) / np.diff(border)[:, None]
        depths /= sizes  # in place: it is large
        few = max(FEWEST, int(np.ceil(CARRIERS * len(sizes))))
        low, high = (len(sizes) - 1) // 2, len(sizes) // 2  # the median
        ordered = np.partition(depths, sorted({few - 1, low, high, len(sizes) - few}), axis=1)
        typical = (ordered[:, low] + ordered[:, high]) / 2
        found = ordered[:, -few] > APART * ordered[:, few - 1]
        found &= ordered[:, -few] > LEAST_LEVEL * np.exp(elsewhere[0])
        if not found.any():
            return None
        alike = ~found & (typical > 0)
        relative = depths[alike] / typical[alike, None]
        off = np.abs(relative - 1)
        noise = max(NORMAL_MAD * float(np.median(off)) if len(off) else 0.0, LEAST_NOISE)
        middle, spread = elsewhere
        told = np.log(typical[~found & (typical > LEAST_LEVEL * np.exp(middle))])
        if len(told) >= LEAST_BLOCKS:  # blocks are more alike than regions
            own = float(np.quantile(np.abs(told - middle), 0.95)) / 2
            spread = min(spread, max(own, LEAST_SPREAD))
        level, copies, unsure, is_clustered = _levels(depths[found], noise, (middle, spread))
        most = (copies[:, :, None] == COPIES).mean(axis=1).max(axis=1)
        common = is_clustered & ((copies != 2).mean(axis=1) >= COMMON)
        there, here = (
            ((np.log(x) - middle) / spread) ** 2 / 2
            for x in (level, np.maximum(typical[found], TINY))
        )
        common &= (most < MAJORITY) | (here - there > DEPTH_SAYS)
        common[common] = ~_are_batches(copies[common], relative.T.copy(), noise)
        return cls(
            counts=counts,
            sizes=sizes,
            border=border,
            breaks=breaks[first],
            number=np.flatnonzero(found)[common],
            level=level[common],
            copies=np.maximum(copies[common], NONE_LEFT),
            unsure=unsure[common],
        )

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last of these blocks that are neighbours and have like copies.

        One block beside others with other copies is mixed: the change ends in it.
        """
        is_apart = (np.diff(self.number) > 1) | self.breaks[self.number[1:]]
        alike = (self.copies[1:] == self.copies[:-1]).mean(axis=1) >= ALIKE
        begins = np.flatnonzero(np.append(True, is_apart | ~alike)[: len(self.number)])
        lasts = np.append(begins, len(self.number))[1:] - 1
        is_mixed = np.append(False, ~is_apart)  # whether a block has a neighbour before it
        for first, last in zip(begins.tolist(), lasts.tolist(), strict=True):
            has_neighbour = is_mixed[first] or (last + 1 < len(is_mixed) and is_mixed[last + 1])
            if last > first or not has_neighbour:
                yield first, last

    def means(self, first: int, last: int) -> tuple[Rows, NDArray[np.float32]]:
        """Return the rows of blocks that are neighbours, and what samples should have there.

        The borders are where the copies of the samples explain the counts better than the same
        copies in all do, up to two blocks outside.
        """
        begin = self._border(first, -1)
        stop = self._border(last, 1)
        rows = np.arange(begin, stop)
        block = np.searchsorted(self.border[self.number[first : last + 1]], rows, "right") - 1
        copies = self.copies[first + np.maximum(block, 0)]
        weights = copies * self.sizes
        two = 2 * self.counts[rows].sum(axis=1, dtype=np.float64) / weights.sum(axis=1)
        mean = np.maximum(two[:, None] * self.sizes, LEAST_MEAN)
        return rows, mean.astype(np.float32)

    def _border(self, block: int, side: int) -> int:
        """Return the row at which a change ends, on one side (-1 or 1) of a block."""
        number = int(self.number[block])
        first, last = number, number + 1
        middle = (self.border[first] + self.border[last]) // 2
        if side > 0:
            while last - number <= OUTSIDE and last < len(self.breaks) and not self.breaks[last]:
                last += 1
            rows = np.arange(middle, self.border[last])
        else:
            while number - first < OUTSIDE and first > 0 and not self.breaks[first]:
                first -= 1
            rows = np.arange(middle - 1, self.border[first] - 1, -1)
        weights = self.copies[block] * self.sizes
        better = np.log(weights / weights.sum()) - np.log(self.sizes / self.sizes.sum())
        gained = np.append(0.0, np.cumsum(self.counts[rows] @ better))
        taken = int(gained.argmax())
        return int(middle + taken if side > 0 else middle - taken)


def _first_rows(breaks: Mask, width: int) -> Rows:
    """Return the first rows of blocks of so many neighbours, or fewer before a break."""
    begins = np.union1d(0, np.flatnonzero(breaks))
    stops = np.append(begins[1:], len(breaks))
    parts = [np.arange(a, b, width) for a, b in zip(begins, stops, strict=True)]
    return np.concatenate(parts)


def _sums_of_rows(counts: NDArray[Any], border: Rows) -> NDArray[Any]:
    """Return [blocks, samples]: sums of the rows between borders, most of them equally far apart.

    Ten times as fast as `np.add.reduceat`.
    """
    width = np.diff(border)
    changes = np.flatnonzero(np.diff(width, prepend=0, append=0))
    sums = [
        counts[border[a] : border[b]].reshape(b - a, width[a], -1).sum(axis=1)
        for a, b in pairwise(changes.tolist())
    ]
    return np.concatenate(sums)


def _levels(
    depths: Floats, noise: float, elsewhere: tuple[float, float]
) -> tuple[Floats, Copies, Mask, Mask]:
    """Return the depth of two copies, and copies, of float64[blocks, samples].

    Besides, whether another level is nearly as good, and whether multiples of half of the level
    explain the samples better than one cluster of any width does.
    """
    # Between two clusters of samples the median may be neither's: both ends of the middle count.
    ends = np.quantile(depths, [0.1, 0.25, 0.5, 0.75, 0.9], axis=1)
    levels = np.concatenate([np.maximum(each * CANDIDATES[:, None], TINY) for each in ends])
    usual = np.maximum(ends[2], ends[4] / 2)
    likely = likelihoods(depths, levels, usual, noise)
    middle, spread = elsewhere
    scores = likely - (np.log(levels) - middle) ** 2 / (2 * spread**2)
    best, blocks = scores.argmax(axis=0), np.arange(len(depths))
    level = levels[best, blocks]
    other = np.abs(np.log(levels / level)) > np.log(ONE_LEVEL)
    rivals = np.where(other, scores, -np.inf).max(axis=0)
    width = np.maximum(depths.std(axis=1), noise * level)
    one_cluster = -depths.shape[1] * (np.log(width) + 0.5)
    copies = likeliest_copies(depths, level, usual, noise)
    is_clustered = likely[best, blocks] - one_cluster > CLUSTERED
    is_clustered[is_clustered] = _are_apart(*(x[is_clustered] for x in (depths, copies, level)))
    return level, copies, scores[best, blocks] - rivals < SURE, is_clustered


def _are_batches(copies: Copies, others: Floats, noise: float) -> Mask:
    """Return whether samples with most and with fewest copies differ in other blocks, too.

    So do batches of samples, in all blocks a little, and by chance a lot in some.

    copies  of samples in blocks, [blocks, samples]
    others  float64[samples, others]: relative depths in blocks where samples are alike
    noise   of these depths
    """
    found = np.zeros(len(copies), np.bool_)
    if not others.size or not len(copies):
        return found
    limit = max(BATCH, 1 + 4 * np.sqrt(2 / others.shape[1]))
    for k, each in enumerate(copies):
        values, number = np.unique(each, return_counts=True)
        values = values[number >= BATCH_SIZE]
        if len(values) > 1:
            low, high = (each == value for value in (values[0], values[-1]))
            off = others[high].mean(axis=0) - others[low].mean(axis=0)
            usual = noise**2 * (1 / high.sum() + 1 / low.sum())
            found[k] = (off**2).mean() > limit * usual
    return found


def _are_apart(depths: Floats, copies: Copies, level: Floats) -> Mask:
    """Return bool[blocks]: whether there is room between samples with one copy more or less."""
    ordered = np.take_along_axis(depths, np.lexsort((depths, copies)), axis=1)
    number = (copies[:, :, None] == COPIES).sum(axis=1)
    first, last = np.cumsum(number, axis=1) - number, number - 1  # -1 for none, which is not used

    def quantiles(share: float) -> Floats:
        """Return float64[blocks, copies]: of the depths of the samples with each, of R's type 7."""
        place = share * np.maximum(last, 0)
        low = np.floor(place).astype(np.int64)
        at = (first + np.minimum(each, last) for each in (low, low + 1))
        here, there = (np.take_along_axis(ordered, each, axis=1) for each in at)
        return np.asarray(here + (place - low) * (there - here))

    room = quantiles(0.1)[:, 1:] - quantiles(0.9)[:, :-1] >= ROOM * level[:, None] / 2
    is_few = np.minimum(number[:, 1:], number[:, :-1]) < FEWEST
    return np.asarray((room | is_few).all(axis=1))
