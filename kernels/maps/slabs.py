"""Maps on a CPU, slab by slab of points: AutoGrid's and Vina's."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.maps.types import Floats, GridBox, Maps, rounded


def in_slabs(box: GridBox, names: Sequence[str], fill: Callable[[int, Floats], None]) -> Maps:
    """Return maps of these names, rounded.

    fill: called with ix and float64[ny, nz, names] of 0, sets the energies there
    """
    maps = np.empty((len(names), *box.shape), np.float32)
    for ix in range(box.shape[0]):
        slab = np.zeros((*box.shape[1:], len(names)))
        fill(ix, slab)
        maps[:, ix] = rounded(slab).transpose(2, 0, 1)
    return dict(zip(names, maps, strict=True))


@jit_no_alloc
def reach(place: Any, distance: Any, points: Any) -> Any:
    """Return a range of even points along an axis with all that are nearer to a place."""
    spacing = points[1] - points[0]
    low = math.floor((place - distance - points[0]) / spacing)
    high = math.ceil((place + distance - points[0]) / spacing) + 1
    return min(max(low, 0), len(points)), min(max(high, 0), len(points))
