"""Numbers and arrays of the model in Numba: a block of regions at a time."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.cnmops.types import Floats
from multigpu.kernels.compiled.jit import jit_no_alloc

BLOCK = 128  # regions; the compiler makes vector instructions of loops over so many
# Numbers of classes for which the compiler unrolls the loops over classes: those of the models as
# they are unless told otherwise. Each takes it some 10 s, once.
UNROLLED = (9, 13)


class Constants(NamedTuple):
    """Numbers that are the same for all regions: the model's and the samples'."""

    changes: Floats  # [classes], see `Numbers`
    squares: Floats
    falls: Floats
    bits: Floats
    start: Floats
    prior: Floats
    sample_weight: float
    widest: float
    main: int
    impact: float
    is_level_given: bool
    weights: Floats  # [samples, classes], where levels are given
    scale: Floats  # [samples]
    cov: Floats
    log_cov: Floats  # to base 2
    is_unit: bool  # all coverages are 1
    team: int  # members of a sum, see `numbers`
    cycles: int
    least: float  # a region needs a count above it
    floor: float
    classes: tuple[int, ...]  # 0, 1, ... where their number is in UNROLLED, else empty


class Work(NamedTuple):
    """Arrays for a block of regions, which is the last axis of all but one; float64.

    Where that axis is [classes * BLOCK], region j of class i is at i * BLOCK + j.
    """

    density: Floats  # [samples, classes * BLOCK] at the anchor
    x: Floats  # [samples] counts
    over_cov: Floats  # [samples] counts over coverages
    constant: Floats  # [samples] log2(x!) - x log2(cov)
    total: Floats  # [team, classes * BLOCK] sums of posteriors; added up, [0] has those of all
    sums: Floats  # [team] other sums, likewise
    informative: Floats  # [team] sums of I/NI
    left_out: Floats  # [team] what rounding left out of them
    alpha: Floats  # [classes]
    factor: Floats  # [classes * BLOCK] weight, and the way from the anchor to the level
    weighted: Floats  # [classes * BLOCK] of one sample: weighted densities, then posteriors
    level: Floats
    anchor: Floats
    log_anchor: Floats  # to base 2
    greatest: Floats  # count
    reads: Floats  # sum of the counts
    rate: Floats  # bits that the floor moves for each read of a sample
    floor: Floats  # of one sample
    share: Floats  # 1 / the sum of its weighted densities
    odd: Floats  # sum of those of classes 1, 3, ...
    expected: Floats  # count of one sample
    to_level: Floats  # from one sample's densities at the anchor to those at the level
    signed: Floats  # I/NI of one sample
    unsigned: Floats  # likewise
    likeliest: Floats  # class of one sample
    sorted: Floats  # [samples] of one region


class Out(NamedTuple):
    """Arrays of `Result`, samples first; `posterior` has no rows where it is not wanted."""

    level: Floats
    alpha: Floats
    ini: Floats
    sini: Floats
    cn_index: NDArray[np.int8]
    posterior: Floats


def work_for(samples: int, classes: int, team: int) -> Work:
    """Return arrays for a model of this size."""
    shapes: dict[str, tuple[int, ...]] = {
        "density": (samples, classes * BLOCK),
        "total": (team, classes * BLOCK),
        "factor": (classes * BLOCK,),
        "sorted": (samples,),
        **dict.fromkeys(("x", "over_cov", "constant"), (samples, BLOCK)),
        **dict.fromkeys(("sums", "informative", "left_out"), (team, BLOCK)),
        "weighted": (classes * BLOCK,),
        "alpha": (classes, BLOCK),
    }
    return Work(*(np.empty(shapes.get(name, (BLOCK,))) for name in Work._fields))


@jit_no_alloc
def larger(a: Any, b: Any) -> Any:
    return max(b, a)


@jit_no_alloc
def add_members(sums: Any) -> Any:
    """Add the sums of all members into those of the first: neighbours, neighbouring pairs, ..."""
    step = 1
    while step < sums.shape[0]:
        for member in range(0, sums.shape[0], 2 * step):
            for j in range(sums.shape[1]):
                sums[member, j] += sums[member + step, j]
        step *= 2
