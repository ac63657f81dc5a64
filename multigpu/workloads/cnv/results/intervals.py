"""Intervals of rows or bases: their unions, their last bases, and which of them overlap."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.cnv.records import Indices, Mask, Rows, SegmentTable, Spans

PAIRS_AT_A_TIME = 1 << 18  # CNVs and regions that are compared together: they fit into a cache


def rows_of_spans(first: Rows, lengths: Rows) -> Rows:
    """Return the rows of all spans, one span after the other."""
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(first - before, lengths))


def union(first: Rows, stop: Rows, breaks: Mask | None = None) -> Spans:
    """Return the spans in ascending order, joined where they overlap or touch.

    breaks  bool[rows]: rows before which spans that touch are not joined
    """
    if not len(first):
        return first, stop
    order = np.argsort(first, kind="stable")
    first, stop = first[order], stop[order]
    reached = np.maximum.accumulate(stop)
    begins_anew = first[1:] > reached[:-1]
    if breaks is not None:
        begins_anew |= breaks[first[1:]] & (first[1:] == reached[:-1])
    begins = np.flatnonzero(np.r_[True, begins_anew])
    ends = np.r_[begins[1:] - 1, len(first) - 1]
    return first[begins], reached[ends]


def cut(segments: SegmentTable, breaks: Mask, start: Rows, end: Rows) -> SegmentTable:
    """Return the segments of a chromosome, cut before the rows of `breaks`.

    The parts keep the values of the whole.

    start, end  of the regions of the chromosome, in bases
    """
    places = np.flatnonzero(breaks)
    before = np.searchsorted(places, segments.first, "right")
    inside = np.searchsorted(places, segments.stop) - before
    if not inside.any():
        return segments
    every, borders = np.arange(len(segments)), places[rows_of_spans(before, inside)]
    whole = np.repeat(every, inside)
    first = np.insert(segments.first, whole + 1, borders)
    stop = np.insert(segments.stop, whole, borders)
    last = last_bases(end, first, stop, False)
    parts = segments.take(np.repeat(every, inside + 1))
    return replace(parts, first=first, stop=stop, start=start[first], end=last)


def touch(first: Rows, stop: Rows, others: Spans) -> Mask:
    """Return which spans share a row with one of the others; these ascend and do not overlap."""
    return np.asarray(np.searchsorted(others[1], first, "right") < np.searchsorted(others[0], stop))


def subtract(first: Rows, stop: Rows, others: Spans) -> tuple[Rows, Rows, Rows]:
    """Return what spans have outside of the others: the span of each piece, its first, its stop.

    The others ascend and do not overlap.
    """
    ends = np.iinfo(np.int64)
    before = np.searchsorted(others[1], first, "right")  # the gap between others where it begins
    gaps = np.searchsorted(others[0], stop) - before + 1
    span = np.repeat(np.arange(len(first)), gaps)
    gap = rows_of_spans(before, gaps)
    begin = np.maximum(first[span], np.append(ends.min, others[1])[gap])
    end = np.minimum(stop[span], np.append(others[0], ends.max)[gap])
    real = begin < end
    return span[real], begin[real], end[real]


def union_in_bases(first: Rows, stop: Rows, start: Rows, end: Rows) -> Spans:
    """Return the union of spans, where a gap between the bases of two rows divides them."""
    begin, reached = union(start[first], end[stop - 1])
    rows = np.searchsorted(np.maximum.accumulate(end), reached)
    return np.searchsorted(start, begin), rows + 1


def last_bases(end: Rows, first: Rows, stop: Rows, compat_r: bool) -> Rows:
    """Return the last base of each span: that of its farthest region; R takes its last region's.

    end  last bases of the regions of a chromosome, whose starts ascend
    """
    if compat_r or (end[1:] >= end[:-1]).all():
        return np.asarray(end[stop - 1])
    borders = np.column_stack([first, stop]).ravel()
    return np.asarray(np.maximum.reduceat(np.append(end, 0), borders)[::2])


def overlaps(
    start: Rows, end: Rows, cnv_start: Rows, cnv_end: Rows
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield blocks of all (CNVs, regions) that share a base, from the last CNV to the first.

    Regions stand in any order and may overlap each other. By their starts, those that can share a
    base with a CNV follow each other: the first of them is the first to reach beyond the CNV's
    start (or one before it), and the last is the last to start before its end.
    """
    order = np.argsort(start, kind="stable")
    first = np.searchsorted(np.maximum.accumulate(end[order]), cnv_start, "right")
    counts = np.maximum(np.searchsorted(start[order], cnv_end) - first, 0)
    backwards = np.arange(len(counts))[::-1]
    block = np.cumsum(counts[backwards]) // PAIRS_AT_A_TIME
    for few in np.split(backwards, np.flatnonzero(np.diff(block)) + 1):
        cnv = np.repeat(few, counts[few])
        region = order[rows_of_spans(first[few], counts[few])]
        touched = end[region] > cnv_start[cnv]
        yield cnv[touched], region[touched]


def count_carriers(start: Rows, end: Rows, sample: Indices) -> Rows:
    """Return int64[CNVs]: the number of samples with a CNV that shares a base with each.

    Positions are bases; chromosomes follow each other.
    """
    found, samples = np.zeros(len(start), np.int64), int(sample.max(initial=0)) + 1
    for cnv, other in overlaps(start, end, start, end):  # all others of a CNV at a time
        pairs = np.unique(cnv * samples + sample[other])
        found += np.bincount(pairs // samples, minlength=len(found))
    return found
