"""Stage 5: from segments to calls. Arrays in, arrays out.

Rows are regions, numbered through one chromosome. A span of rows is (first, stop), half open.
The rules are those of the golden data (docs/cnv.md), Klambauer et al. 2012 for the model.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.cnv.options import CnvOptions

NOT_CALLED = -1  # the copy number of segments where there was nothing to call
MISSING = "NA"  # its label
PAIRS = 1 << 18  # of CNVs and regions that are compared at a time: they fit into a cache
ROWS = 1 << 16  # of CNVs, whose counts are averaged at a time; one that is longer, alone

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of one chromosome, by sample and position.

    sample       int32[n]    index of the sample
    first, stop  int64[n]    rows of the chromosome
    mean, median float64[n]  of the signed I/NI
    copy_number  int32[n]    index of the class, NOT_CALLED where nothing was called
    """

    sample: Indices
    first: Rows
    stop: Rows
    mean: Floats
    median: Floats
    copy_number: Indices

    def __len__(self) -> int:
        return len(self.sample)

    def take(self, rows: NDArray[Any]) -> "Segments":
        """Some of the segments: by mask or index."""
        return Segments(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def joined(cls, parts: "Sequence[Segments]") -> Self:
        """All segments, in the order given."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @classmethod
    def empty(cls) -> Self:
        rows, floats = np.empty(0, np.int64), np.empty(0)
        return cls(np.empty(0, np.int32), rows, rows, floats, floats, np.empty(0, np.int32))


def call(segments: Segments, options: CnvOptions) -> Floats:
    """float64[n]: the value by which each segment is judged."""
    return segments.median if options.use_median else segments.mean


def is_cnv(segments: Segments, options: CnvOptions) -> NDArray[np.bool_]:
    """Which segments are long enough, and beyond a threshold."""
    value = call(segments, options)
    beyond = (value >= options.upper) | (value <= options.lower)
    wide: NDArray[np.bool_] = segments.stop - segments.first >= options.min_width
    return beyond & wide


def union(first: Rows, stop: Rows) -> tuple[Rows, Rows]:
    """Spans joined where they overlap or follow each other directly; in ascending order."""
    if not len(first):
        return first, stop
    order = np.argsort(first, kind="stable")
    first, stop = first[order], stop[order]
    reached = np.maximum.accumulate(stop)
    begins = np.flatnonzero(np.r_[True, first[1:] > reached[:-1]])
    ends = np.r_[begins[1:] - 1, len(first) - 1]
    return first[begins], reached[ends]


def union_in_bases(first: Rows, stop: Rows, start: Rows, end: Rows) -> tuple[Rows, Rows]:
    """The same where regions that follow each other may have a gap between them: it divides."""
    begin, reached = union(start[first], end[stop - 1])
    rows = np.searchsorted(np.maximum.accumulate(end), reached)
    return np.searchsorted(start, begin), rows + 1


def reach(end: Rows, first: Rows, stop: Rows) -> Rows:
    """The last base of each span, which is not that of its last region where these are nested."""
    borders = np.column_stack([first, stop]).ravel()
    return np.asarray(np.maximum.reduceat(np.append(end, 0), borders)[::2])


def own_rows(first: Rows, stop: Rows) -> tuple[Rows, Rows]:
    """The rows of all spans one after the other, and how many each span has."""
    lengths = stop - first
    before = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) + np.repeat(first - before, lengths), lengths


def overlapping_rows(start: Rows, end: Rows, first: Rows, stop: Rows) -> tuple[Rows, Rows]:
    """The rows whose regions share a base with those of each span, and how many each span has.

    More than the span's own rows where regions overlap each other: R's. `start` is ascending.
    """
    lowest, highest = start[first], end[stop - 1]
    begin, earlier = first.copy(), np.arange(len(first))
    while len(earlier):  # spans that may begin yet a row before
        earlier = earlier[begin[earlier] > 0]
        earlier = earlier[end[begin[earlier] - 1] > lowest[earlier]]
        begin[earlier] -= 1
    lengths = np.maximum(np.searchsorted(start, highest), stop) - begin
    span = np.repeat(np.arange(len(first)), lengths)
    rows = np.arange(len(span)) + (begin - (np.cumsum(lengths) - lengths))[span]
    shared = (start[rows] < highest[span]) & (end[rows] > lowest[span])
    return rows[shared], np.bincount(span[shared], minlength=len(first))


def inner(rows: Rows, lengths: Rows) -> tuple[Rows, Rows]:
    """Spans' rows without the outermost two, which may lie on a border, where there are more."""
    ends = np.cumsum(lengths)
    many = lengths > 2
    kept = np.ones(len(rows), np.bool_)
    kept[(ends - lengths)[many]] = kept[ends[many] - 1] = False
    return rows[kept], lengths - 2 * many


def inner_averages(
    values: Callable[[Rows], Floats],
    start: Rows,
    end: Rows,
    spans: tuple[Rows, Rows],
    median: bool = False,
    overlapping: bool = False,
) -> Floats:
    """[spans, columns]: the mean (median) over the inner rows of every span, one span at least.

    values       gives [rows, columns] of some rows; of many spans not all are held at a time
    overlapping  over those, too, that share a base with it
    """
    first, stop = spans
    borders = np.flatnonzero(np.diff(np.cumsum(stop - first) // ROWS)) + 1
    blocks = zip(*(np.split(side, borders) for side in spans), strict=True)
    return np.concatenate(
        [_averages(values, inner(*_rows(start, end, few, overlapping)), median) for few in blocks]
    )


def _rows(start: Rows, end: Rows, spans: tuple[Rows, ...], overlapping: bool) -> tuple[Rows, Rows]:
    return overlapping_rows(start, end, *spans) if overlapping else own_rows(*spans)


def _averages(values: Callable[[Rows], Floats], spans: tuple[Rows, Rows], median: bool) -> Floats:
    """spans: rows one after the other, and how many each span has."""
    rows, lengths = spans
    begins = np.cumsum(lengths) - lengths
    every = values(rows)
    if median:
        parts = np.split(every, begins[1:])
        return np.array([np.median(part, axis=0) for part in parts])
    averages: Floats = np.add.reduceat(every, begins, axis=0) / lengths[:, None]
    return averages


def integer_copy_numbers(
    segments: Segments, classes: Indices, called: NDArray[np.bool_], options: CnvOptions
) -> Indices:
    """The class of every segment.

    classes  int32[CNVs, samples]: what the model says of the inner regions of every CNV

    What is no CNV has the main class. Where a segment has it although it is beyond a threshold,
    the next class in that direction is taken.
    """
    copy_number = np.full(len(segments), options.main, np.int32)
    copy_number[called] = classes[np.arange(len(classes)), segments.sample[called]]
    unchanged = copy_number == options.main
    gain, loss = neighbours(options)
    value = call(segments, options)
    copy_number[unchanged & (value > options.upper)] = gain
    copy_number[unchanged & (value < options.lower)] = loss
    return copy_number


def direction(copy_number: Indices, options: CnvOptions) -> Indices:
    """int32: -1, 0 or 1: fewer copies, as many as, or more copies than the main class."""
    folds = np.array([*options.fold_changes, options.fold_changes[options.main]])  # last: missing
    return np.sign(folds[copy_number] - options.fold_changes[options.main]).astype(np.int32)


def neighbours(options: CnvOptions) -> tuple[int, int]:
    """The classes next to the main one: (more, fewer) copies.

    R takes those that stand beside it in the list, whatever they mean.
    """
    main, last = options.main, len(options.classes) - 1
    if options.compat_r:
        return min(main + 1, last), max(main - 1, 0)
    order = np.argsort(options.fold_changes, kind="stable").tolist()
    place = order.index(main)
    return order[min(place + 1, last)], order[max(place - 1, 0)]


def cnv_regions(segments: Segments, called: NDArray[np.bool_], merge: bool) -> tuple[Rows, Rows]:
    """The regions in which any sample has a CNV; `merge`: their union."""
    first, stop = segments.first[called], segments.stop[called]
    return union(first, stop) if merge else (first, stop)


def region_copy_numbers(
    start: Rows, end: Rows, cnv_start: Rows, cnv_end: Rows, sample: Indices, copy_number: Indices,
    samples: int, main: int,
) -> Indices:  # fmt: skip
    """[regions, samples]: of the sample's first CNV that overlaps the region, else the main class.

    All in bases; of several chromosomes, each lies behind those before it.
    """
    result = np.full((len(start), samples), main, np.int32)
    for cnv, region in overlaps(start, end, cnv_start, cnv_end):
        result[region, sample[cnv]] = copy_number[cnv]  # of several, the one written last stays
    return result


def overlaps(
    start: Rows, end: Rows, cnv_start: Rows, cnv_end: Rows
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """All (CNVs, regions) that share a base, from the last CNV to the first; in blocks.

    Regions stand in any order and may overlap each other. By their starts, those that can share a
    base with a CNV follow each other: the first one, or one before it, is the first to reach beyond
    the CNV's start, and the last one is the last to start before its end.
    """
    order = np.argsort(start, kind="stable")
    first = np.searchsorted(np.maximum.accumulate(end[order]), cnv_start, "right")
    counts = np.maximum(np.searchsorted(start[order], cnv_end) - first, 0)
    backwards = np.arange(len(counts))[::-1]
    block = np.cumsum(counts[backwards]) // PAIRS
    for few in np.split(backwards, np.flatnonzero(np.diff(block)) + 1):
        several = counts[few]
        cnv = np.repeat(few, several)
        before = np.cumsum(several) - several  # pairs of other CNVs
        region = order[np.arange(len(cnv)) + np.repeat(first[few] - before, several)]
        touched = end[region] > cnv_start[cnv]
        yield cnv[touched], region[touched]


def carriers_there(start: Rows, end: Rows, sample: Indices) -> Rows:
    """int64[n]: in how many samples there is one of these CNVs that shares a base with each.

    In bases; of several chromosomes, each lies after those before it.
    """
    found, samples = np.zeros(len(start), np.int64), int(sample.max(initial=0)) + 1
    for cnv, other in overlaps(start, end, start, end):  # all others of a CNV at a time
        pairs = np.unique(cnv * samples + sample[other])
        found += np.bincount(pairs // samples, minlength=len(found))
    return found


def names_by_copies(options: CnvOptions) -> Indices:
    """int32[3, classes + 1]: which class each one is called where 0, 1 or 2 copies are usual.

    The one whose fold change is nearest to its share of copies, on the same side of what is usual.
    What is not called, the last one, stays so; with no copies nothing is.
    """
    folds, main = np.array(options.fold_changes), options.main
    found = np.full((3, len(folds) + 1), NOT_CALLED, np.int32)
    found[2, :-1] = np.arange(len(folds))
    usual = int(np.abs(folds - folds[main] / 2).argmin())
    for k, fold in enumerate(folds):
        same_side = np.flatnonzero(np.sign(folds - folds[usual]) == np.sign(fold - folds[main]))
        near = same_side if len(same_side) else np.array([usual])
        away = np.abs(folds[near] - folds[usual])  # of two that are as near, the farther one
        found[1, k] = near[np.lexsort((-away, np.abs(folds[near] - fold / 2)))[0]]
    return found


def fractional(value: Floats, options: CnvOptions, copies: Any = 2) -> Floats:
    """Copy numbers from signed I/NI, to one decimal; NaN where no copies are usual.

    copies  the usual ones of each value; half of them in a haploid genome
    """
    usual = np.where(copies, copies, np.nan) / (2 if options.model == "haplo" else 1)
    return np.round(usual * options.fold_changes[options.main] * np.exp2(value), 1)


def fractional_labels(copies: Floats, options: CnvOptions) -> tuple[Indices, list[str]]:
    """Which label every copy number has, and the labels: `CN1.7`.

    R pads all of a vector, or of each row of a matrix, to one width: `CN 1.7` beside `CN16.0`.
    """
    values, places = np.unique(copies, return_inverse=True)
    texts = [f"{value:.1f}" for value in values.tolist()]
    width = np.zeros(1, np.int32)
    if options.compat_r:
        lengths = np.array([len(text) for text in texts], np.int32)
        width = lengths[places].max(axis=-1, keepdims=True, initial=0)
    widths = range(int(width.max(initial=0)) + 1)
    labels = [MISSING if text == "nan" else "CN" + text.rjust(n) for n in widths for text in texts]
    return (width * len(texts) + places).astype(np.int32), labels
