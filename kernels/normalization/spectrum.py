"""Distinct counts, and how often each occurs: the exact statistics of a sample in little space.

Spectra of parts add up to that of the whole, in whatever parts the regions came.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.normalization.types import Floats

_SAME_15_DIGITS = 4e-15  # relative; values further apart differ in their first 15 digits


@dataclass(frozen=True)
class Spectrum:
    """Distinct values, ascending, and how often each occurs.

    values  float64[n]
    times   int64[n]
    """

    values: Floats
    times: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Spectrum":
        """Return the spectrum of int32 or float64."""
        each, times = np.unique(values, return_counts=True)
        return cls(each.astype(np.float64), times)

    @classmethod
    def together(cls, parts: Sequence["Spectrum"]) -> "Spectrum":
        """Return the spectrum of all values of all parts."""
        values = np.concatenate([part.values for part in parts])
        each, place = np.unique(values, return_inverse=True)
        times = np.zeros(len(each), np.int64)
        np.add.at(times, place, np.concatenate([part.times for part in parts]))
        return cls(each, times)

    def scaled(self, factor: float) -> "Spectrum":
        """Return the spectrum of the values times a factor above 0."""
        return Spectrum(self.values * factor, self.times)

    def positive(self) -> "Spectrum":
        """Return the spectrum without zeros."""
        first = int(np.searchsorted(self.values, 0, "right"))
        return Spectrum(self.values[first:], self.times[first:])

    def quantile(self, share: float) -> float:
        """Return the quantile of R's type 7."""
        last = np.cumsum(self.times) - 1  # places in ascending order
        place = share * last[-1]
        low = int(np.floor(place))
        pair = self.values[np.searchsorted(last, [low, min(low + 1, int(last[-1]))])]
        return float(pair[0] + (place - low) * (pair[1] - pair[0]))

    def mean_between(self, low: float, high: float) -> float:
        """Return the mean of the values above `low` and below `high`; NaN where there are none."""
        inside = (self.values > low) & (self.values < high)
        times = self.times[inside]
        if not len(times):
            return float("nan")
        return float((self.values[inside] * times).sum() / times.sum())

    def mode(self) -> float:
        """The most frequent value, the least on a tie; equal are those with the same 15 digits."""
        if not len(self.values):
            return float("nan")
        one = self._of_15_digits()
        return _of_15_digits(one.values[np.argmax(one.times)])

    def _of_15_digits(self) -> "Spectrum":
        close = np.diff(self.values) <= _SAME_15_DIGITS * self.values[1:]
        if not close.any():
            return self
        near = np.r_[False, close] | np.r_[close, False]
        values = self.values.copy()
        values[near] = [_of_15_digits(value) for value in values[near]]
        return Spectrum.together([Spectrum(values, self.times)])


def _of_15_digits(value: float) -> float:
    return float(f"{value:.15g}")


class Spectral:
    """The statistics that the spectra of samples give."""

    @cached_property
    def spectra(self) -> Sequence[Spectrum]:
        """The spectrum of each sample."""
        raise NotImplementedError

    def quantiles(self, share: float) -> Floats:
        return np.array([each.quantile(share) for each in self.spectra])

    def modes(self) -> Floats:
        return np.array([each.positive().mode() for each in self.spectra])

    def mode(self) -> float:
        return Spectrum.together([each.positive() for each in self.spectra]).mode()
