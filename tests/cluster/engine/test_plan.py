"""Spans from budgets: pure arithmetic."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigpu.cluster.engine import plan
from multigpu.cluster.engine.plan import SMALLEST_CHUNK, Cost, chunk_units
from multigpu.cluster.errors import TooLittleMemory

COST = Cost(unit_bytes=2.5, fixed_bytes=1000)
costs = st.builds(Cost, st.floats(0.1, 100), st.integers(0, 10_000), st.integers(0, 1000))


def needed(cost: Cost, lanes: int, units: int) -> float:
    return cost.fixed_bytes + lanes * (cost.lane_bytes + units * cost.unit_bytes)


@given(costs, st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 10_000), st.integers(1, 99))
def test_units__are_the_most(cost: Cost, budget: int, lanes: int, largest: int, least: int) -> None:
    least = min(least, largest)
    if needed(cost, 1, 1) > budget:
        with pytest.raises(TooLittleMemory, match="the smallest chunk needs"):
            chunk_units(cost, budget, lanes, largest, least)
        return
    units, at_once = chunk_units(cost, budget, lanes, largest, least)
    assert 1 <= units <= largest
    assert 1 <= at_once <= lanes
    assert needed(cost, at_once, units) <= budget * (1 + 1e-9)
    assert units == largest or needed(cost, at_once, units + 1) > budget * (1 - 1e-9)
    if at_once < lanes:  # one more chunk at a time would make them too small
        wanted = least if units >= least else 1
        assert needed(cost, at_once + 1, wanted) > budget * (1 - 1e-9)


def test_chunk_units__share_the_budget_between_the_lanes() -> None:
    assert chunk_units(COST, 1000 + 100, 1, 10**9) == (40, 1)
    assert chunk_units(COST, 1000 + 100, 4, 10**9) == (10, 4)
    assert chunk_units(COST, 1000 + 100, 4, 7) == (7, 4)
    assert chunk_units(COST, 1000 + 100, 4, 10**9, least=12) == (13, 3)
    assert chunk_units(COST, 1000 + 100, 4, 10**9, least=50) == (10, 4)  # as good as any


@pytest.mark.parametrize(
    ("free", "least"), [([80, 70], 70), ([80, 70, 4], 70), ([4], 4), ([0, 0], 0), ([80, 5], 5)]
)
def test_least_free__does_not_count_a_device_with_far_less(free: list[int], least: int) -> None:
    assert plan.least_free(free) == least


@pytest.mark.parametrize("budget", [0, 999, 1000, 1001])
def test_budget__in_which_nothing_fits_is_refused_with_both_numbers(budget: int) -> None:
    text = rf"needs 1,002 bytes of memory where {budget:,} are free: .* memory_fraction"
    with pytest.raises(TooLittleMemory, match=text) as caught:
        chunk_units(COST, budget, 4, 100)
    assert isinstance(caught.value, MemoryError)  # a worker then tries elsewhere
    assert caught.value.exit_status == 2


@given(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(1, 256))
def test_balanced__gives_each_thread_several_chunks(units: int, most: int, threads: int) -> None:
    size = plan.balanced(units, most, threads)
    assert 1 <= size <= most
    chunks = -(-units // size)
    enough = threads * plan.CHUNKS_PER_THREAD
    assert size in (most, SMALLEST_CHUNK) or chunks <= enough
    assert size <= SMALLEST_CHUNK or chunks >= enough or units < enough * SMALLEST_CHUNK


@given(st.integers(0, 500), st.integers(1, 600))
def test_spans__lie_side_by_side_and_cover_everything(units: int, size: int) -> None:
    found = list(plan.spans(units, size))
    assert [unit for span in found for unit in span] == list(range(units))
    assert all(len(span) == size for span in found[:-1])
    assert all(0 < len(span) <= size for span in found)
    assert all(before.stop == after.start for before, after in pairwise(found))
