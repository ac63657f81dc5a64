"""Samples of a kept cohort with which new samples are compared by the hidden Markov model."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_zarr import CountsStore
from multigpu.workloads.cnv.records import Floats
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.samples.reference_samples import LEAST_DEPTH, correlations
from multigpu.workloads.cnv.samples.sex import FEMALE, MALE, cohort_coverage, is_sex_chromosome

NEAREST, OF_A_SEX = 24, 12  # samples for each case; those of either sex at least, for X and Y


def nearest_controls(
    cases: Counts, store: CountsStore, cohort: Cohort, wanted: str | int
) -> tuple[Counts, Cohort]:
    """Return the samples of a kept cohort that vary most as the cases do, and what is known then.

    cohort  the cases, and all samples of the store as their controls
    wanted  number of reference samples: "auto", "all" (then these are all samples), or a number
    """
    number = len(store.samples) if wanted == "all" else NEAREST
    number = max(number, 2 * wanted) if isinstance(wanted, int) else number
    if number >= len(store.samples) or len(cases.regions) != len(store.regions):
        return store.counts(), cohort
    chosen = _nearest(cases, store, number)
    names = tuple(store.samples[k] for k in chosen)
    kept = [*range(len(cases.samples)), *(len(cases.samples) + k for k in chosen)]

    ploidy = None if cohort.ploidy is None else tuple(cohort.ploidy[k] for k in kept)
    sexes = tuple(cohort.sexes[k] for k in kept) if cohort.sexes else ()
    return store.counts(chosen), replace(cohort, controls=names, ploidy=ploidy, sexes=sexes)


def autosomal_correlations(regions: Regions, counts: NDArray[Any]) -> Floats:
    """Return float64[columns, columns]: how alike columns vary; of all regions without autosomes.

    counts  [regions, columns]
    """
    names = [not is_sex_chromosome(name) for name in regions.names]
    is_autosomal = np.array(names, np.bool_)[regions.chrom]
    counts = counts[is_autosomal] if is_autosomal.any() else counts
    return correlations(counts / np.maximum(counts.mean(axis=0), LEAST_DEPTH))


def _nearest(cases: Counts, store: CountsStore, number: int) -> list[int]:
    """Return the numbers of samples of a store, ascending."""
    rows, kept = store.read("subset"), np.ascontiguousarray(store.read("subset_counts").T)
    regions = store.regions.take(rows)
    alike = autosomal_correlations(regions, np.hstack([cases.values[rows], kept]))
    coverage = cohort_coverage(Counts(regions, store.samples, kept), None, None)
    sexes = np.array(coverage.sexes() if coverage else [""] * len(store.samples))
    first, chosen = len(cases.samples), set[int]()
    for nearest in np.argsort(-alike[:first, first:], axis=1, kind="stable"):
        chosen.update(nearest[:number].tolist())
        for sex in (MALE, FEMALE):
            chosen.update(nearest[sexes[nearest] == sex][:OF_A_SEX].tolist())
    return sorted(chosen)
