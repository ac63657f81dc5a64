"""Segments of a hidden Markov model's states."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from multigpu.kernels.hmm.types import USUAL
from multigpu.workloads.cnv.records import SegmentTable
from multigpu.workloads.cnv.stages import hmm

STATES = st.lists(st.lists(st.integers(1, 3), min_size=8, max_size=8), min_size=1, max_size=3)


@given(STATES, st.sets(st.integers(1, 7)), st.integers(0, 99))
def test_segments__are_runs_of_states(rows: list[list[int]], places: set[int], seed: int) -> None:
    states: Any = np.array(rows, np.int8).T
    breaks = np.isin(np.arange(8), [*places])
    start = np.arange(8) * 10
    ratios = np.random.default_rng(seed).normal(size=states.shape).astype(np.float32)
    chromosome: Any = SimpleNamespace(
        breaks=lambda max_gap: breaks, start=start, end=start + 10, cases=len(rows),
        span=SimpleNamespace(chrom=4), places=np.array([1, 5, 6][: len(rows)], np.int32),
    )  # fmt: skip
    found = SegmentTable.joined([*hmm._segments(chromosome, states, 3, ratios)])
    expected = []
    for k, path in enumerate(rows):
        is_whole = len({*path}) == 1 and path[0] != USUAL
        cuts = [r for r in range(1, 8) if path[r] != path[r - 1] or (r in places and not is_whole)]
        for a, b in zip([0, *cuts], [*cuts, 8], strict=True):
            track = ratios[a:b, k].astype(np.float64)
            expected.append((chromosome.places[k], a, b, track.mean(), np.median(track)))
    columns = (found.sample, found.first, found.stop, found.mean, found.median)
    np.testing.assert_allclose(np.array(columns).T, expected, rtol=1e-6, atol=1e-6)
    assert (found.chrom == 4).all()
    assert (found.end - found.start == 10 * found.rows).all()
    assert not found.cnv.any()


def test_forget__regions_without_reads_do_not_prolong_a_change() -> None:
    path = [2, 1, 1, 1, 1, 2, 0, 0, 0, 2]
    told = [1, 1, 0, 1, 0, 0, 0, 1, 0, 0]
    states = np.array([path], np.int8).T
    hmm._forget(states, np.array(told, np.bool_))
    assert states[:, 0].tolist() == [2, 1, 1, 1, 2, 2, 2, 0, 2, 2]
