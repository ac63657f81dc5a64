"""Device memory that the search takes; without CuPy, as plans are made where none may be."""

from multigpu.kernels.rotation.bounds import KAPPAS, SHORTFALLS
from multigpu.kernels.rotation.types import Field

MOST_SCORES = 1 << 26  # that are held at a time, for each thread that calls,
LEAST_SCORES = 1 << 22  # where there is little memory, and
MOST_LIGANDS = 1 << 15  # that have some there
AT_ONCE = 1 << 20  # of them, that are looked at together where the best are listed
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
    listed = WINNER_BYTES * AT_ONCE + 4
    return 4 * scores + WINNER_BYTES * winners + BOUNDS_BYTES * MOST_LIGANDS + listed


def scores_in(room: float) -> int:
    """Return how many scores a thread may hold at a time in `room` bytes, never very few."""
    scores = MOST_SCORES
    while scores > LEAST_SCORES and working_bytes(scores) > room:
        scores //= 2
    return scores
