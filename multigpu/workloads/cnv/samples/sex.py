"""Sexes of samples, inferred from their coverage, and the copies of X and Y that are usual."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts
from multigpu.kernels.compiled.parallel import cores
from multigpu.kernels.normalization import cpu as normalization
from multigpu.workloads.cnv.records import Floats
from multigpu.workloads.cnv.samples.genomes import (
    X_NAMES,
    Y_NAMES,
    Intervals,
    are_inside,
    chromosome_number,
    find_genome,
)

MALE, FEMALE = "male", "female"
# Coverage relative to autosomes: males have half of it on X and on Y, females all of it and none.
LEAST_OF_TWO_X = 0.75
LEAST_OF_Y = 0.25
# Much of Y has no sequence, or one that is found elsewhere, too. Regions in which no sample reaches
# LEAST_SEEN tell nothing. Where fewer than ENOUGH of all regions are left, there is no male, or Y
# cannot tell.
LEAST_SEEN = 0.2
ENOUGH = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Coverage:
    """Coverage of X and Y relative to the autosomes; NaN for samples without reads there."""

    x: Floats  # float64[samples]
    y: Floats | None = None  # float64[samples]; None without Y
    y_is_informative: bool = False  # whether Y can tell males from females

    def sexes(self) -> tuple[str, ...]:
        """Return the sex of every sample; empty for one without reads.

        A male has one X, or a Y. The lack of a Y is weaker than its presence: targets may have
        none, and cells lose it.
        """
        return tuple(
            "" if np.isnan(x) else MALE if x < LEAST_OF_TWO_X or has_y else FEMALE
            for x, has_y in zip(self.x.tolist(), self._has_y().tolist(), strict=True)
        )

    def shares(self) -> list[tuple[float, float]]:
        """Return the coverage of X and of Y of each sample; NaN where it is not known."""
        y = np.full(len(self.x), np.nan) if self.y is None else self.y
        return list(zip(self.x.tolist(), y.tolist(), strict=True))

    def disagreements(self) -> list[int]:
        """Return the samples whose X and Y tell different sexes."""
        if not self.y_is_informative:
            return []
        differ = (self.x < LEAST_OF_TWO_X) != self._has_y()
        return np.flatnonzero(differ & ~np.isnan(self.x)).tolist()

    def _has_y(self) -> NDArray[np.bool_]:
        if self.y is None or not self.y_is_informative:
            return np.zeros(len(self.x), np.bool_)
        return np.asarray(self.y >= LEAST_OF_Y)


def cohort_coverage(
    cases: Counts, controls: Counts | None, genome_name: str | None
) -> Coverage | None:
    """Return the coverage of each case and then control; None where it tells no sexes."""
    if controls is not None and len(controls.regions) != len(cases.regions):
        return None  # the job refuses them
    genome = find_genome(genome_name, cases.regions)
    tables = [table for table in (cases, controls) if table is not None]
    found = [coverage(each.values, cases.regions, genome.par if genome else ()) for each in tables]
    parts = [each for each in found if each is not None]
    if not parts:
        return None
    y = [part.y for part in parts if part.y is not None]
    return Coverage(
        x=np.concatenate([part.x for part in parts]),
        y=np.concatenate(y) if len(y) == len(parts) else None,
        y_is_informative=any(part.y_is_informative for part in parts),
    )


def coverage(counts: NDArray[Any], regions: Regions, par: Intervals = ()) -> Coverage | None:
    """Return reads of a region of X, and of Y, relative to an autosomal region.

    counts   int32 or float64[regions, samples], C-contiguous
    par      pseudoautosomal regions of X, which tell nothing
    returns  None without X or without autosomes
    """
    x, y = chromosome_number(regions, X_NAMES), chromosome_number(regions, Y_NAMES)
    if x < 0:
        return None
    autosomal, on_y = (regions.chrom != x) & (regions.chrom != y), regions.chrom == y
    on_x = (regions.chrom == x) & ~are_inside(par, regions.start, regions.end)
    if not (autosomal.any() and on_x.any()):
        return None
    table = normalization.CohortCounts(counts, cores())
    base, reads_of_x = (table.sums(rows).sum(axis=0) / rows.sum() for rows in (autosomal, on_x))
    with np.errstate(divide="ignore", invalid="ignore"):
        of_y, y_is_informative = _y_coverage(counts[on_y], base) if on_y.any() else (None, False)
        return Coverage(x=reads_of_x / base, y=of_y, y_is_informative=y_is_informative)


def _y_coverage(counts: NDArray[Any], base: Floats) -> tuple[Floats, bool]:
    """Return the coverage of the readable regions of Y, and whether these are enough.

    counts  [regions of Y, samples]
    base    float64[samples]: reads of an autosomal region
    """
    seen = np.zeros(len(counts), np.bool_)
    for column, reads in zip(counts.T, base.tolist(), strict=True):
        seen |= column >= max(LEAST_SEEN * reads, np.finfo(float).tiny)
    says = bool(seen.mean() >= ENOUGH)
    return counts[seen if says else slice(None)].mean(axis=0) / base, says


def is_sex_chromosome(name: str) -> bool:
    """Return whether a chromosome is X or Y."""
    return name in (*X_NAMES, *Y_NAMES)


def copies_on(name: str, sexes: Sequence[str]) -> tuple[int, ...] | None:
    """Return the usual copies of a chromosome in every sample; None where all have two.

    Samples of unknown sex count as female. Where all sexes are unknown they are not used.
    """
    if not any(sexes) or not is_sex_chromosome(name):
        return None
    on_x = name in X_NAMES
    copies = tuple(1 if each == MALE else 2 * on_x for each in sexes)
    return None if set(copies) == {2} else copies


def ploidy_for(copies: Sequence[int]) -> tuple[int, ...] | None:
    """Return the ploidies that normalization takes for these copies; None if all are the same.

    Normalization scales by samples of ploidy 2, two at least: if there are not enough with two
    copies, those with one copy count as such.
    """
    if len(set(copies)) == 1:
        return None
    for usual in (2, 1):
        if copies.count(usual) > 1:
            return tuple(2 * each // usual for each in copies)
    return None
