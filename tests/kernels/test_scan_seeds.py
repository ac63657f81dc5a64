"""Which windows of signatures are indexed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.scan import seeds
from kernels.scan.seeds import CPU, LONGEST_RUN, Costs, SeedPlan, choices, plan_seeds


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
    Costs,
    probe=st.floats(0.1, 100),
    candidate=st.floats(0.1, 1000),
    direct=st.floats(0.01, 100),
    entry=st.floats(0.1, 1000),
    max_entries=st.sampled_from([1 << 14, 1 << 20, 1 << 24]),
)


@settings(max_examples=200)
@given(runs=st.lists(st.integers(0, LONGEST_RUN), min_size=1, max_size=50), costs=any_costs)
def test_plan__is_possible_and_fits(runs: list[int], costs: Costs) -> None:
    plan = plan_seeds(np.array(runs, np.int64), costs)
    assert plan.k in seeds.WINDOWS
    assert plan.stride in seeds.STRIDES
    assert 0 <= plan.blanks <= min(plan.k, seeds.MOST_BLANKS)
    assert plan.run == plan.k + plan.stride - 1 <= 32
    seeded = sum(run >= plan.run for run in runs)
    assert seeded * plan.stride * choices(plan.k, plan.blanks) <= costs.max_entries


@settings(max_examples=50)
@given(runs=st.lists(st.integers(0, LONGEST_RUN), min_size=1, max_size=50))
def test_plan__for_few_bases_makes_no_larger_index_than_for_many(runs: list[int]) -> None:
    sizes = []
    for expected_bases in (1e3, 1e6, 1e9):
        plan = plan_seeds(np.array(runs, np.int64), CPU, expected_bases)
        seeded = sum(run >= plan.run for run in runs)
        sizes.append(seeded * plan.stride * choices(plan.k, plan.blanks))
    assert sizes == sorted(sizes)


def test_plan__without_any_clean_run_seeds_nothing() -> None:
    runs = np.zeros(20, np.int64)
    assert (runs >= plan_seeds(runs, CPU).run).sum() == 0
