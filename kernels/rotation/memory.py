"""Device memory that the search takes; without CuPy, as plans are made where none may be."""

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.rotation.bounds import KAPPAS, SHORTFALLS
from multigpu.kernels.rotation.types import Field, PoseSearch

MOST_SCORES = 1 << 25  # that are held at a time, for each thread that calls, and
MOST_LIGANDS = 1 << 15  # that have some there
WINNER_BYTES = 16
BOUNDS_BYTES = 8 * (len(SHORTFALLS) + 1) + 12  # of a ligand: its errors, T, and three scores


def fixed_bytes(field: Field) -> int:
    """Return the bytes that a `cuda.PoseSearcher` takes for a field, while it is made.

    The nodes, for linear interpolation cells of four, and how steep the field is.
    """
    channels, nodes = len(field.values), field.values.nbytes
    steepness = 8 * len(KAPPAS) * (channels * len(SHORTFALLS) + 1) + 4 * channels
    cells = 4 * (nodes // field.shape[0]) * (field.shape[0] + 1)
    return nodes + steepness + (cells if field.interpolation == "linear" else 0)


def working_bytes(scores: int = MOST_SCORES) -> int:
    """Return the most bytes a thread takes in `cuda.PoseSearcher.best`, besides copies of ligands.

    scores: that are held at a time
    """
    winners = scores // 2048 + 2 * MOST_LIGANDS  # of up to 2,048 scores, and of each ligand
    return 4 * scores + WINNER_BYTES * winners + BOUNDS_BYTES * MOST_LIGANDS


# ---- the search of a whole box; for its field it takes less than `fixed_bytes`

MOST_FOUND = 1 << 20  # poses of a ligand that are listed at a time
LISTED_BYTES = 24
BLOCKS = 8, 4, 2, 1  # shifts along an edge of the blocks that are bounded
TOLERANCE = 1e-6  # units of the spacing: windows are not made wider for less


def windows_of(field: Field, search: PoseSearch, wider: float = 0.0) -> list[NDArray[np.int64]]:
    """Return nodes along the edges of the windows of the maps, for each of `BLOCKS`.

    wider: by which the windows must be longer, in units of the spacing
    """
    per_shift, sides = search.shifts.step / field.spacing, np.array(search.shifts.sides)
    reaches = [(np.minimum(edge, sides) - 1) * per_shift + wider for edge in BLOCKS]
    return [np.ceil(reach - TOLERANCE).astype(np.int64) + 2 for reach in reaches]


def map_sides(shape: tuple[int, ...], window: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sides of a map: windows from before the first node to beyond the last."""
    return np.array(shape) + window + 1


def band_bytes(field: Field, search: PoseSearch, kinds: int, found: int = MOST_FOUND) -> int:
    """Return the bytes a thread takes in `whole_box.cuda`, besides copies of ligands.

    kinds: of the atoms of a ligand: those with other channels or weights. With less memory, fewer
    have maps, which takes longer.
    """
    maps = [2 * int(map_sides(field.shape, window).prod()) for window in windows_of(field, search)]
    # While they are made, nodes and windows of half of the size are held, too.
    return kinds * (sum(maps) + 2 * max(maps)) + LISTED_BYTES * found
