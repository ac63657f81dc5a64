"""Chromosomes and arms as a whole."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.cohorts import cnv_job, planted

from multigpu.kernels.hmm.types import USUAL
from multigpu.workloads.cnv.stages import whole_chromosomes as whole


def test_unusual__are_chromosomes_beyond_what_others_vary() -> None:
    events = [
        ("chr3", 0, 60, [2], 1.5), ("chr3", 0, 60, [4], 0.5), ("chr1", 0, 60, [5], 1.5),
        ("chr4", 0, 10, [6], 1.5),  # of too few regions
    ]  # fmt: skip
    job = cnv_job(planted({"chr1": 300, "chr2": 200, "chr3": 60, "chr4": 10}, events))
    found = {(span.name, k): share for span, k, share in
             whole.unusual_chromosomes(job.cohort, job.spans, job.sums)}  # fmt: skip
    assert {*found} == {("chr3", 2), ("chr3", 4)}
    np.testing.assert_allclose([*found.values()], [1.5, 0.5], rtol=0.05)
    few = cnv_job(planted({"chr1": 300, "chr2": 60}, [("chr2", 0, 60, [2], 1.5)], 5))
    assert not [*whole.unusual_chromosomes(few.cohort, few.spans, few.sums)]


def test_whole_changes__are_of_an_arm_or_of_both_arms_alike() -> None:
    events = [
        ("chr3", 0, 60, [2], 1.5), ("chr3", 0, 25, [3], 0.5), ("chr3", 25, 60, [4], 1.5),
        ("chr3", 0, 25, [5], 1.5), ("chr3", 25, 60, [5], 0.5),
        ("chr4", 0, 60, [6], 0.5), ("chr4", 0, 10, [7], 1.5),  # an arm of too few regions
    ]  # fmt: skip
    counts = planted({"chr1": 300, "chr2": 200, "chr3": 60, "chr4": 60}, events, 12)
    for stop, arm in ((560, 35), (620, 50)):
        for place in (counts.regions.start, counts.regions.end):
            place[stop - arm : stop] += 1_000_000
    job = cnv_job(counts)
    found = whole.whole_changes(job.cohort, job.spans, job.sums, job.values)
    each = {(block, change.case, change.rows.start, change.rows.stop): change.share
            for block, changes in found.items() for change in changes}  # fmt: skip
    wanted = {(2, 2, 0, 60): 1.5, (2, 3, 0, 25): 0.5, (2, 4, 25, 60): 1.5, (2, 5, 0, 25): 1.5,
              (2, 5, 25, 60): 0.5, (3, 6, 0, 60): 0.5}  # fmt: skip
    assert {*each} == {*wanted}
    np.testing.assert_allclose([each[key] for key in wanted], [*wanted.values()], rtol=0.05)


@given(st.integers(0, 99), st.sampled_from([0, 17, 25, 30, 50]), st.sampled_from([0.5, 0.9]))
def test_fill_whole__fills_arms_changed_in_most_regions(seed: int, arm: int, share: float) -> None:
    """An arm before the widest gap; none with 0, and one that is too short with 17."""
    rng: Any = np.random.default_rng(seed)
    states = np.full((75, 3), USUAL, np.int8)
    p_arm = slice(0, arm or 75)
    states[p_arm, 0] = np.where(rng.random(arm or 75) < share, 3, USUAL)
    states[rng.permutation(75)[:10], 1] = 0
    start = np.arange(75) * 1000
    start[arm:] += 2_000_000 if arm else 0
    before, told = states.copy(), np.ones(75, np.bool_)
    told[5:9] = False
    whole.fill_whole(states, told, start, start + 1000)
    counted = before[p_arm, 0][told[p_arm]]
    is_most = len(counted) >= 20 and (counted == 3).mean() >= 0.8
    assert (states[p_arm, 0] == (3 if is_most else before[p_arm, 0])).all()
    assert (states[p_arm.stop :, 0] == before[p_arm.stop :, 0]).all()
    assert (states[:, 1:] == before[:, 1:]).all()
