"""Rules from segments to calls, one by one; the golden cases hold them together."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cohorts import cnv_job

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Floats, RegionTable, SegmentTable
from multigpu.workloads.cnv.results import copy_numbers, intervals
from multigpu.workloads.cnv.results.copy_numbers import is_cnv
from multigpu.workloads.cnv.results.result import join_regions
from multigpu.workloads.cnv.stages import call

COHORT = CnvOptions()
SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 15)), max_size=25)


def segments(*rows: tuple[int, int, int, float], called: Sequence[bool] = ()) -> SegmentTable:
    """(sample, first, stop, mean) on a chromosome with a region a base; the median is 1 more."""
    sample, first, stop, mean = (np.array(column) for column in zip(*rows, strict=True))
    found = SegmentTable.uncalled(
        chrom=np.zeros(len(rows), np.int32), sample=sample.astype(np.int32),
        first=first, stop=stop, start=first, end=stop, mean=mean * 1.0, median=mean + 1.0,
    )  # fmt: skip
    return replace(found, cnv=np.array(called, np.bool_)) if called else found


def test_is_cnv__beyond_a_threshold_and_wide_enough() -> None:
    found = segments((0, 0, 3, 0.5), (0, 3, 6, 0.49), (0, 6, 8, 2), (0, 8, 11, -0.9), (1, 0, 9, 0))
    assert is_cnv(found, COHORT).tolist() == [True, False, False, True, False]
    by_median = segments((0, 0, 3, -0.5), (0, 3, 6, -0.6))
    assert is_cnv(by_median, CnvOptions(use_median=True)).tolist() == [True, False]
    found = segments((0, 0, 3, 1), (0, 3, 7, 1), (0, 7, 12, 1))
    lengths = replace(found, end=found.start + np.array([999, 1000, 1001]))
    assert is_cnv(lengths, CnvOptions(min_length=1000)).tolist() == [False, True, True]


def test_union_in_bases__a_gap_divides_what_rows_join() -> None:
    start, end = np.array([0, 10, 30, 40]), np.array([10, 20, 40, 50])
    first, stop = np.array([0, 1, 2]), np.array([1, 2, 4])
    assert [side.tolist() for side in intervals.union(first, stop)] == [[0], [4]]
    sides = intervals.union_in_bases(first, stop, start, end)
    assert [side.tolist() for side in sides] == [[0, 2], [2, 4]]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1), st.data())
def test_overlapping_rows__touch(regions: list[tuple[int, int]], data: st.DataObject) -> None:
    start, width = np.array(sorted(regions)).T
    end, rows = start + width, range(len(start))
    ends = st.tuples(st.sampled_from(rows), st.sampled_from(rows)).map(sorted)
    spans = data.draw(st.lists(ends, min_size=1, max_size=4))
    first, last = np.array(spans).T
    stop = last + 1
    expected = []
    for a, b in zip(first, stop, strict=True):
        low, high, begin = start[a], end[b - 1], a
        while begin and end[begin - 1] > low:
            begin -= 1
        expected.append([r for r in rows[begin:] if start[r] < high and end[r] > low])
    found, lengths = call.overlapping_rows(start, end, first, stop)
    assert [each.tolist() for each in np.split(found, np.cumsum(lengths)[:-1])] == expected


def test_inner_averages__leave_regions_out_that_only_overlap_unless_it_is_asked_for() -> None:
    values, start = np.arange(8.0)[:, None] ** 2, np.arange(8) * 10
    average = partial(call.inner_averages, values.__getitem__, start, start + 15)
    for overlapping in (False, True):  # of 2 to 5 without the outermost
        found = average((np.array([3]), np.array([5])), overlapping=overlapping)
        assert found.tolist() == [[values[[3, 4]].mean()]]
    spans = np.array([3]), np.array([6])
    both = [average(spans, overlapping=each).tolist() for each in (False, True)]
    assert both == [[[16.0]], [[(9.0 + 16.0 + 25.0) / 3]]]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1), st.data())
def test_reach__is_that_of_any_region(regions: list[tuple[int, int]], data: st.DataObject) -> None:
    start, width = np.array(sorted(regions)).T
    ends = st.tuples(st.integers(0, len(start) - 1), st.integers(0, len(start) - 1)).map(sorted)
    first, last = np.array(data.draw(st.lists(ends, min_size=1, max_size=4))).T
    found = intervals.last_bases(start + width, first, last + 1, compat_r=False)
    expected = [(start + width)[a : b + 1].max() for a, b in zip(first, last, strict=True)]
    assert found.tolist() == expected
    found = intervals.last_bases(start + width, first, last + 1, compat_r=True)
    assert found.tolist() == (start + width)[last].tolist()


@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 16])
@pytest.mark.parametrize("median", [False, True])
def test_inner_averages__of_every_span_by_itself(
    median: bool, at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "ROWS_AT_A_TIME", at_a_time)
    values = np.random.default_rng(1).random((20, 3))
    start = np.arange(20) * 10
    spans = np.array([0, 4, 4, 18]), np.array([1, 6, 12, 20])
    found = call.inner_averages(values.__getitem__, start, start + 10, spans, median=median)
    average = np.median if median else np.mean
    for row, inside in zip(found, ([0], [4, 5], range(5, 11), [18, 19]), strict=True):
        np.testing.assert_array_equal(row, average(values[list(inside)], axis=0))


def test_integer_copy_numbers__of_cnvs_by_the_model_of_others_the_main_class() -> None:
    called = [True, False, True]
    found = segments((0, 0, 5, 1.0), (1, 0, 5, 0.1), (2, 0, 5, -3.0), called=called)
    classes = np.array([[4, 0, 0], [0, 0, 1]], np.int32)
    copies = copy_numbers.integer_copy_numbers(found, classes, COHORT)
    assert copies.tolist() == [4, 2, 1]
    # Beyond a threshold there is a change.
    called = [True, False, True]
    found = segments((0, 0, 5, 0.6), (0, 5, 7, -1.0), (1, 0, 5, 0.5), called=called)
    main = np.full((2, 2), 2, np.int32)
    assert copy_numbers.integer_copy_numbers(found, main, COHORT).tolist() == [3, 1, 2]


@pytest.mark.parametrize(("compat_r", "expected"), [(False, (1, 3)), (True, (3, 1))])
def test_neighbours__by_fold_change_or_place(compat_r: bool, expected: tuple[int, int]) -> None:
    folds, classes = (4, 1.5, 1, 0.5, 0.025), ("CN8", "CN3", "CN2", "CN1", "CN0")
    options = CnvOptions(fold_changes=folds, classes=classes, compat_r=compat_r)
    assert copy_numbers.neighbours(options) == expected


@given(SPANS, SPANS, st.integers(1, 3), st.integers(1, 30))
def test_join_regions__copy_numbers_are_those_of_a_loop_over_the_cnvs(
    regions: list[tuple[int, int]], cnvs: list[tuple[int, int]], samples: int, pairs: int
) -> None:
    start, cnv_start = (np.array([at for at, _ in spans], np.int64) for spans in (regions, cnvs))
    end, cnv_end = (np.array([a + n for a, n in spans], np.int64) for spans in (regions, cnvs))
    sample = np.arange(len(cnvs), dtype=np.int32) * 7 % samples
    copy_number = np.arange(len(cnvs), dtype=np.int32) + 3  # which of them it was
    usual = np.full((len(regions), samples), 2, np.int32)
    expected = usual.copy()
    for k in reversed(range(len(cnvs))):
        touched = (start < cnv_end[k]) & (end > cnv_start[k])
        expected[touched, sample[k]] = copy_number[k]  # of several, the first one's
    rows = zip(sample.tolist(), cnv_start.tolist(), cnv_end.tolist(), strict=True)
    calls = segments(*((*row, 1.0) for row in rows)) if cnvs else SegmentTable.empty()
    table = RegionTable(
        chrom=np.zeros(len(regions), np.int32), start=start, end=end,
        copy_number=usual, fractional=usual * np.nan,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "PAIRS_AT_A_TIME", pairs)
        found = join_regions([table], replace(calls, shown=copy_number))
    np.testing.assert_array_equal(found.copy_number, expected)


def test_fractional__r_pads_a_vector_to_one_width() -> None:
    copies = copy_numbers.fractional_copy_numbers(np.array([0.0, 3.0, -1.0]), COHORT, 2)
    compat = CnvOptions(compat_r=True)
    assert labelled(copies, COHORT) == ["CN2.0", "CN16.0", "CN1.0"]
    assert labelled(copies, compat) == ["CN 2.0", "CN16.0", "CN 1.0"]
    by_row = labelled(np.array([[2.0, 16.0], [1.0, 2.0]]), compat)
    assert by_row == [["CN 2.0", "CN16.0"], ["CN1.0", "CN2.0"]]
    assert labelled(copies[:0], compat) == labelled(copies[:0], COHORT) == []


@pytest.mark.parametrize("compat_r", [False, True])
def test_fractional__is_around_one_in_a_haploid_genome(compat_r: bool) -> None:
    """R has no fractional copy numbers of these models, so there is nothing to agree with."""
    options = CnvOptions.of("haplo", compat_r=compat_r)
    found = copy_numbers.fractional_copy_numbers(np.array([0.0, 1.0, -1.0]), options, 1)
    assert found.tolist() == [1.0, 2.0, 0.5]


def labelled(copies: Floats, options: CnvOptions) -> list[Any]:
    indices, labels = copy_numbers.fractional_labels(copies, options)
    found: list[Any] = np.array(labels, object)[indices].tolist()
    return found


def nested(compat_r: bool) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Places of CNVs and of CNV regions where target 21 of the second chromosome lies in 20."""
    rng = np.random.default_rng(0)
    start = np.tile(np.arange(60) * 1000, 2)
    end = start + 900
    start[81], end[81], end[80] = start[80] + 100, start[80] + 200, start[80] + 1800
    values = rng.poisson(400, (120, 8)).astype(np.int32)
    values[70:81, 0] = rng.poisson(200, 11)
    values[75:82, 1] = rng.poisson(200, 7)
    chrom = np.repeat(np.arange(2, dtype=np.int32), 60)
    table = Counts(Regions(("a", "b"), chrom, start, end), tuple("stuvwxyz"), values, ())
    options = CnvOptions(seg_median=(0.3, -0.5), compat_r=compat_r)
    found = cnv_job(table, options).result()
    tables = found.cnvs.to_pylist(), found.cnv_regions.to_pylist()
    assert {row["chrom"] for rows in tables for row in rows} == {"b"}
    cnvs, regions = ([(row["start"], row["end"]) for row in rows] for rows in tables)
    return cnvs, regions


def test_ends__are_those_of_the_farthest_region_and_in_r_of_the_last() -> None:
    assert nested(compat_r=False) == ([(10_000, 21_800), (15_000, 21_800)], [(10_000, 21_800)])
    assert nested(compat_r=True) == ([(10_000, 21_800), (15_000, 20_200)], [(10_000, 20_200)])
