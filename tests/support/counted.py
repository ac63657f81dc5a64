"""Inputs and helpers of tests of counting."""

from collections.abc import Callable
from typing import Any

import numpy as np

from support.bams import REFERENCES, Row, random_rows

ROWS = random_rows(2000)

Run = Callable[..., str]


def in_windows(rows: list[Row], width: int, references: Any = REFERENCES) -> list[int]:
    """Return how many mapped reads of quality 1 or more begin in each window."""
    counts = [0] * sum(-(-length // width) for _, length in references)
    first = np.cumsum([0, *(-(-length // width) for _, length in references)])
    for reference, position, quality, _, flag in rows:
        if reference >= 0 and quality >= 1 and not flag & 4:
            counts[first[reference] + position // width] += 1
    return counts
