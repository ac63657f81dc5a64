"""Levels of two copies: how well each explains the depths of samples in blocks of regions.

A level is the depth that two copies would have. Samples are then multiples of its half, and their
numbers of copies follow one of a few patterns, as a rare change or a common one makes them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit, jit_no_alloc
from multigpu.kernels.hmm.types import Floats

OUTLIER = 12.0  # nats by which a sample counts against a level at most
SHARES = np.array([0.03, 0.5, 1.0, 1.5, 2.0])  # of the depth of two copies, with 0 to 4 copies
LEAST_SHARE = 0.3  # whose noise depths have without a copy, too
# Shares of these copies, by Hardy and Weinberg, where a loss or a gain is rare, on 3 of 10
# chromosomes, or on 7 of 10: [copies, patterns]; and how unlikely such regions are, in nats.
PATTERNS = np.log([
    [0.01, 0.05, 0.88, 0.05, 0.01],
    [0.15, 0.45, 0.38, 0.01, 0.01],
    [0.01, 0.01, 0.38, 0.45, 0.15],
    [0.48, 0.42, 0.08, 0.01, 0.01],
    [0.01, 0.01, 0.08, 0.42, 0.48],
]).T.copy()  # fmt: skip
UNLIKELY = np.array([0.0, 1.0, 1.0, 2.0, 2.0])
TINY = 1e-9


def likelihoods(depths: Floats, levels: Floats, usual: Floats, noise: float) -> Floats:
    """Return float64[levels, blocks]: the log-likelihood of all samples with the best pattern.

    depths  float64[blocks, samples]
    levels  float64[levels, blocks], above 0
    usual   float64[blocks]: depth of usual samples
    noise   of depths, relative
    """
    found = np.empty(levels.shape)
    _fill_likelihoods(depths, levels, usual, noise, found)
    return found


def likeliest_copies(
    depths: Floats, level: Floats, usual: Floats, noise: float
) -> NDArray[np.int8]:
    """Return int8[blocks, samples]: the copies that explain each depth best; level float64[blocks].

    See `likelihoods`.
    """
    found = np.empty(depths.shape, np.int8)
    _fill_copies(depths, level, usual, noise, found)
    return found


@jit
def _fill_likelihoods(depths: Any, levels: Any, usual: Any, noise: Any, found: Any) -> Any:
    copies, patterns = PATTERNS.shape
    deviation, logs = np.empty(copies), np.empty(copies)
    best, totals = np.empty(patterns), np.empty(patterns)
    for block in range(depths.shape[0]):
        for k in range(levels.shape[0]):
            level = levels[k, block]
            _set_deviations(usual[block], level, noise, deviation, logs)
            totals[:] = -UNLIKELY
            for sample in range(depths.shape[1]):
                best[:] = -np.inf
                for copy in range(copies):
                    off = (depths[block, sample] - SHARES[copy] * level) / deviation[copy]
                    log = -min(off * off / 2, OUTLIER) - logs[copy]
                    for pattern in range(patterns):
                        best[pattern] = max(best[pattern], log + PATTERNS[copy, pattern])
                for pattern in range(patterns):
                    totals[pattern] += best[pattern]
            found[k, block] = totals.max()


@jit
def _fill_copies(depths: Any, levels: Any, usual: Any, noise: Any, found: Any) -> Any:
    deviation, logs = np.empty(len(SHARES)), np.empty(len(SHARES))
    for block in range(depths.shape[0]):
        _set_deviations(usual[block], levels[block], noise, deviation, logs)
        for sample in range(depths.shape[1]):
            off = (depths[block, sample] - SHARES * levels[block]) / deviation
            found[block, sample] = np.argmax(-np.minimum(off * off / 2, OUTLIER) - logs)


@jit_no_alloc
def _set_deviations(usual: Any, level: Any, noise: Any, deviation: Any, logs: Any) -> Any:
    """Set the deviations of depths with each number of copies, and their logarithms."""
    typical = max(np.sqrt(usual * level), TINY)  # the same at one depth, whatever the level
    for copy in range(len(SHARES)):
        deviation[copy] = noise * np.sqrt(max(SHARES[copy], LEAST_SHARE)) * typical
        logs[copy] = np.log(deviation[copy])
