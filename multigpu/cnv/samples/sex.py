"""Sex chromosomes: how many copies of them a sample has."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cnv.calls.calls import Floats, Indices, Rows
from multigpu.cnv.samples.genomes import X_NAMES, Y_NAMES, Places, inside, number
from multigpu.formats.alignments.regions import Regions
from multigpu.kernels.normalization import cpu as normalization

MALE, FEMALE = "male", "female"
# Shares of the coverage of autosomes: males have half of it on X and on Y, females all and nothing.
BETWEEN = 0.75  # on X
PRESENT = 0.25  # on Y
# Much of Y has no sequence, or one that is elsewhere, too. Regions where no sample reaches SEEN say
# nothing; where fewer than ENOUGH of all regions are left, there is no male here, or Y cannot tell.
SEEN = 0.2
ENOUGH = 0.1


@dataclass(frozen=True, eq=False)
class Coverage:
    """Coverage of X and Y by that of the autosomes; NaN of samples without reads there.

    x       float64[samples]
    y       float64[samples]; None without Y
    y_says  whether Y can tell males from females
    """

    x: Floats
    y: Floats | None = None
    y_says: bool = False

    @classmethod
    def joined(cls, parts: "Sequence[Coverage]") -> "Coverage":
        """Of several tables with the same regions, one after the other."""
        y = [part.y for part in parts if part.y is not None]
        every = np.concatenate(y) if len(y) == len(parts) else None
        return cls(
            np.concatenate([part.x for part in parts]), every, any(part.y_says for part in parts)
        )

    def sexes(self) -> tuple[str, ...]:
        """The sex of every sample; empty where it has no reads.

        Male is who has one X, or a Y. The lack of a Y is weaker than its presence: targets may have
        none, and cells lose it.
        """
        return tuple(
            "" if np.isnan(x) else MALE if x < BETWEEN or has_y else FEMALE
            for x, has_y in zip(self.x.tolist(), self._has_y().tolist(), strict=True)
        )

    def disagreements(self) -> list[int]:
        """The samples of which X and Y say different things."""
        if not self.y_says:
            return []
        differ = (self.x < BETWEEN) != self._has_y()
        return np.flatnonzero(differ & ~np.isnan(self.x)).tolist()

    def _has_y(self) -> NDArray[np.bool_]:
        if self.y is None or not self.y_says:
            return np.zeros(len(self.x), np.bool_)
        return np.asarray(self.y >= PRESENT)


def coverage(counts: NDArray[Any], regions: Regions, par: Places = ()) -> Coverage | None:
    """Reads of a region of X, and of Y, by those of an autosomal one; None without X or autosomes.

    counts  int32 or float64[regions, samples], C-contiguous
    par     pseudoautosomal regions of X, which say nothing
    """
    x, y = number(regions, X_NAMES), number(regions, Y_NAMES)
    if x < 0:
        return None
    autosomal, on_y = (regions.chrom != x) & (regions.chrom != y), regions.chrom == y
    on_x = (regions.chrom == x) & ~inside(par, regions.start, regions.end)
    if not (autosomal.any() and on_x.any()):
        return None
    table = normalization.Counts(counts, len(os.sched_getaffinity(0)))
    base, of_x = (table.sums(rows).sum(axis=0) / rows.sum() for rows in (autosomal, on_x))
    with np.errstate(divide="ignore", invalid="ignore"):
        on_y_of = _y_coverage(counts[on_y], base) if on_y.any() else (None, False)
        return Coverage(of_x / base, *on_y_of)


def _y_coverage(counts: NDArray[Any], base: Floats) -> tuple[Floats, bool]:
    """Coverage of the regions of Y that can be read, and whether they are enough to say something.

    counts  [regions of Y, samples]
    base    float64[samples]: reads of an autosomal region
    """
    seen = np.zeros(len(counts), np.bool_)
    for column, reads in zip(counts.T, base.tolist(), strict=True):
        seen |= column >= max(SEEN * reads, np.finfo(float).tiny)
    says = bool(seen.mean() >= ENOUGH)
    return counts[seen if says else slice(None)].mean(axis=0) / base, says


def is_sexual(name: str) -> bool:
    return name in (*X_NAMES, *Y_NAMES)


def copies_on(name: str, sex: Sequence[str]) -> tuple[int, ...] | None:
    """Copies of a chromosome that are usual in every sample; None where these are two in all.

    Samples of unknown sex count as female. Where all are unknown nothing is done by it.
    """
    if not any(sex) or not is_sexual(name):
        return None
    on_x = name in X_NAMES
    copies = tuple(1 if each == MALE else 2 * on_x for each in sex)
    return None if set(copies) == {2} else copies


def ploidy_of(copies: Sequence[int]) -> tuple[int, ...] | None:
    """What normalization takes for these copies; None where it takes all alike.

    Two samples of ploidy 2 are what the others are scaled by: those of the other sex, where there
    are not enough of one.
    """
    if len(set(copies)) == 1:
        return None
    for usual in (2, 1):
        if copies.count(usual) > 1:
            return tuple(2 * each // usual for each in copies)
    return None


@dataclass(frozen=True, eq=False)
class Usual:
    """Copies that are usual, where these go by sex.

    copies  int8[chromosomes, samples]: 0 of what is not looked at
    x, par  the number of chromosome X, and its pseudoautosomal regions; -1 and () if unknown
    """

    copies: NDArray[np.int8]
    x: int = -1
    par: Places = ()

    def of(self, chrom: Indices, start: Rows, end: Rows) -> NDArray[np.int8]:
        """int8[n, samples]: in each of these stretches."""
        found = self.copies[chrom]
        paired = (chrom == self.x) & inside(self.par, start, end)
        found[paired] = 2 * (found[paired] > 0)
        return found

    def of_samples(
        self, chrom: Indices, start: Rows, end: Rows, sample: Indices
    ) -> NDArray[np.int8]:
        """int8[n]: in each of these stretches, of one sample each."""
        found = self.copies[chrom, sample]
        paired = (chrom == self.x) & inside(self.par, start, end)
        found[paired] = 2 * (found[paired] > 0)
        return found
