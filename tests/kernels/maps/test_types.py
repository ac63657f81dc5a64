"""Grid boxes that cannot be, and the one rule of rounding."""

from typing import Any

import numpy as np
import pytest

from multigpu.kernels.maps import GridBox
from multigpu.kernels.maps.types import rounded


@pytest.mark.parametrize("wrong", [
    {"elements": (0, 2, 2)}, {"elements": (2000, 2, 2)}, {"elements": (1000, 1000, 1000)},
    {"spacing": 0.0}, {"spacing": float("nan")}, {"center": (0.0, float("inf"), 0.0)},
])  # fmt: skip
def test_box__that_cannot_be(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"center": (0.0, 0.0, 0.0), "elements": (2, 2, 2), "spacing": 0.375}
    with pytest.raises(ValueError, match=r"possible|fewer|finite"):
        GridBox(**(right | wrong))


def test_rounded__is_what_a_file_gives_back() -> None:
    values = np.r_[np.random.default_rng(1).normal(0, 5000, 100_000), -0.0004, 99999.9931]
    kept = rounded(values)
    read = np.array([f"{value:.3f}" for value in kept.tolist()], np.float64).astype(np.float32)
    assert kept.tobytes() == (read + np.float32(0)).tobytes()
