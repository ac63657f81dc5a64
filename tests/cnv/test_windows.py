"""What figures show of a chromosome."""

import numpy as np
import pytest

from multigpu.workloads.cnv.stages.windows import surroundings


@pytest.mark.parametrize(
    ("breaks", "first", "stop", "wanted"),
    [
        ((), 50, 53, (40, 63)),  # ten regions at least
        ((), 40, 80, (20, 100)),
        ((), 2, 95, (0, 100)),
        ((45, 60), 50, 53, (45, 60)),
        ((50, 53), 50, 53, (50, 53)),
        ((44, 47, 51, 70), 50, 53, (47, 63)),  # one inside
    ],
)
def test_surroundings__end_at_gaps(
    breaks: tuple[int, ...], first: int, stop: int, wanted: tuple[int, int]
) -> None:
    mask = np.isin(np.arange(100), breaks)
    assert surroundings(first, stop, mask) == slice(*wanted)
