"""The input, the options and the result of a normalization."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

NORM_TYPES = ("poisson", "mean", "median", "quant", "mode")
SIZE_FACTORS = ("mean", "median", "quant", "mode")
DIPLOID = 2.0
PLOIDY_OF_NONE = 0.05  # what a ploidy of 0 counts as
SAMPLE = "<sample>"
BAD_COUNT = "a count is negative, infinite or not a number"

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class NormalizationError(ValueError):
    """Counts or options that cannot be normalized; the text says why.

    problem  with SAMPLE where the name of a sample belongs
    sample   its number, from 0 on; None: the text is about no sample
    """

    def __init__(self, problem: str, sample: int | None = None) -> None:
        super().__init__(problem, sample)
        self.problem, self.sample = problem, sample

    def __str__(self) -> str:
        return self.describe()

    def describe(self, samples: Sequence[str] | None = None) -> str:
        """The text with the sample's name in place or, without names, its number from 1 on."""
        if self.sample is None:
            return self.problem
        name = str(self.sample + 1) if samples is None else samples[self.sample]
        return self.problem.replace(SAMPLE, f"sample {name}")


class ChromosomeError(NormalizationError):
    """A chromosome cannot be normalized; others may."""


@dataclass(frozen=True)
class Normalization:
    """Options of a normalization; the names in R are given where they differ."""

    # what samples are brought to: "mean", "median" or "quant" of their size factors, the "mode" of
    # all counts, or "poisson": the mean, and then a level on which the variance between samples is
    # like the mean (normType)
    norm_type: str = "poisson"
    size_factor: str = "mean"  # a sample's; with "poisson" all but "mean" is "median" (sizeFactor)
    norm_quantile: float = 0.25  # of norm_type "quant", in [0, 1] (normQu)
    size_factor_quantile: float = 0.75  # of size_factor "quant", in [0, 1] (quSizeFactor)
    ploidy: tuple[int, ...] | None = None  # of each sample, whole numbers; None: all the same

    def __post_init__(self) -> None:
        _one_of("norm type", self.norm_type, NORM_TYPES)
        _one_of("size factor", self.size_factor, SIZE_FACTORS)
        _share("norm quantile", self.norm_quantile)
        _share("size factor quantile", self.size_factor_quantile)
        if any(each != int(each) or each < 0 for each in self.ploidy or ()):
            raise NormalizationError("ploidies must be whole numbers, 0 or more")

    @property
    def statistic(self) -> str:
        """The size factor's statistic that is really taken."""
        if self.norm_type == "poisson" and self.size_factor != "mean":
            return "median"
        return self.size_factor

    def ploidies(self, samples: int) -> Floats:
        """Return float64[samples]: 2 where all are the same, 0.05 for 0. Raises the error above."""
        ploidy = np.full(samples, DIPLOID) if self.ploidy is None else np.array(self.ploidy, float)
        if len(ploidy) != samples:
            raise NormalizationError(f"{len(ploidy)} ploidies for {samples} samples")
        if (ploidy == ploidy[:1]).all():
            ploidy[:] = DIPLOID
        if (ploidy == DIPLOID).sum() < 2:
            raise NormalizationError(
                "normalization needs two samples or more, and two of ploidy 2 where they differ"
            )
        ploidy[ploidy == 0] = PLOIDY_OF_NONE
        return ploidy


@dataclass(frozen=True)
class SizeFactors:
    """Factors by which each sample's counts are multiplied on each chromosome."""

    factors: Floats  # float64[chromosomes, samples]: 1 where a chromosome could not be normalized
    notes: tuple[str, ...]  # what the user should know


class Statistics(Protocol):
    """Measurements by a backend on the counts of some samples on one chromosome.

    All but `dispersion` look at the used regions only: those where some of these samples has a
    count of at least 1.
    """

    def used(self) -> Mask:
        """Return bool[regions of the chromosome]: which regions are used."""

    def means(self) -> Floats:
        """Return float64[samples]."""

    def quantiles(self, share: float) -> Floats:
        """Return float64[samples]: of type 7, as R's default."""

    def modes(self) -> Floats:
        """Return float64[samples]: the most frequent count that is not 0, NaN where all are."""

    def mode(self) -> float:
        """Return the most frequent count that is not 0 of all samples together."""

    def dispersion(self, factors: Floats) -> float:
        """Return the mode of the used regions' variance-to-mean ratios, counts times `factors`."""


class Backend(Protocol):
    """Counts of all regions and samples, and how they are measured."""

    shape: tuple[int, int]  # regions and samples

    def statistics(self, block: slice, samples: Sequence[int]) -> Statistics:
        """Return the statistics of one chromosome and these samples."""

    def totals(self) -> Floats:
        """Return float64[samples]: the sum over all regions."""

    def median(
        self, rows: Mask, samples: Sequence[int], blocks: Sequence[slice], factors: Floats
    ) -> float:
        """Return the median of counts times factors[chromosome, sample] where `rows` is true."""


def _one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise NormalizationError(f"{name} {value!r}: must be one of {', '.join(allowed)}")


def _share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise NormalizationError(f"{name} {value}: must be between 0 and 1")


def check_shape(counts: Any) -> None:
    """Raise NormalizationError for fewer than two samples."""
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise NormalizationError("normalization needs counts of at least two samples")


def checked(counts: Any) -> Any:
    """Return the counts. Raises NormalizationError where one is negative, NaN or infinite."""
    check_shape(counts)
    if counts.size and not (counts.min() >= 0 and counts.max() < np.inf):
        raise NormalizationError(BAD_COUNT)
    return counts


def groups(ploidy: Floats) -> list[list[int]]:
    """Return samples by float64[samples], their ploidy: the diploid ones first, then by ploidy."""
    each = sorted(set(ploidy.tolist()), key=lambda value: (value != DIPLOID, value))
    return [np.flatnonzero(ploidy == value).tolist() for value in each]
