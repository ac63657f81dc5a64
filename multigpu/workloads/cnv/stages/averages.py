"""Averages of values over the inner rows of spans, from which CNVs get their copy numbers."""

from collections.abc import Callable

import numpy as np

from multigpu.workloads.cnv.records import Floats, Rows, Spans
from multigpu.workloads.cnv.results.intervals import rows_of_spans

ROWS_AT_A_TIME = 1 << 12  # rows whose values are held together; a longer span comes alone


def inner_averages(
    values: Callable[[Rows], Floats],
    start: Rows,
    end: Rows,
    spans: Spans,
    *,
    median: bool = False,
    overlapping: bool = False,
) -> Floats:
    """Return [spans, columns]: the mean (or median) over the inner rows of each span.

    values       returns [rows, columns] for some rows, so that not all are held at a time
    spans        one at least
    overlapping  whether rows count that only share a base with the span, as in R
    """
    first, stop = spans
    borders = np.flatnonzero(np.diff(np.cumsum(stop - first) // ROWS_AT_A_TIME)) + 1
    averages = []
    for few_first, few_stop in zip(np.split(first, borders), np.split(stop, borders), strict=True):
        if overlapping:
            rows, lengths = overlapping_rows(start, end, few_first, few_stop)
        else:
            lengths = few_stop - few_first
            rows = rows_of_spans(few_first, lengths)
        rows, lengths = inner_rows(rows, lengths)
        begins, every = np.cumsum(lengths) - lengths, values(rows)
        if median:
            parts = np.split(every, begins[1:])
            averages.append(np.array([np.median(part, axis=0) for part in parts]))
        else:
            averages.append(np.add.reduceat(every, begins, axis=0) / lengths[:, None])
    return np.concatenate(averages)


def overlapping_rows(start: Rows, end: Rows, first: Rows, stop: Rows) -> tuple[Rows, Rows]:
    """Return the rows whose regions share a base with each span, and their number for each span.

    R takes these, which are more than the span's own rows where regions overlap each other.
    `start` is ascending.
    """
    lowest, highest = start[first], end[stop - 1]
    begin, earlier = first.copy(), np.arange(len(first))
    while len(earlier):  # spans that may begin yet a row before
        earlier = earlier[begin[earlier] > 0]
        earlier = earlier[end[begin[earlier] - 1] > lowest[earlier]]
        begin[earlier] -= 1
    lengths = np.maximum(np.searchsorted(start, highest), stop) - begin
    span = np.repeat(np.arange(len(first)), lengths)
    rows = rows_of_spans(begin, lengths)
    shared = (start[rows] < highest[span]) & (end[rows] > lowest[span])
    return rows[shared], np.bincount(span[shared], minlength=len(first))


def inner_rows(rows: Rows, lengths: Rows) -> tuple[Rows, Rows]:
    """Return the rows without the first and last of each span that has more than two.

    Those two may lie on a border of the CNV.
    """
    ends = np.cumsum(lengths)
    many = lengths > 2
    kept = np.ones(len(rows), np.bool_)
    kept[(ends - lengths)[many]] = kept[ends[many] - 1] = False
    return rows[kept], lengths - 2 * many
