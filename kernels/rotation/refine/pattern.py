"""A pattern search in six rigid coordinates, with directions that adapt: what backends share.

docs/dock.md ("Refinement") says how it goes. What adapts is a linear map of the directions, the
metric: of every group of trials the best is a winner, and the metric is stretched along the winners
and shrinks across them, as a covariance is adapted in evolution strategies (Glasmachers et al.,
Exponential natural evolution strategies, 2010; to first order).

All is float64, and +, −, ×, ÷ in one order, without fused operations: the same bytes everywhere.
"""

from functools import cache

import numpy as np

from multigpu.kernels.rotation.rotations import Floats
from multigpu.kernels.rotation.types import sum_of

TRIALS, GROUPS, TABLES = 128, 8, 16
ARM = 4.0  # Å: a turn by 1 / ARM radian counts as a shift by 1 Å
FIRST, AGAIN, FINEST = 0.4, 0.05, 0.001  # Å: steps
GROWTH, SHRINKAGE = 1.5, 0.5  # of the step
RATE = 0.3  # of the metric
LEAST = 1e-5  # score: of a trial that lets the step grow
GAIN = 0.002  # score: a round that gains less is the last
MOST_BATCHES = 4000  # eight times as many as were seen on the roughest fields
_GOLDEN = 1.1127756842787055  # the root of x^7 = x + 1


def constants() -> dict[str, float]:
    """Return the numbers above, for a kernel's source."""
    return {name: value for name, value in globals().items() if name.isupper() and name[0] != "_"}


@cache
def directions() -> Floats:
    """Return float64[TABLES, TRIALS, 6]: unit vectors; half of a table is −1 × the other.

    They are points of a low-discrepancy sequence (the additive recurrence with powers of the
    generalised golden ratio) in a ball; its arithmetic rounds alike on every machine.
    """
    halves, scale = TABLES * TRIALS // 2, np.cumprod(np.full(6, 1 / _GOLDEN))
    points = np.arange(1, 20 * halves)[:, None] * scale % 1.0 * 2 - 1
    squared = sum_of(points * points)
    points = (points / np.sqrt(squared)[:, None])[(squared > 0.01) & (squared < 1)][:halves]
    points = points.reshape(TABLES, TRIALS // 2, 6)
    return np.concatenate([points, -points], axis=1)
