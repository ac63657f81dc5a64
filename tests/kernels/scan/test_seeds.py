"""Plans of which windows of signatures are indexed."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from multigpu.kernels.scan import seeds
from multigpu.kernels.scan.seeds import CPU, LONGEST_RUN, IndexCosts, SeedPlan, choices, plan_seeds


@pytest.mark.parametrize("k", [4, 7, 10, 16])
@pytest.mark.parametrize("blanks", [0, 1, 2, 4])
def test_masks__are_all_choices_of_blanked_places_each_once(k: int, blanks: int) -> None:
    masks = SeedPlan(k, 1, blanks).masks()
    blanked = [mask.bit_count() for mask in masks.tolist()]
    assert masks.dtype == np.uint32
    assert len(set(masks.tolist())) == len(masks) == choices(k, blanks)
    assert masks[0] == 0
    assert blanked == sorted(blanked)
    assert (max(blanked), int(masks.max()) < 1 << k) == (blanks, True)


any_costs = st.builds(
    IndexCosts,
    probe=st.floats(0.1, 100), candidate=st.floats(0.1, 1000), direct=st.floats(0.01, 100),
    entry=st.floats(0.1, 1000), max_entries=st.sampled_from([1 << 14, 1 << 20, 1 << 24]),
    choice=st.none() | st.floats(0.1, 100), tile=st.sampled_from([1, 2048]),
    entry_bytes=st.just(16), pattern_bytes=st.just(100), base_bytes=st.just(4),
)  # fmt: skip


@examples(200)
@given(runs=st.lists(st.integers(0, LONGEST_RUN), min_size=1, max_size=50), costs=any_costs)
def test_plan__is_possible_and_fits(runs: list[int], costs: IndexCosts) -> None:
    plan = plan_seeds(np.array(runs, np.int64), costs)
    assert plan.k in seeds.WINDOWS
    assert plan.stride in seeds.STRIDES
    assert 0 <= plan.blanks <= (plan.k if costs.choice else min(plan.k, seeds.MOST_BLANKS))
    assert plan.run == plan.k + plan.stride - 1 <= 32
    seeded = sum(run >= plan.run for run in runs)
    windows = plan.stride * (1 if costs.choice else choices(plan.k, plan.blanks))
    assert seeded * windows <= costs.max_entries


@examples(50)
@given(runs=st.lists(st.integers(0, LONGEST_RUN), min_size=1, max_size=50))
def test_plan__for_few_bases_makes_no_larger_index_than_for_many(runs: list[int]) -> None:
    sizes = []
    for expected_bases in (1e3, 1e6, 1e9):
        plan = plan_seeds(np.array(runs, np.int64), CPU, expected_bases)
        seeded = sum(run >= plan.run for run in runs)
        sizes.append(seeded * plan.stride)
    assert sizes == sorted(sizes)


@pytest.mark.emulated
@pytest.mark.parametrize("costs", [seeds.CPU, seeds.GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("count", [10**4, 2**16, 2**16 + 1, 10**6])
def test_plan__has_an_index_however_many_the_patterns_are(costs: IndexCosts, count: int) -> None:
    """Patterns need an entry each, as otherwise all of them would be compared everywhere."""
    few_entries = replace(costs, max_entries=2**16)
    plan = plan_seeds(np.full(count, 31, np.uint8), few_entries)
    assert plan.run <= 31
    assert np.isfinite(seeds.works(np.full(count, 31, np.uint8), few_entries, 1e8, 0.1)[1].min())
    assert count * plan.stride <= max(2**16, count)


SHARES = [share / 1000 for share in range(11)]


@pytest.mark.parametrize(("length", "count"), [(16, 10**5), (31, 10**6), (5000, 1000)])
def test_plan__on_a_cpu_has_no_step_between_shares_of_n(length: int, count: int) -> None:
    """Neither the work nor the index, from one tenth of a per cent to the next."""
    runs = np.full(count, min(length, LONGEST_RUN))
    works = [seeds.works(runs, CPU, 1e8, share)[1].min() for share in SHARES]
    assert max(after / before for before, after in pairwise(works)) < 1.5
    strides = [plan_seeds(runs, CPU, 1e8, share).stride for share in SHARES]
    assert max(strides) <= 4 * min(strides)


def test_plan__on_a_cpu_tries_bases_where_that_is_less_than_a_sweep() -> None:
    assert plan_seeds(np.zeros(20, np.int64), CPU).run > 0  # without any clean run, none is seeded
    few, many = (plan_seeds(np.full(count, 31), CPU) for count in (10, 10**6))
    assert 1 <= few.blanks < many.blanks
    assert CPU.choice is not None
    assert 4**many.blanks * CPU.choice < CPU.tile * 10**6 * CPU.direct


def test_size__grows_no_faster_than_the_patterns() -> None:
    counts = (10**6, 2 * 10**6, 4 * 10**6)
    sizes = [seeds.size_of(np.full(count, 31), CPU, 1e8, 0.0) for count in counts]
    assert all(after.memory <= 2.05 * before.memory for before, after in pairwise(sizes))
    assert sizes[0].entries == 10**6 * sizes[0].plan.stride
