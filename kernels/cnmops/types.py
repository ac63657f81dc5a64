"""The input, the options and the result of a copy-number model."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FOLD_CHANGES = (0.025, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
Kind = Literal["cohort", "single", "reference"]
FLOORS: dict[Kind, float] = {"cohort": 1e-100, "single": 1e-15, "reference": 1e-100}
LEAST_LEVEL = 1e-10  # of a median; below it a region starts at the mean, or 1
LEAST_REFERENCE = 1e-5
MAIN_AT_START, OTHERS_AT_START = 0.6, 0.05  # weights of the classes
MOST_CLASSES = 64


class ModelError(ValueError):
    """Counts or options that cannot be modelled; the text says why."""


@dataclass(frozen=True)
class Model:
    """Options of the model; the names in R are given where they differ."""

    fold_changes: tuple[float, ...] = FOLD_CHANGES  # of each class to the main one, above 0 (I)
    main: int = 2  # the class that is expected: CN2, in haploids CN1
    prior_impact: float = 1.0  # the weight of the main class in the Dirichlet prior (priorImpact)
    cycles: int = 20  # of expectation maximisation, at least one (cyc)
    min_read_count: float = 5.0  # a region needs a count above it to be modelled (minReadCount)
    posterior: bool = False  # whether the posterior of all classes is wanted (returnPosterior)
    # "cohort": levels are estimated from the samples; "single", "reference": they are given
    kind: Kind = "cohort"
    compat_r: bool = False  # "reference" with several cases: hand the prior's weights out as R does

    def __post_init__(self) -> None:
        if not 0 <= self.main < self.classes <= MOST_CLASSES:
            raise ModelError(f"{self.classes} classes with the main one at {self.main}")

    @property
    def classes(self) -> int:
        return len(self.fold_changes)

    @property
    def floor(self) -> float:
        """The least likelihood of a class: lower ones are raised to it."""
        return FLOORS[self.kind]

    def changes(self) -> Floats:
        """float64[classes]: the fold changes."""
        return np.array(self.fold_changes)

    def start(self) -> Floats:
        """float64[classes]: the weights of the classes before the first cycle."""
        weights = np.full(self.classes, OTHERS_AT_START)
        weights[self.main] = MAIN_AT_START
        return np.asarray(weights / weights.sum())

    def prior(self) -> Floats:
        """float64[classes]: what is added to the mean posteriors."""
        return np.where(np.arange(self.classes) == self.main, float(self.prior_impact), 0.0)

    def weights(self, samples: int) -> Floats:
        """float64[classes, samples]: the prior where the level is given, of each case."""
        weights = 1 + self.prior()
        weights /= weights.sum()
        order = np.arange(self.classes)[:, None] + np.zeros(samples, np.int64)
        if self.compat_r:
            order = np.arange(self.classes * samples).reshape(self.classes, -1) % self.classes
        return np.asarray(weights[order])


@dataclass(frozen=True)
class Result:
    """Arrays of NumPy, or of CuPy where the model ran on a device."""

    level: Any  # float64[regions]: the rate of the class with fold change 1
    alpha: Any  # float64[regions, classes]: weights of the classes
    ini: Any  # float64[regions]: how informative the region is: I/NI
    sini: Any  # float64[regions, samples]: signed I/NI; a sample's lie side by side (F order)
    cn_index: Any  # int8[regions, samples]: the likeliest class, the first on a tie; F order
    posterior: Any  # float64[regions, classes, samples], or None where it was not asked for
    fold_changes: Any  # float64[classes]

    @property
    def lambda_(self) -> Any:
        """float64[regions, classes]: the rates of the classes."""
        return self.level[:, None] * self.fold_changes


def checked(counts: Any, cov: Any, scale: Any, options: Model) -> Any:
    """Return the counts. Raises ModelError where shapes, coverages or scales cannot be right."""
    samples = counts.shape[1] if counts.ndim == 2 else 0
    if options.kind == "cohort" and samples < 2:
        raise ModelError("a cohort needs counts of at least two samples")
    for name, values in (("coverages", cov), ("size factors", scale)):
        if values is not None and np.shape(values) != (samples,):
            raise ModelError(f"{np.size(values)} {name} for {samples} samples")
        if values is not None and not (np.isfinite(values) & (values > 0)).all():
            raise ModelError(f"{name} must be above 0 and finite")
    return counts


def checked_level(level: Any, counts: Any) -> Any:
    """Return the levels. Raises ModelError where there is not one for every region."""
    if level.shape != counts.shape[:1]:
        raise ModelError(f"levels of shape {level.shape} for {len(counts)} regions")
    return level


def ones_or(values: Floats | None, samples: int) -> Floats:
    """Return float64[samples]: the values, if there are any, else ones."""
    return np.ones(samples) if values is None else np.array(values, np.float64)
