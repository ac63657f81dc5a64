"""Moves of the hidden Markov model: memory fades with distance, and ends at a gap."""

import numpy as np
import pytest

from multigpu.kernels.hmm.moves import is_break, moves, without_memory
from multigpu.kernels.hmm.types import ENTER, LEAVE, STAY, UNIT


def test_moves__are_logarithms_of_chances_that_fade_with_the_gap() -> None:
    start = np.array([0, 1_000, 50_000, 100_000_000, 100_000_100])
    ways = moves(start, start + 500, regions=300)
    enter = np.log(1 / 1000)
    assert ways[:, ENTER].tolist() == [round(enter * UNIT)] * 5
    # The typical distance of regions is 25 kb.
    memory = np.exp(-np.array([500, 48_500, 99_949_500, 0]) / (50 * 25_000))
    goes_on = memory * 0.9 + (1 - memory) / 1000
    np.testing.assert_allclose(ways[1:, STAY], np.log(goes_on) * UNIT, atol=0.51)
    np.testing.assert_allclose(ways[1:, LEAVE], np.log(1 - goes_on) * UNIT, atol=0.51)
    assert is_break(ways).tolist() == [True, False, False, True, False]  # too far to remember


def test_moves__have_no_memory_after_a_gap() -> None:
    start = np.array([0, 100, 20_000, 20_100])
    ways = moves(start, start + 100, 4, max_gap=10_000)
    assert is_break(ways).tolist() == [True, False, True, False]
    same = without_memory(moves(start, start + 100, 4), np.array([False, False, True, False]))
    np.testing.assert_array_equal(same, ways)
    assert moves(start[:0], start[:0], 4).shape == (0, 3)


@pytest.mark.parametrize(("distance", "reach"), [(100, 70_000), (1_000, 70_000), (10_000, 500_000)])
def test_moves__reach_seventy_kilobases_or_fifty_regions(distance: int, reach: float) -> None:
    start = np.arange(100) * distance
    memory = np.exp(-distance / 2 / reach)
    stay = np.log(memory * 0.9 + (1 - memory) / 1000) * UNIT
    ways = moves(start, start + distance // 2, regions=300)
    np.testing.assert_allclose(ways[1:, STAY], stay, atol=0.51)
