"""The input and the result of the hidden Markov model over copy numbers."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[Any]  # int32 or float64[regions, columns]
Floats = NDArray[np.float64]
Scores = NDArray[np.int32]
States = NDArray[np.int8]

STATES = 5  # none, one copy less, usual, one more, two more or above
USUAL = 2
CLASSES = 9  # copies 0 to 8 of a genotype
PREFERENCE = (2, 1, 3, 0, 4)  # states, the first of these where several are as likely
UNIT = 1024  # of whole scores, a nat
FORBIDDEN = -(2**24)  # score of a state that a sample cannot have
CAP = 25.0  # nats
TRIMMED_WORTH = 0.88  # variance of a plain mean by that of a mean without a fifth at either end
SHARE_OF_NONE = 0.02  # of the usual depth that is left without a copy: reads mapped wrongly
LEAST_MEAN = 0.5  # where no more is expected, counts tell nothing
LEAST_DISPERSION = 0.001
SHRINKAGE = 0.5  # of a region's dispersion towards the typical one
NORMAL_MAD = 1.4826  # standard deviation of a normal distribution over its MAD
MOST_LISTED = 64  # references of a sample, and samples of a spread
ENTER, STAY, LEAVE = range(3)  # columns of moves


@dataclass(frozen=True, eq=False)
class SampleModel:
    """Facts about samples from which their expected counts are made.

    Samples are the first columns of the counts; others are controls. Row 0 of an array with two
    rows is for most regions, row 1 for regions `inside` where everybody has two copies, as the
    pseudoautosomal ones; both are the same where there are none.
    """

    weights: Floats  # float64[2, columns]: count × weight = depth by two copies; not negative
    # int32[samples, K]: columns whose depths are a sample's reference, 1 ≤ K ≤ 64; a fifth at
    # either end of the sorted depths is left out, one of 3 or 4
    references: NDArray[np.int32]
    sizes: Floats  # float64[2, samples]: reference depth × size = expected count with usual copies
    copies: States  # int8[2, samples]: usual number of copies, at least 0
    noise: Floats  # float64[samples]: factor on the dispersion, above 0
    spread: NDArray[np.int32]  # int32[W]: samples whose spread tells the dispersion, 1 ≤ W ≤ 64
    dispersion: float  # typical one: variance beyond Poisson's over mean²; others shrink to it
    cap: float = CAP  # nats: a region makes no state likelier than another by more than this

    @property
    def samples(self) -> int:
        return len(self.noise)

    @property
    def cut(self) -> int:
        """Number of reference depths that are left out at either end."""
        count = int(self.references.shape[1])
        return max(count // 5, int(count > 2))

    @property
    def worth(self) -> float:
        """The number of depths whose plain mean is as precise as one of the middle depths."""
        return int(self.references.shape[1]) * (TRIMMED_WORTH if self.cut else 1.0)

    @property
    def folds(self) -> Floats:
        """float64[2, samples, STATES]: expected share of the usual count; 0: impossible state."""
        usual, states = self.copies[..., None], np.arange(STATES)
        copies = np.where(states > 0, usual + states - USUAL, 0)
        possible = np.where(usual > 0, (copies > 0) | (states == 0), states == USUAL)
        return np.asarray(np.where(possible, self._shares(copies), 0))

    @property
    def folds_of_classes(self) -> Floats:
        """float64[2, samples, CLASSES]: expected shares of 0, 1, … copies; 0: impossible."""
        return self._shares(np.arange(CLASSES))

    def _shares(self, copies: NDArray[Any]) -> Floats:
        usual = self.copies[..., None].astype(np.float64)
        shares = np.maximum(copies, SHARE_OF_NONE * usual) / np.maximum(usual, 1)
        return np.asarray(np.where(usual > 0, shares, copies == 0))

    def of(self, samples: slice) -> Self:
        """Return what `paths` needs to know of some of the samples."""
        return replace(
            self,
            sizes=self.sizes[:, samples],
            references=self.references[samples],
            copies=self.copies[:, samples],
            noise=self.noise[samples],
        )


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """Counts that samples should have with usual copies; arrays of NumPy, or CuPy on a device."""

    mean: Any  # float32[regions, samples]: at least 0.5
    dispersion: Any  # float32[regions]: variance beyond Poisson's over the squared mean


def rows_inside(inside: Any, regions: int) -> Any:
    """Return uint8[regions]: `inside`, or zeros."""
    return np.zeros(regions, np.uint8) if inside is None else np.asarray(inside, np.uint8)
