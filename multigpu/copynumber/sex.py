"""Sex chromosomes: how many copies of them a sample has."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.copynumber.calls import Floats
from multigpu.io.regions import Regions

X_NAMES, Y_NAMES = ("chrX", "X"), ("chrY", "Y")
MALE, FEMALE = "male", "female"
BETWEEN = 0.75  # of the coverage of autosomes: males have half of it on X, females all of it


def x_coverage(counts: NDArray[Any], regions: Regions) -> Floats | None:
    """float64[samples]: reads of a region of X by those of an autosomal one; None without X."""
    number = _number(regions, X_NAMES)
    if number is None:
        return None
    sexual = [n for n in (number, _number(regions, Y_NAMES)) if n is not None]
    autosomal = ~np.isin(regions.chrom, sexual)
    if not autosomal.any():
        return None
    base = counts[autosomal].mean(axis=0)
    on_x = counts[regions.chrom == number].mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = on_x / base
    return ratio


def inferred(coverage: Floats) -> tuple[str, ...]:
    """The sex of every sample by its coverage of X; empty where it has no reads."""
    return tuple(
        "" if np.isnan(value) else MALE if value < BETWEEN else FEMALE
        for value in coverage.tolist()
    )


def ploidy_on(name: str, sex: Sequence[str]) -> tuple[int, ...] | None:
    """Copies of a chromosome in every sample; None where all have two.

    Samples of unknown sex count as female. Where fewer than two samples have two copies of X
    there is nothing to compare with, and all are taken alike.
    """
    male = [each == MALE for each in sex]
    if name in X_NAMES and any(male) and len(male) - sum(male) >= 2:
        return tuple(1 if each else 2 for each in male)
    if name in Y_NAMES and not all(male) and any(male):
        return tuple(1 if each else 0 for each in male)
    return None


def _number(regions: Regions, names: Sequence[str]) -> int | None:
    return next((k for k, name in enumerate(regions.names) if name in names), None)
