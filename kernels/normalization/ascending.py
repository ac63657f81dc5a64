"""Ascending values, measured by the same additions in the same order wherever they lie."""

import math
from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.normalization import density
from multigpu.kernels.normalization.types import Floats
from multigpu.kernels.numerics.sums import WARP, warp_sum

SUMMING = 1 << 13  # threads of a GPU that sum a vector


class Ascending:
    """float64[n] on the host; `cuda.py` has those on a device."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: int) -> float:
        return float(self._values[place])

    def mode(self) -> float:
        """Return the value at which their density is greatest."""
        return density.mode_of_sorted(self, self.deviation(), self.masses)

    def deviation(self) -> float:
        """Return the standard deviation."""
        mean = float(self._moments(0.0)[0].sum()) / len(self)
        return math.sqrt(float(self._moments(mean)[1].sum()) / (len(self) - 1))

    def masses(self, grid: density.DensityGrid) -> Floats:
        """Return what `density.masses` does."""
        below, above = self._shares(grid).T
        return np.asarray((below[1:] + above[:-1]) / len(self))

    def _moments(self, center: float) -> Floats:
        """float64[2, SUMMING]: sums of value - center, and of squares, of every SUMMING-th."""
        out = np.zeros((2, SUMMING))
        _add_moments(self._values, center, out)
        return out

    def _shares(self, grid: density.DensityGrid) -> Floats:
        """float64[grid.size + 1, 2]: what the values in cell -1, 0, ... leave to either side."""
        out = np.empty((grid.size + 1, 2))
        _share_out(self._values, grid.low, grid.step, np.empty(2 * WARP), out)
        return out


@jit_no_alloc
def _add_moments(values, center, out):  # type: ignore[no-untyped-def]
    for row in range(0, len(values), SUMMING):
        for k in range(min(SUMMING, len(values) - row)):
            off = values[row + k] - center
            out[0, k] += off
            out[1, k] += off * off


@jit_no_alloc
def _share_out(values, low, step, lanes, out):  # type: ignore[no-untyped-def]
    begin = 0
    while begin < len(values) and np.floor((values[begin] - low) / step) < -1.0:
        begin += 1
    for cell in range(len(out)):
        lanes[:] = 0.0
        n = 0
        while begin + n < len(values):
            place = (values[begin + n] - low) / step
            whole = np.floor(place)
            if whole > cell - 1:
                break
            lanes[n % WARP] += 1.0 - (place - whole)
            lanes[WARP + n % WARP] += place - whole
            n += 1
        out[cell, 0] = warp_sum(lanes, 0, n)
        out[cell, 1] = warp_sum(lanes, WARP, n)
        begin += n
