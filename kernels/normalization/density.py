"""The mode of a density as R's `density()` estimates it, up to R 4.2.

A Gaussian kernel with the bandwidth of `bw.nrd0` (Silverman 1986, eq. 3.31): values are shared out
linearly between the points of a grid, folded with the kernel by Fourier transform, and looked up
between the grid's points. From R 4.3 on the grid lies elsewhere (`old.coords`).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc

Floats = NDArray[np.float64]

LEAST_GRID = 512
MARGIN = 4  # bandwidths on either side
POINTS_PER_UNIT = 100
MOST_POINTS = 1 << 27  # they take some 10 GB
QUARTILES_OF_NORMAL = 1.34  # their distance in standard deviations
TOP = 0.95  # the share of the values up to which a mode is looked for


def quantile_of_sorted(values: Floats, share: float) -> float:
    """Return R's quantile of type 7 of ascending values, float64[n]."""
    place = share * (len(values) - 1)
    low = math.floor(place)
    pair = [float(values[low]), float(values[min(low + 1, len(values) - 1)])]
    return pair[0] + (place - low) * (pair[1] - pair[0])


def bandwidth(count: int, deviation: float, quartiles: float, first: float) -> float:
    """Return `bw.nrd0` from the deviation and the distance of the quartiles of `count` values.

    Where one is 0 the other is taken, and where both are the size of the first value, or 1.
    """
    spread = min(deviation, quartiles / QUARTILES_OF_NORMAL) or deviation or abs(first) or 1.0
    return float(0.9 * spread * count**-0.2)


class DensityGrid:
    """A grid of `size` places from `low` to `high`, and `points` places in [0, top] to look at."""

    def __init__(self, top: float, bandwidth: float) -> None:
        self.top, self.bandwidth = top, bandwidth
        self.points = math.ceil(top * POINTS_PER_UNIT)
        self.size = max(LEAST_GRID, 1 << max(0, math.ceil(math.log2(top * POINTS_PER_UNIT))))
        self.low, self.high = -MARGIN * bandwidth, top + MARGIN * bandwidth
        self.step = (self.high - self.low) / (self.size - 1)


def masses(values: Floats, grid: DensityGrid) -> Floats:
    """float64[grid.size]: values shared out between their neighbours, each weighing 1 / count."""
    out = np.zeros(grid.size + 2)  # with one more before and after, for values just outside
    _share_out(values, grid.low, grid.step, out)
    return np.asarray(out[1:-1] / len(values))


@jit_no_alloc
def _share_out(values: Any, low: Any, step: Any, out: Any) -> Any:
    for value in values:
        place = (value - low) / step
        cell = np.floor(place)
        if -1.0 <= cell < len(out) - 2:
            out[int(cell) + 1] += 1.0 - (place - cell)
            out[int(cell) + 2] += place - cell


def estimate(mass: Floats, grid: DensityGrid) -> tuple[Floats, Floats]:
    """Return places and densities, float64[grid.points] each, from the masses on the grid."""
    # The kernel's own steps are a little shorter than the grid's: R's, up to 4.2.
    offset = np.linspace(0, 2 * (grid.high - grid.low), 2 * grid.size)
    offset[grid.size + 1 :] = -offset[grid.size - 1 : 0 : -1]
    kernel = np.exp(-0.5 * (offset / grid.bandwidth) ** 2)
    kernel /= grid.bandwidth * math.sqrt(2 * math.pi)
    folded = np.fft.irfft(
        np.fft.rfft(mass, 2 * grid.size) * np.conj(np.fft.rfft(kernel)), 2 * grid.size
    )
    x = np.linspace(0, grid.top, grid.points)
    coordinates = np.linspace(grid.low, grid.high, grid.size)
    return x, np.interp(x, coordinates, np.maximum(folded[: grid.size], 0))


def mode_of_sorted(values: Floats) -> float:
    """Return the mode of the density of ascending float64[n], up to their quantile TOP.

    NaN where that is 0, and infinite where it is beyond a million: no grid of such a size fits.
    """
    top = quantile_of_sorted(values, TOP)
    if top == 0:
        return math.nan
    if top * POINTS_PER_UNIT > MOST_POINTS:
        return math.inf
    quartiles = quantile_of_sorted(values, 0.75) - quantile_of_sorted(values, 0.25)
    width = bandwidth(len(values), float(values.std(ddof=1)), quartiles, float(values[0]))
    grid = DensityGrid(top, width)
    places, densities = estimate(masses(values, grid), grid)
    return float(places[np.argmax(densities)])
