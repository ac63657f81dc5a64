"""Chromosomes and arms that a sample has more or less of as a whole."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.hmm.types import USUAL
from multigpu.workloads.cnv.plan import CnvSpan
from multigpu.workloads.cnv.records import Floats, Rows, SegmentTable, States
from multigpu.workloads.cnv.results.intervals import cut, last_bases
from multigpu.workloads.cnv.samples.cohort import Cohort

FEW_SAMPLES = 6  # below it nobody tells what is usual
UNUSUAL, SPREADS = 0.25, 5  # change of a chromosome's reads, and as a multiple of what is usual
LEAST_REGIONS, LEAST_READS = 20, 400  # of a chromosome: below them chance may do as much
MOST_OF = 0.8  # regions of a chromosome or arm that is changed as a whole
CENTROMERE = 1_000_000  # bases without regions between two arms at least


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeChange:
    """A chromosome or an arm that a case has more or less of."""

    case: int  # its number
    rows: slice  # of the chromosome
    share: float  # of the reads that are usual there
    depth: float  # the same of all of the chromosome


def unusual_chromosomes(
    cohort: Cohort, spans: Sequence[CnvSpan], sums: Floats
) -> Iterator[tuple[CnvSpan, int, float]]:
    """Yield chromosome, column and share where a sample has unusual reads by those elsewhere.

    sums   float64[chromosomes, columns]: reads
    share  of the reads that are usual there
    """
    for span, reads, others in _compared(cohort, spans, sums):
        share, unusual = _shares(span, reads, others, span.stop - span.first)
        for k in np.flatnonzero(unusual).tolist():
            yield span, k, float(share[k])


def whole_changes(
    cohort: Cohort, spans: Sequence[CnvSpan], sums: Floats, values: NDArray[Any]
) -> dict[int, list[WholeChange]]:
    """Return chromosomes and arms of which cases have unusual reads, by the chromosome's block.

    A chromosome is changed as a whole where both arms are changed alike.

    sums    float64[chromosomes, columns]: reads
    values  [regions, columns]: counts
    """
    found: dict[int, list[WholeChange]] = {}
    for span, reads, others in _compared(cohort, spans, sums):
        counts = values[span.rows]
        arms = _arms(cohort.regions.start[span.rows], cohort.regions.end[span.rows])
        parts = [slice(0, len(counts)), *arms]
        sides = [reads, *(counts[rows].sum(axis=0, dtype=np.float64) for rows in arms)]
        each = [
            _shares(span, part, others, rows.stop - rows.start)
            for rows, part in zip(parts, sides, strict=True)
        ]
        shares = np.array([share for share, _ in each])[:, : len(cohort.cases)]
        unusual = np.array([found for _, found in each])[:, : len(cohort.cases)]
        # The share of an arm that is too small to be compared is NaN.
        same = np.sign(shares - 1) == np.sign(shares[0] - 1)
        is_whole = (np.isnan(shares) | same & (abs(shares - 1) >= UNUSUAL)).all(axis=0)
        unusual[0] &= is_whole
        unusual[1:] &= ~unusual[0]
        changes = [
            WholeChange(case=k, rows=parts[n], share=float(shares[n, k]), depth=float(shares[0, k]))
            for n, k in np.argwhere(unusual).tolist()
        ]
        if changes:
            found[span.block] = changes
    return found


def _compared(
    cohort: Cohort, spans: Sequence[CnvSpan], sums: Floats
) -> Iterator[tuple[CnvSpan, Floats, Floats]]:
    """Yield chromosomes whose reads can be compared, float64[columns]: reads, those elsewhere."""
    # Chromosomes count by their regions: few of many reads, as of mitochondria, tell little.
    sizes, usual = [span.stop - span.first for span in spans], np.median(sums, axis=1)
    scaled = sums * np.divide(sizes, usual, out=np.zeros(len(spans)), where=usual > 0)[:, None]
    elsewhere = scaled[[span.copies is None for span in spans]].sum(axis=0)
    for span, reads, weighted in zip(spans, sums, scaled, strict=True):
        columns = slice(None) if span.columns is None else list(span.columns)
        others = elsewhere - weighted * (span.copies is None)
        enough = len(others[columns]) >= FEW_SAMPLES
        if cohort.ploidy is None and enough and others[columns].all():
            yield span, reads, others


def _shares(
    span: CnvSpan, reads: Floats, others: Floats, regions: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return [columns]: shares of the reads that are usual, and whether they are unusual.

    Shares are NaN where they cannot be told.
    """
    share, unusual = np.full(len(reads), np.nan), np.zeros(len(reads), np.bool_)
    columns = np.arange(len(reads)) if span.columns is None else np.array(span.columns, int)
    found = reads[columns] / others[columns] / np.array(span.copies or 2)
    if regions >= LEAST_REGIONS and np.median(found) > 0:
        share[columns] = found = found / np.median(found)
        change = abs(found - 1)
        limit = max(UNUSUAL, SPREADS * float(np.median(change)))
        unusual[columns] = (change >= limit) & (reads[columns] >= LEAST_READS)
    return share, unusual


def whole_segments(
    segments: SegmentTable, changes: Sequence[WholeChange], start: Rows, end: Rows
) -> SegmentTable:
    """Return the segments of a chromosome, with one segment for each of the changes.

    The logarithm of its share, to base 2, is the segment's mean and median.

    start, end  of the regions of the chromosome, in bases
    """
    is_changed = np.isin(segments.sample, [change.case for change in changes])
    borders = np.zeros(len(start) + 1, np.bool_)
    borders[[border for change in changes for border in (change.rows.start, change.rows.stop)]] = 1
    own = cut(segments.take(is_changed), borders[:-1], start, end)
    for change in changes:
        first, stop = np.array([change.rows.start]), np.array([change.rows.stop])
        inside = (own.sample == change.case) & (own.first >= first) & (own.stop <= stop)
        value = np.array([np.log2(change.share)])
        whole = replace(
            own.take(np.flatnonzero(inside)[:1]),
            first=first,
            stop=stop,
            start=start[first],
            end=last_bases(end, first, stop, False),
            mean=value,
            median=value,
        )
        own = SegmentTable.joined([own.take(~inside), whole])
    found = SegmentTable.joined([segments.take(~is_changed), own])
    return found.take(np.lexsort((found.first, found.sample)))


def fill_whole(states: States, told: NDArray[np.bool_], start: Rows, end: Rows) -> None:
    """Set states of chromosomes and arms that are changed in most of their regions to be alike.

    states  int8[regions, samples] of the hidden Markov model
    told    bool[regions]: whether enough reads are expected to tell copies; others do not count
    """
    for rows in (*_arms(start, end), slice(0, len(start))):
        part, counted = states[rows], told[rows]
        if counted.sum() < LEAST_REGIONS:
            continue
        for change in (part < USUAL, part > USUAL):
            for k in np.flatnonzero(change[counted].mean(axis=0) >= MOST_OF).tolist():
                values, counts = np.unique(part[change[:, k], k], return_counts=True)
                part[:, k] = values[counts.argmax()]


def _arms(start: Rows, end: Rows) -> list[slice]:
    """Return the rows on either side of the widest gap, if that may be a centromere."""
    gaps: Any = start[1:] - np.maximum.accumulate(end)[:-1]
    if not len(gaps) or gaps.max() < CENTROMERE:
        return []
    middle = int(gaps.argmax()) + 1
    return [slice(0, middle), slice(middle, len(start))]
