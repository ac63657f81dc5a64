"""Sums in the order of a GPU's threads."""

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from multigpu.kernels.numerics.sums import WARP, total

SPREAD = st.floats(-1e6, 1e6) | st.floats(-1e-9, 1e-9) | st.just(-0.0)


def by_halves(lanes: list[float]) -> float:
    """Add as the lanes of a warp: each adds what the lane so far away has, then half as far."""
    for step in (16, 8, 4, 2, 1):
        lanes = [lanes[k] + lanes[k ^ step] for k in range(WARP)]
    assert len(set(lanes)) == 1
    return lanes[0]


def as_threads(values: list[float], threads: int) -> float:
    lanes = [0.0] * threads
    for k, value in enumerate(values):
        lanes[k % threads] += value
    out = 0.0
    for first in range(0, threads, WARP):
        out += by_halves(lanes[first : first + WARP])
    return out


@given(st.lists(SPREAD, max_size=300), st.sampled_from([32, 64, 1024]), SPREAD, st.booleans())
@example(values=[0.0], threads=32, center=497506.36829192657, squared=True)
def test_total__adds_as_threads_do(values: Any, threads: int, center: float, squared: bool) -> None:
    x = np.array([7.0, *values, 7.0])
    off = [v - center for v in values]
    expected = [v * v if squared else v for v in off]  # not v ** 2: pow may be one last bit beside
    got = total(x, 1, len(values), center, squared, threads, np.full(threads, np.nan))
    assert np.float64(got).tobytes() == np.float64(as_threads(expected, threads)).tobytes()
