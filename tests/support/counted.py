"""Inputs, fixtures and helpers of tests of counting."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.bams import REFERENCES, Row, random_rows, write_alignments
from support.program import Ended

ROWS = random_rows(2000)

Run = Callable[..., str]


@pytest.fixture
def refused(main: Callable[..., Ended], tmp_path: Path) -> Run:
    """The one line that the program says before it ends with status 2 and without output."""

    def run(*arguments: str) -> str:
        output = tmp_path / "refused.tsv"
        ended = main("count", "-o", str(output), *arguments)
        assert (ended.status, ended.out) == (2, "")
        assert not output.exists()
        return ended.problem

    return run


@pytest.fixture
def some(tmp_path: Path) -> str:
    """A BAM file."""
    return write_alignments(tmp_path / "some.bam", ROWS)


def in_windows(rows: list[Row], width: int, references: Any = REFERENCES) -> list[int]:
    """Return how many mapped reads of quality 1 or more begin in each window."""
    counts = [0] * sum(-(-length // width) for _, length in references)
    first = np.cumsum([0, *(-(-length // width) for _, length in references)])
    for reference, position, quality, _, flag in rows:
        if reference >= 0 and quality >= 1 and not flag & 4:
            counts[first[reference] + position // width] += 1
    return counts
