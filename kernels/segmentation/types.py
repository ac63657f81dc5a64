"""The input, the options and the result of a segmentation."""

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

LEAST_VARIANCE = 1e-15  # a track's variance, and what is added to that of a difference of means
LEAST_WEIGHT = 0.01
NOTE_INFINITE = "infinite values were replaced by the largest or smallest finite one of their track"
NOTE_NAN = "values that are not a number were replaced by 0"


class TrackError(ValueError):
    """A track that cannot be segmented: its number, and why."""

    def __init__(self, track: int, problem: str) -> None:
        super().__init__(track, problem)
        self.track, self.problem = track, problem

    def __str__(self) -> str:
        return f"track {self.track}: {self.problem}"


ONE_VALUE = "it has one region only, from which no thresholds can be taken: they must be given"
NOTHING_FINITE = "it has infinite values and no finite one"


@dataclass(frozen=True)
class Segmentation:
    """Parameters of the fast segmentation, and in brackets what cn.mops calls them.

    Raises ValueError for an alpha not above 0, a negative delta, what is not finite, and thresholds
    of gains below those of losses.
    """

    alpha: float = 0.05  # (alpha) share of all positions that are breaks, below 1; or their number
    # (eps) breaks are tried where neighbours differ by more; None: a track's 0.75 quantile of that
    eps: float | None = None
    delta: int = 20  # (delta) windows stop growing after this many and one more that gained nothing
    max_window: int = 40  # (maxInt) largest window on a side, less one; min_segment + 5 or more
    min_segment: int = 3  # (minSeg) shortest gain or loss, smallest window less one; at least 2
    # (cyberWeight) values that the variance of the track counts for in a window's; 0.01 or more
    cyber_weight: float = 50.0
    # (segMedianT) medians above the first are gains, below the second losses; one number T is (|T|,
    # -|T|); None: twice the standard deviation of each track. Where both are 0, nothing is merged
    thresholds: float | tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not (0 < self.alpha < 2**62):
            raise ValueError(
                f"alpha is {self.alpha}: a share of the positions between 0 and 1, or a number of"
                " breaks, is needed"
            )
        if self.delta < 0:
            raise ValueError(f"delta is {self.delta}: it cannot be negative")
        others = (self.eps or 0.0, self.cyber_weight, *(self.limits or ()))
        if not all(isfinite(value) for value in others):
            raise ValueError("eps, cyber_weight and thresholds must be finite")
        if self.limits and self.limits[0] < self.limits[1]:
            raise ValueError(f"thresholds are {self.limits}: that of gains is below that of losses")

    @property
    def shortest(self) -> int:
        """The shortest gain or loss that is kept."""
        return max(2, self.min_segment)

    @property
    def largest(self) -> int:
        """The largest window is one longer than this."""
        return max(self.max_window, self.shortest + 5)

    @property
    def weight(self) -> float:
        return max(LEAST_WEIGHT, self.cyber_weight)

    @property
    def reach(self) -> int:
        """The number of neighbours on either side that may not exceed a break."""
        return self.shortest // 2 if self.shortest > 2 else 0

    @property
    def limits(self) -> tuple[float, float] | None:
        """The thresholds of gains and of losses; None where each track has its own."""
        if isinstance(self.thresholds, tuple):
            return self.thresholds
        return None if self.thresholds is None else (abs(self.thresholds), -abs(self.thresholds))


@dataclass(frozen=True)
class Circular:
    """Parameters of circular binary segmentation, and in brackets what DNAcopy calls them."""

    alpha: float = 0.01  # (alpha) a change is accepted if its p value is at most this
    permutations: int = 10_000  # (nperm) for a p value
    min_width: int = 2  # (min.width) the shortest segment, at least 2
    # (kmax) arcs up to this long are permuted in large segments; for others p is approximated
    short: int = 25
    large: int = 200  # (nmin) from how many values on a segment is large; 4 × short or more
    early: float = 0.05  # (eta) chance to accept, by stopping early, what has a p value of alpha
    # standard deviation of what is added first, as in cn.mops: 1e-99 to 1e-34 is no change
    noise: float = 1e-5
    seed: int = 0  # of noise and permutations; they depend on it and on the place in the track only


@dataclass(frozen=True, eq=False)
class SegmentedTracks:
    """Segments of all tracks, ordered by track and start."""

    track: Rows  # int64[n]: which one
    start: Rows  # int64[n]: position in x
    end: Rows  # int64[n]: likewise, the one after the last
    mean: Floats  # float64[n]: of x, after what is not finite has been replaced
    median: Floats  # float64[n]: likewise
    notes: tuple[str, ...] = ()  # what had to be replaced, in words

    def __len__(self) -> int:
        return len(self.track)

    @classmethod
    def none(cls) -> "SegmentedTracks":
        rows, floats = np.empty(0, np.int64), np.empty(0)
        return cls(rows, rows, rows, floats, floats)


def check(x: Any, offsets: Rows) -> None:
    """Raises ValueError for arrays that are not as follows; nothing is converted.

    x        float64[n]           track after track; contiguous
    offsets  int64[tracks + 1]    ascending from 0 to n; contiguous
    """
    if x.dtype != np.float64 or x.ndim != 1 or not x.flags.c_contiguous:
        raise ValueError("x must be float64[n], contiguous")
    if offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.flags.c_contiguous:
        raise ValueError("offsets must be int64[tracks + 1], contiguous")
    if not len(offsets) or offsets[0] or offsets[-1] != len(x) or (np.diff(offsets) < 0).any():
        raise ValueError("offsets must ascend from 0 to the number of values")


def check_lengths(offsets: Rows, options: Segmentation) -> None:
    """Raise TrackError for a track of one value where there are no thresholds."""
    short = np.flatnonzero(np.diff(offsets) == 1)
    if len(short) and options.limits is None:
        raise TrackError(int(short[0]), ONE_VALUE)


def notes(has_infinite: bool, has_nan: bool) -> tuple[str, ...]:
    """Return what to say about values that were replaced."""
    said = ((has_infinite, NOTE_INFINITE), (has_nan, NOTE_NAN))
    return tuple(note for happened, note in said if happened)


def cleaned(x: Floats, track: int) -> Floats:
    """Return float64[n]: 0 for NaN, the largest or smallest finite value for infinite ones.

    Raises TrackError where there are infinite values and no finite one.
    """
    if np.isfinite(x).all():
        return x
    finite = x[np.isfinite(x)]
    if np.isinf(x).any() and not len(finite):
        raise TrackError(track, NOTHING_FINITE)
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    return np.nan_to_num(x, nan=0.0, posinf=high, neginf=low)
