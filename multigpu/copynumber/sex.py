"""Sex chromosomes: how many copies of them a sample has."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.normalization import cpu as normalization
from multigpu.copynumber.calls import Floats, Indices, Rows
from multigpu.copynumber.genomes import X_NAMES, Y_NAMES, Places, inside, number
from multigpu.io.regions import Regions

MALE, FEMALE = "male", "female"
BETWEEN = 0.75  # of the coverage of autosomes: males have half of it on X, females all of it


def x_coverage(counts: NDArray[Any], regions: Regions, par: Places = ()) -> Floats | None:
    """float64[samples]: reads of a region of X by those of an autosomal one; None without X.

    counts  int32 or float64[regions, samples], C-contiguous
    par     pseudoautosomal regions of X, which say nothing
    """
    x, y = number(regions, X_NAMES), number(regions, Y_NAMES)
    if x < 0:
        return None
    autosomal = (regions.chrom != x) & (regions.chrom != y)
    on_x = (regions.chrom == x) & ~inside(par, regions.start, regions.end)
    if not (autosomal.any() and on_x.any()):
        return None
    table = normalization.Counts(counts, len(os.sched_getaffinity(0)))
    base, of_x = (table.sums(rows).sum(axis=0) / rows.sum() for rows in (autosomal, on_x))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = of_x / base
    return ratio


def inferred(coverage: Floats) -> tuple[str, ...]:
    """The sex of every sample by its coverage of X; empty where it has no reads."""
    return tuple(
        "" if np.isnan(value) else MALE if value < BETWEEN else FEMALE
        for value in coverage.tolist()
    )


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
