"""The parts of all chromosomes put together: the last step of the calls, on the client."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from multigpu.cnv import compat
from multigpu.cnv.calls.calls import (
    NOT_CALLED,
    Rows,
    fractional,
    names_by_copies,
    reach,
    region_copy_numbers,
)
from multigpu.cnv.chromosome import CnvPart, Spans
from multigpu.cnv.options import CnvOptions
from multigpu.cnv.result import RegionTable, SegmentTable, copies_of
from multigpu.cnv.samples.sex import Usual
from multigpu.formats.alignments.regions import Regions

UNCHANGED = -2  # in place of a class: the sample has no CNV there


def segment_table(
    parts: Sequence[CnvPart], regions: Regions, options: CnvOptions, usual: Usual | None
) -> SegmentTable:
    """The segments of all chromosomes. Where there is no CNV nothing is called, as in R.

    usual  copies, where these go by sex
    """
    first = _joined([part.begin + part.segments.first for part in parts])
    stop = _joined([part.begin + part.segments.stop for part in parts])
    called = np.concatenate([part.called for part in parts])
    copies = np.concatenate([part.segments.copy_number for part in parts])
    if not called.any():
        copies = np.full_like(copies, NOT_CALLED)
    chrom, sample = regions.chrom[first], np.concatenate([part.segments.sample for part in parts])
    spans = [(part.segments.first, part.segments.stop) for part in parts]
    start, end = regions.start[first], _ends(spans, parts, regions, options.compat_r)
    mean = np.concatenate([part.segments.mean for part in parts])
    median = np.concatenate([part.segments.median for part in parts])
    fractions = np.full_like(mean, np.nan)
    if options.fractional is not None:
        own = 2 if usual is None else usual.of_samples(chrom, start, end, sample)
        fractions = fractional(median if options.fractional == "median" else mean, options, own)
    return SegmentTable(
        chrom,
        sample,
        start,
        end,
        stop - first,
        mean,
        median,
        copies,
        fractions,
        called,
    )


def _joined(rows: list[Rows]) -> Rows:
    joined: Rows = np.concatenate(rows)
    return joined.astype(np.int64)


def _ends(
    spans: Sequence[Spans], parts: Sequence[CnvPart], regions: Regions, compat_r: bool
) -> Rows:
    """The last base of each span, given as rows of each part. R takes that of the last region."""
    found = []
    for part, (first, stop) in zip(parts, spans, strict=True):
        end = regions.end[part.begin : part.begin + int(stop.max(initial=0))]
        found.append(reach(end, first, stop) if part.nested and not compat_r else end[stop - 1])
    return np.concatenate(found)


def called_regions(
    parts: Sequence[CnvPart], regions: Regions, cnvs: SegmentTable, samples: int,
    options: CnvOptions, usual: Usual | None = None,
) -> RegionTable:  # fmt: skip
    """The CNV regions of all chromosomes.

    R pairs ranges in the order of the rows with chromosomes in the order of their names, but for a
    single sample, whose regions are its CNVs.
    """
    spans = [part.regions for part in parts]
    mispaired = options.compat_r and options.model != "single"
    table = _region_table(spans, parts, regions, cnvs, samples, options, mispaired, usual)
    if options.fractional is None:
        return table
    return replace(table, fractional=np.concatenate([part.fractional for part in parts]))


def robust_regions(
    parts: Sequence[CnvPart], regions: Regions, cnvs: SegmentTable, samples: int,
    options: CnvOptions, usual: Usual | None = None,
) -> RegionTable | None:  # fmt: skip
    """The robust CNV regions, where they were asked for."""
    spans = [part.robust for part in parts if part.robust is not None]
    if options.robust is None:
        return None
    return _region_table(spans, parts, regions, cnvs, samples, options, False, usual)


def _region_table(
    spans: Sequence[Spans], parts: Sequence[CnvPart], regions: Regions, cnvs: SegmentTable,
    samples: int, options: CnvOptions, mispaired: bool, usual: Usual | None,
) -> RegionTable:  # fmt: skip
    """Regions, given as rows of each part, with the copy numbers of the CNVs in them."""
    first = _joined([part.begin + first for part, (first, _) in zip(parts, spans, strict=True)])
    chrom, start = regions.chrom[first], regions.start[first]
    end = _ends(spans, parts, regions, options.compat_r)
    if mispaired:
        chrom = compat.region_chromosomes(chrom, regions.names)
    # Chromosomes lie behind each other, in as many bases as the longest one needs.
    room = max(int(end.max(initial=0)), int(cnvs.end.max(initial=0)))
    before, own = chrom.astype(np.int64) * room, cnvs.chrom.astype(np.int64) * room
    places = (before + start, before + end, own + cnvs.start, own + cnvs.end, cnvs.sample)
    against = region_copy_numbers(*places, cnvs.copy_number, samples, options.main)
    copies = None
    if usual is not None:  # a CNV has the name that it has alone; else it is what is usual here
        copies = region_copy_numbers(*places, copies_of(cnvs, usual, options), samples, UNCHANGED)
        main = names_by_copies(options)[usual.of(chrom, start, end), options.main]
        copies = np.where(copies == UNCHANGED, main, copies)
    return RegionTable(chrom, start, end, against, np.full(against.shape, np.nan), copies)
