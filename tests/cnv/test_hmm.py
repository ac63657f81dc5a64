"""Segments of a hidden Markov model's states."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cohorts import cnv_job, planted

from multigpu.kernels.hmm.types import USUAL
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import SegmentTable
from multigpu.workloads.cnv.results.result import CnvResult
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


EVENTS = [("chr1", 20 + 40 * k, 21 + 40 * k + k, [k], times)
          for k, times in enumerate((0.5, 1.5, 0.01, 2.0, 0.5, 1.5, 0.5, 1.5))]  # fmt: skip
COUNTS = planted({"chr1": 360, "chr2": 60}, [*EVENTS, ("chr1", 345, 350, range(3), 1.5)])
PANEL: dict[str, Any] = {"min_width": 1, "max_gap": None, "whole_chromosomes": False}


def called(**options: Any) -> CnvResult:
    return cnv_job(COUNTS, CnvOptions(**{"segmentation": "hmm", **PANEL, **options})).result()


def by_place(result: CnvResult) -> dict[tuple[int, ...], tuple[Any, ...]]:
    """Return all that is known of each call, but for who else has it."""
    calls, found = result.called, {}
    for k in range(len(calls)):
        place = tuple(int(each[k]) for each in (calls.chrom, calls.sample, calls.first, calls.stop))
        columns = (calls.mean, calls.median, calls.copy_number, calls.shown, calls.quality)
        more: tuple[Any, ...] = tuple(result.classes[k].tolist())
        if (known := result.genotypes) is not None:
            more += (*known.copies[k].tolist(), *known.quality[k].tolist(), known.is_common[k])
        found[place] = (*(each[k] for each in columns), *more)
    return found


@pytest.mark.parametrize("segmentation", ["fast", "cbs", "hmm"])
@pytest.mark.parametrize(
    ("name", "values"),
    [("min_width", (2, 4, 7, 400)), ("min_length", (1500, 5000, 10**7)),
     ("min_quality", (30, 200, 1e4))],
)  # fmt: skip
def test_limits__leave_out_calls(segmentation: str, name: str, values: tuple[float, ...]) -> None:
    if name != "min_length" and segmentation != "hmm":
        pytest.skip("R's segmentations merge by it, or have no quality")
    every = by_place(called(segmentation=segmentation))
    assert len(every) >= 5
    for value in values:
        kept = by_place(called(segmentation=segmentation, **{name: value}))
        expected = {}
        for place, known in every.items():
            rows = place[3] - place[2]
            own = {"min_width": rows, "min_length": 1000 * rows, "min_quality": known[4]}
            if own[name] >= value:
                expected[place] = known
        np.testing.assert_equal(kept, expected)
    assert not kept


def test_genotypes__are_those_planted_and_agree_with_calls() -> None:
    found = called()
    assert found.genotypes is not None
    copies, calls = found.genotypes.copies, found.called
    own = np.arange(len(calls)), calls.sample
    assert (copies[own] == calls.copy_number).all()
    assert (copies[own] != 2).all()
    for k, event in enumerate(EVENTS):
        rows = (calls.chrom == 0) & (calls.first < event[2]) & (calls.stop > event[1])
        expected = np.full(8, 2)
        expected[k] = {0.5: 1, 1.5: 3, 0.01: 0, 2.0: 4}[event[4]]
        assert rows.sum() == 1 or k < 2  # one region, or two, may be missed
        assert (copies[rows] == expected).all()
    shared = copies[(calls.chrom == 0) & (calls.first >= 340)]
    assert (shared == [3, 3, 3, 2, 2, 2, 2, 2]).all()
    assert len(shared) == 3
    assert (found.genotypes.quality > 0).all()
    assert ((calls.quality > 0) & (calls.quality <= 999)).all()
