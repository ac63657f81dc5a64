"""Chromosomes and arms that a sample has more or less of as a whole."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.hmm import USUAL
from multigpu.workloads.cnv.plan import CnvSpan
from multigpu.workloads.cnv.records import Floats, Rows, SegmentTable, States
from multigpu.workloads.cnv.results.intervals import last_bases
from multigpu.workloads.cnv.samples.cohort import Cohort

FEW_SAMPLES = 6  # below it nobody tells what is usual
UNUSUAL, SPREADS = 0.25, 5  # change of a chromosome's reads, and as a multiple of what is usual
LEAST_REGIONS, LEAST_READS = 20, 400  # of a chromosome: below them chance may do as much
MOST_OF = 0.8  # regions of a chromosome or arm that is changed as a whole
CENTROMERE = 1_000_000  # bases without regions between two arms at least


def unusual_chromosomes(
    cohort: Cohort, spans: Sequence[CnvSpan], sums: Floats
) -> Iterator[tuple[CnvSpan, int, float]]:
    """Yield chromosome, column and share where a sample has unusual reads by those elsewhere.

    sums   float64[chromosomes, columns]: reads
    share  of the reads that are usual there
    """
    # Chromosomes count by their regions: few of many reads, as of mitochondria, tell little.
    sizes, usual = [span.stop - span.first for span in spans], np.median(sums, axis=1)
    sums = sums * np.divide(sizes, usual, out=np.zeros(len(spans)), where=usual > 0)[:, None]
    elsewhere = sums[[span.copies is None for span in spans]].sum(axis=0)
    for span, reads, mean in zip(spans, sums, usual / sizes, strict=True):
        columns = np.arange(len(reads)) if span.columns is None else np.array(span.columns, int)
        others = (elsewhere - reads * (span.copies is None))[columns]
        enough = len(columns) >= FEW_SAMPLES and span.stop - span.first >= LEAST_REGIONS
        if cohort.ploidy is not None or not enough or not others.all():
            continue
        share = reads[columns] / others / np.array(span.copies or 2)
        share /= np.median(share) or 1
        change = abs(share - 1)
        unusual = change >= max(UNUSUAL, SPREADS * float(np.median(change)))
        unusual &= reads[columns] * mean >= LEAST_READS
        for k in np.flatnonzero(unusual).tolist():
            yield span, int(columns[k]), float(share[k])


def whole_segments(
    segments: SegmentTable, shares: dict[int, float], start: Rows, end: Rows
) -> SegmentTable:
    """Return the segments of a chromosome, with one segment for each sample in `shares`.

    shares      of the usual reads, by the number of the sample; their logarithm to base 2 is the
                segment's mean and median
    start, end  of the regions of the chromosome, in bases
    """
    first = np.flatnonzero(np.diff(segments.sample, prepend=-1))
    is_whole = np.isin(segments.sample, list(shares))
    kept = np.union1d(np.flatnonzero(~is_whole), first[is_whole[first]])
    found = segments.take(kept)
    is_whole = is_whole[kept]
    value = np.log2([shares.get(int(k), 1.0) for k in found.sample])
    stop = np.where(is_whole, len(start), found.stop)
    return replace(
        found,
        stop=stop,
        end=last_bases(end, found.first, stop, False),
        mean=np.where(is_whole, value, found.mean),
        median=np.where(is_whole, value, found.median),
    )


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
