"""Tables of the calls of all chromosomes, put together from the parts of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from multigpu.formats.alignments.regions import Regions
from multigpu.workloads.cnv.calls.copy_numbers import (
    classes_by_usual_copies,
    fractional_copy_numbers,
)
from multigpu.workloads.cnv.calls.regions import last_bases, region_copy_numbers
from multigpu.workloads.cnv.calls.segments import NOT_CALLED, Indices, Rows, Segments, Spans
from multigpu.workloads.cnv.chromosome import CnvPart
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.result import RegionTable, SegmentTable
from multigpu.workloads.cnv.samples.sex import UsualCopies

SPECIAL = {"X": 1, "Y": 2, "M": 3, "MT": 3}  # R's order of the chromosomes that have no number


@dataclass(frozen=True, eq=False, kw_only=True)
class Assembler:
    """Parts of all chromosomes, and what is needed to make tables of them.

    samples  number of cases
    """

    parts: Sequence[CnvPart]
    regions: Regions
    samples: int
    options: CnvOptions
    usual: UsualCopies

    def segments(self) -> SegmentTable:
        """Return the segments. Where there is no CNV at all nothing is called, as in R."""
        parts, regions, options = self.parts, self.regions, self.options
        segments = Segments.joined([part.segments for part in parts])
        rows = self._rows([part.segments.first for part in parts])
        called = np.concatenate([part.called for part in parts])
        classes = segments.copy_number if called.any() else np.full(len(rows), NOT_CALLED, np.int32)
        table = SegmentTable(
            chrom=regions.chrom[rows],
            sample=segments.sample,
            start=regions.start[rows],
            end=self._ends([(part.segments.first, part.segments.stop) for part in parts]),
            rows=segments.stop - segments.first,
            mean=segments.mean,
            median=segments.median,
            copy_number=classes,
            fractional=np.full_like(segments.mean, np.nan),
            cnv=called,
        )
        if options.fractional is None:
            return table
        value = table.median if options.fractional == "median" else table.mean
        usual = self.usual.of_segments(table)
        return replace(table, fractional=fractional_copy_numbers(value, options, usual))

    def cnv_regions(self, cnvs: SegmentTable) -> RegionTable:
        """Return the CNV regions, with the copy numbers of these CNVs.

        R pairs ranges in the order of the rows with chromosomes in the order of their names, but
        not for a single sample, whose regions are its CNVs.
        """
        mispaired = self.options.compat_r and self.options.model != "single"
        table = self._region_table([part.regions for part in self.parts], cnvs, mispaired)
        if self.options.fractional is None:
            return table
        return replace(table, fractional=np.concatenate([p.fractional for p in self.parts]))

    def robust_regions(self, cnvs: SegmentTable) -> RegionTable | None:
        """Return the robust CNV regions, where they are wanted."""
        if self.options.robust is None:
            return None
        spans = [part.robust for part in self.parts if part.robust is not None]
        return self._region_table(spans, cnvs, mispaired=False)

    def _rows(self, rows: Sequence[Rows]) -> Rows:
        """Return rows of each part, numbered through all regions."""
        return np.concatenate([p.begin + each for p, each in zip(self.parts, rows, strict=True)])

    def _ends(self, spans: Sequence[Spans]) -> Rows:
        """Return the last base of spans of rows of each part."""
        found = []
        for part, (first, stop) in zip(self.parts, spans, strict=True):
            end = self.regions.end[part.begin : part.begin + int(stop.max(initial=0))]
            found.append(last_bases(end, first, stop, self.options.compat_r))
        return np.concatenate(found)

    def _region_table(
        self, spans: Sequence[Spans], cnvs: SegmentTable, mispaired: bool
    ) -> RegionTable:
        """Return regions, given as rows of each part, with the copy numbers of the CNVs there."""
        regions, options = self.regions, self.options
        rows = self._rows([first for first, _ in spans])
        chrom, start, end = regions.chrom[rows], regions.start[rows], self._ends(spans)
        if mispaired:
            chrom = _chromosomes_of_r(chrom, regions.names)

        # Chromosomes are laid end to end, each in as many bases as the longest one needs.
        room = max(int(end.max(initial=0)), int(cnvs.end.max(initial=0)))
        offset, cnv_offset = chrom.astype(np.int64) * room, cnvs.chrom.astype(np.int64) * room

        # A CNV has its own label; a sample without one has the label of what is usual here.
        usual = self.usual.of_intervals(chrom, start, end)
        copies = region_copy_numbers(
            start=offset + start,
            end=offset + end,
            cnv_start=cnv_offset + cnvs.start,
            cnv_end=cnv_offset + cnvs.end,
            sample=cnvs.sample,
            copy_number=self.usual.shown_classes(cnvs, options),
            samples=self.samples,
            unchanged=classes_by_usual_copies(options)[usual, options.main],
        )
        unknown = np.full(copies.shape, np.nan)
        return RegionTable(
            chrom=chrom, start=start, end=end, copy_number=copies, fractional=unknown
        )


def _chromosomes_of_r(chrom: Indices, names: Sequence[str]) -> Indices:
    """Return R's chromosome of every CNV region: all of them sorted, whatever the row.

    This is a mistake of R's package that `--compat r` repeats; docs/cnv.md says why.
    """
    order = sorted(range(len(names)), key=lambda k: _level_key(names[k]))
    ranks = np.argsort(order)
    return chrom[np.argsort(ranks[chrom], kind="stable")]


def _level_key(name: str) -> tuple[int, int, int, str]:
    """Return the key of R's order: chr1, chr2, chr10, chrX, chrM, the others."""
    group = 0 if name.startswith(("chr", "CHR")) else 1
    rest = name if group else name[3:]
    if rest.isascii() and rest.isdigit():
        return group, 0, int(rest), rest
    return group, 1 + (rest not in SPECIAL), SPECIAL.get(rest, 0), rest
