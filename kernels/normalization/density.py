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


def bandwidth(values: Floats) -> float:
    """Return `bw.nrd0` of ascending float64[n], from their deviation and quartiles.

    Where one is 0 the other is taken, and where both are the size of the values, or 1.
    """
    quartiles = quantile_of_sorted(values, 0.75) - quantile_of_sorted(values, 0.25)
    narrow, wide = quartiles / QUARTILES_OF_NORMAL, float(values.std(ddof=1))
    spread = min(wide, narrow) or wide or abs(float(values[0])) or 1.0
    return float(0.9 * spread * len(values) ** -0.2)


def density(values: Floats, top: float, width: float) -> tuple[Floats, Floats]:
    """Return places from 0 to `top` and the densities there, float64[places] each.

    width  of the kernel
    """
    size = max(LEAST_GRID, 1 << max(0, math.ceil(math.log2(top * POINTS_PER_UNIT))))
    low, high = -MARGIN * width, top + MARGIN * width
    masses = np.zeros(size + 2)  # with one more before and after, for values just outside
    _share_out(values, low, (high - low) / (size - 1), masses)
    # The kernel's own steps are a little shorter than the grid's: R's, up to 4.2.
    offset = np.linspace(0, 2 * (high - low), 2 * size)
    offset[size + 1 :] = -offset[size - 1 : 0 : -1]
    kernel = np.exp(-0.5 * (offset / width) ** 2)
    kernel /= width * math.sqrt(2 * math.pi)
    spectrum = np.fft.rfft(masses[1:-1] / len(values), 2 * size)
    folded = np.fft.irfft(spectrum * np.conj(np.fft.rfft(kernel)), 2 * size)
    places = np.linspace(0, top, math.ceil(top * POINTS_PER_UNIT))
    return places, np.interp(places, np.linspace(low, high, size), np.maximum(folded[:size], 0))


@jit_no_alloc
def _share_out(values: Any, low: Any, step: Any, out: Any) -> Any:
    for value in values:
        place = (value - low) / step
        cell = np.floor(place)
        if -1.0 <= cell < len(out) - 2:
            out[int(cell) + 1] += 1.0 - (place - cell)
            out[int(cell) + 2] += place - cell


def mode_of_sorted(values: Floats) -> float:
    """Return the mode of the density of ascending float64[n], up to their quantile TOP.

    NaN where that is 0, and infinite where it is beyond a million: no grid of such a size fits.
    """
    top = quantile_of_sorted(values, TOP)
    if top == 0:
        return math.nan
    if top * POINTS_PER_UNIT > MOST_POINTS:
        return math.inf
    places, densities = density(values, top, bandwidth(values))
    return float(places[np.argmax(densities)])
