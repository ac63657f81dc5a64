"""Constants of the model, the same on CPU and GPU, and the order in which both add.

Sums over samples are those of a team, on a CPU too: member l has the samples l, l + team, …, adds
them in order, and then neighbours add their sums, neighbouring pairs theirs, and so on. Sums over
classes are those of the even ones and of the odd ones, or a class at a time: in the last cycle all
are a class at a time, and that of I/NI has 64 bits.
"""

from decimal import Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from multigpu.kernels.cnmops.types import Floats, Model

WARP = 32
HELD = 40  # densities that a lane of a GPU keeps in registers
HELD_BY_WARP = 80  # the same where a whole warp has a region; beyond it a block has it
SHARED = 50  # densities and counts that a lane of a block may add to shared memory
MOST_LANES = 256
LOG2E = 1.4426950408889634
REACH = 400.0  # of exponents between a density and the one it is taken from
LEAST_MOST = 2.5 * REACH  # the count they are reckoned with: level and anchor differ by up to 40 %


class ModelNumbers(NamedTuple):
    """Numbers of a model that do not depend on the counts."""

    changes: Floats  # [classes]
    squares: Floats
    falls: Floats  # bits that a density loses for each read of the level
    bits: Floats  # log2 of the changes
    start: Floats  # weights in the first cycle
    prior: Floats  # a class's weight is prior + posteriors * sample_weight
    sample_weight: float
    widest: float  # the greatest change
    main: int
    impact: float  # of the prior


def numbers_of(samples: int, options: Model) -> ModelNumbers:
    """Return the numbers of a model of this many samples."""
    changes = options.changes()
    return ModelNumbers(
        changes=changes,
        squares=changes * changes,
        falls=changes * LOG2E,
        bits=log2(changes),
        start=options.start(),
        prior=options.prior() / (1 + options.prior_impact),
        sample_weight=1 / (samples * (1 + options.prior_impact)),
        widest=float(changes.max()),
        main=options.main,
        impact=float(options.prior_impact),
    )


def log2(values: Floats) -> Floats:
    """float64[n]: the nearest to each logarithm; NumPy's and C's depend on the processor."""
    return np.array([_log2(float(each)) for each in values])


@lru_cache(1 << 14)
def _log2(value: float) -> float:
    with localcontext(prec=40):
        return float(Decimal(value).ln() / Decimal(2).ln())


def lanes_of(samples: int, classes: int) -> int:
    """Return the lanes of a team: part of a warp, a warp or, for many samples, a whole block."""

    def slots(lanes: int) -> int:
        return -(-samples // lanes)

    lanes = 1
    while lanes < WARP and slots(lanes) * classes > HELD:
        lanes *= 2
    if slots(lanes) * classes <= HELD_BY_WARP:
        return lanes
    lanes = 2 * WARP
    while lanes < MOST_LANES and slots(lanes) * (classes + 1) > SHARED:
        lanes *= 2
    return lanes
