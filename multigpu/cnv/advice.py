"""Advice on what to try where no CNVs were found, judged by the data."""

from collections.abc import Iterator

import numpy as np

from multigpu.cnv.calls.segments import Floats
from multigpu.cnv.options import CnvOptions
from multigpu.cnv.result import SegmentTable
from multigpu.formats.alignments.regions import Regions

FEW_REGIONS = 50  # of a chromosome: most of them may change at once
FEW_READS = 50  # of a region: below it noise is as large as a change by one copy
NEAR = 0.5  # share of a threshold above which a segment may be a change


def advice_without_cnvs(
    segments: SegmentTable, regions: Regions, options: CnvOptions, reads: float
) -> str:
    """Return a note that there are no CNVs, with options that may show some.

    reads  mean of a region
    """
    found = [
        *_normalized_one_by_one(regions, options),
        *_narrow(segments, options),
        *_near(segments, options),
        *_few_reads(options, reads),
    ]
    if not found:
        return (
            "no CNVs were found: no segment comes near the thresholds; another --norm-type or"
            " --prior-impact may show some"
        )
    return f"no CNVs were found; what may show some: {'; '.join(found)}"


def _normalized_one_by_one(regions: Regions, options: CnvOptions) -> Iterator[str]:
    """Yield advice where a chromosome is little more than a gene: its loss is divided out."""
    sizes = [block.stop - block.start for block in regions.blocks]
    one_by_one = options.is_normalized and not options.genome_wide
    if one_by_one and len(sizes) > 1 and np.median(sizes) < FEW_REGIONS:
        yield (
            f"--genome-wide (every chromosome is normalized by itself, and has {np.median(sizes):g}"
            " regions in the median: a change of most of one is taken for the depth of the sample)"
        )


def _narrow(segments: SegmentTable, options: CnvOptions) -> Iterator[str]:
    """Yield advice where segments lack nothing but width to be CNVs."""
    value = _judged_value(segments, options)
    beyond = (value >= options.upper) | (value <= options.lower)
    if beyond.any():
        rows = segments.rows[beyond]
        yield (
            f"--min-width {int(rows.max())} ({_segments(len(rows))} beyond the thresholds, with"
            f" fewer than {options.min_width} regions)"
        )


def _near(segments: SegmentTable, options: CnvOptions) -> Iterator[str]:
    """Yield advice where the strongest of the wide segments come near a threshold."""
    value = _judged_value(segments, options)[segments.rows >= options.min_width]
    limits = (("--upper", "gain", options.upper, 1), ("--lower", "loss", options.lower, -1))
    for option, kind, limit, sign in limits:
        strongest = float((sign * value).max(initial=0.0)) * sign
        if NEAR * abs(limit) <= abs(strongest) < abs(limit):
            rounded = np.floor(abs(strongest) * 100) / 100 * sign
            yield (
                f"{option} {rounded:g} (the strongest {kind} has {strongest:.2g}, the threshold is"
                f" {limit:g})"
            )


def _few_reads(options: CnvOptions, reads: float) -> Iterator[str]:
    if reads < FEW_READS and options.norm != 0:
        yield f"larger windows or regions (they have {reads:.3g} reads in the mean)"


def _judged_value(segments: SegmentTable, options: CnvOptions) -> Floats:
    return segments.median if options.use_median else segments.mean


def _segments(count: int) -> str:
    return "1 segment is" if count == 1 else f"{count:,} segments are"
