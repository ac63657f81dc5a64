"""Plots of samples in the report: what is drawn, where lines break, and which samples have one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cohorts import CPU, cnv_job, cohort, result
from support.markup import read

from multigpu.run.options import RunOptions
from multigpu.workloads.cnv import job
from multigpu.workloads.cnv.output import figures as report_figures
from multigpu.workloads.cnv.output import report
from multigpu.workloads.cnv.output.figures import RegionAxis, SamplePlots

NUMBERS = st.sets(st.integers(1, 59))


@given(NUMBERS, NUMBERS, st.integers(1, 9))
def test_line__covers_spans_and_no_break(borders: set[int], breaks: set[int], room: int) -> None:
    axis = RegionAxis(np.array([0]), np.array(sorted(breaks), np.int64), room)
    edges = np.array([0, *sorted(borders), 60])[: 2 * ((len(borders) + 2) // 2)]
    first, stop = edges[::2], edges[1::2]
    heights = np.arange(len(first)) + 0.5
    line = axis.line(first, stop, heights)
    ends = np.array(line["x"], float).reshape(-1, 3)
    drawn = []
    for (begin, end, nothing), height in zip(ends.tolist(), line["y"][::3], strict=True):
        rows = [row for row in range(60) if begin < axis.place(np.array(row)) < end]
        assert end - begin == len(rows)  # without room, so without a break
        assert np.isnan(nothing)
        drawn += [(row, height) for row in rows]
    spans = zip(first.tolist(), stop.tolist(), heights.tolist(), strict=True)
    assert drawn == [(row, height) for a, b, height in spans for row in range(a, b)]


def test_axis__has_room_at_chromosomes_and_gaps() -> None:
    regions, options = result().regions, result().options
    start, end = (each.copy() for each in (regions.start, regions.end))
    start[100:500] += 2_000_000
    end[100:500] += 2_000_000
    apart = replace(result(), regions=replace(regions, start=start, end=end))
    assert RegionAxis.of(result()).breaks.tolist() == [500, 1000]
    assert RegionAxis.of(apart).breaks.tolist() == [100, 500, 1000]
    wide = replace(apart, options=replace(options, max_gap=3_000_000))
    assert RegionAxis.of(wide).breaks.tolist() == [500, 1000]


def test_points__are_means_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, _ = cohort()
    monkeypatch.setattr(job, "TRACK_POINTS", 100)  # of 15 regions each, and 500 a chromosome
    found = cnv_job(counts).result(tracks=True)
    sini = result().matrices["sini"].values
    figures = [*SamplePlots(found).figures()]
    assert len(figures) == 6
    blocks = [slice(500 * k + a, min(500 * k + a + 15, 500 * k + 500)) for k in range(3)
              for a in range(0, 500, 15)]  # fmt: skip
    first = found.called.sample[0]
    means = np.clip([sini[block, first].mean() for block in blocks], -4, 4)
    (of_first,) = [f for f in figures if f.title.startswith(f"{found.samples[first]}:")]
    assert of_first.data[0]["y"] == pytest.approx(np.round(means, 2).tolist(), abs=0.0101)
    middles = [(block.start + block.stop - 1) // 2 for block in blocks]
    at = (found.regions.start[middles[40]] + found.regions.end[middles[40]]) // 2
    assert of_first.common["text"][40] == f"chr2:{at:,}"
    assert cnv_job(counts).result().tracks == ()


def test_cnvs__have_marks_that_tell_about_them() -> None:
    genes = ("A", "", *[f"B<{k}" for k in range(1498)])
    named = replace(result(), regions=replace(result().regions, genes=genes))
    figure = next(SamplePlots(named).figures())
    own = named.called.take(named.called.sample == 0)
    marks = [text for trace in figure.data[1:] for text in trace.get("text", ())]
    assert len(marks) == len(own)
    about = "5 regions, 125,000 bases, signed I/NI 0.92"
    names = "B&lt;3, B&lt;4, B&lt;5, B&lt;6, B&lt;7"
    assert f"chr1:125001-250000<br>CN4<br>{about}<br>{names}" in marks
    assert figure.common["text"][0] == "chr1:12,500 A"


def test_plots__are_of_samples_with_cnvs_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_figures, "MOST_SAMPLES", 2)
    segments, is_kept = result().segments, np.isin(result().called.sample, (2, 5))
    kept = replace(segments, cnv=segments.cnv & np.isin(segments.sample, (2, 5)))
    few = replace(result(), segments=kept, usual=result().usual[is_kept])
    assert SamplePlots(few).shown == [2, 5]
    page = read(report.render(few))
    assert "Without a plotsample1, sample2, sample4, sample5" in page.text.replace("\n", "")
    assert page.figures[1]["layout"] == page.figures[1]["common"] == "figure2-0"
    assert "Samples along" not in report.render(replace(few, tracks=())).decode()


def test_page__is_the_same_for_chromosomes_in_pieces() -> None:
    counts, _ = cohort()
    ways = CPU, RunOptions(gpus="none", max_chunk_bytes=4096), RunOptions(gpus="none", workers=2)
    jobs = [cnv_job(counts, run=way) for way in ways]
    pages = {report.render(job.result(tracks=True)) for job in jobs}
    assert len(pages) == 1


def test_longest__of_very_many_segments_are_drawn_in_their_order() -> None:
    ordered = report_figures._longest(result().called, 3)
    assert ordered.rows.min() >= np.sort(result().called.rows)[-3]
    assert (np.diff(ordered.chrom) >= 0).all()
