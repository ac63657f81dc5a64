"""Results of a copy-number run over all chromosomes: the tables of its files as objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from multigpu.cnv.calls.copy_numbers import classes_by_usual_copies, direction
from multigpu.cnv.calls.regions import count_carriers
from multigpu.cnv.calls.segments import Columnar, Floats, Indices, Rows
from multigpu.cnv.options import CnvOptions
from multigpu.cnv.output import tables
from multigpu.cnv.output.matrices import Matrices, dataset, joined
from multigpu.cnv.output.windows import Window
from multigpu.cnv.samples.sex import Coverage, UsualCopies
from multigpu.formats.alignments.regions import Regions

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr

    from multigpu.cnv.output.vcf import Variants


@dataclass(frozen=True, eq=False, kw_only=True)
class SegmentTable(Columnar):
    """Segments by chromosome, sample and position.

    chrom, sample  int32[n]    indices of their names
    start, end     int64[n]    bases, from 0, half open
    rows           int64[n]    regions in the segment
    mean, median   float64[n]  of the signed I/NI
    copy_number    int32[n]    class relative to what is usual, or NOT_CALLED; see `shown_classes`
    fractional     float64[n]  fractional copy number; NaN where it is not wanted
    cnv            bool[n]     whether the segment is a CNV
    """

    chrom: Indices
    sample: Indices
    start: Rows
    end: Rows
    rows: Rows
    mean: Floats
    median: Floats
    copy_number: Indices
    fractional: Floats
    cnv: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class RegionTable(Columnar):
    """CNV regions by chromosome and position.

    chrom        int32[n]             index of the name
    start, end   int64[n]             bases, from 0, half open
    copy_number  int32[n, samples]    classes relative to what is usual
    fractional   float64[n, samples]  fractional copy numbers; NaN where they are not wanted
    copies       int32[n, samples]    classes to show; None: the same as `copy_number`
    """

    chrom: Indices
    start: Rows
    end: Rows
    copy_number: Indices
    fractional: Floats
    copies: Indices | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class CnvResult:
    """Results of a run; the properties have the names and the columns of the files.

    regions, samples  of the input, in its order
    controls          names of the controls
    segments          all segments; `cnv` marks the CNVs
    sex, ploidy       of every sample, where they were given or inferred
    kept              (first region, matrices by name) of every chromosome, where they were kept
    windows           the largest CNV regions and their surroundings, for figures
    notes             remarks on the data and the options, one sentence each
    usual             usual copies, where they go by sex
    lengths           of chromosomes in bases, by name, where they are known
    sex_coverage      coverage of X and Y, where sexes were inferred from it
    """

    options: CnvOptions
    regions: Regions
    samples: tuple[str, ...]
    segments: SegmentTable
    called_regions: RegionTable
    robust_regions: RegionTable | None = None
    controls: tuple[str, ...] = ()
    sex: tuple[str, ...] = ()
    ploidy: tuple[int, ...] | None = None
    kept: tuple[tuple[int, Matrices], ...] = ()
    windows: tuple[Window, ...] = ()
    notes: tuple[str, ...] = ()
    usual: UsualCopies | None = None
    lengths: Mapping[str, int] = field(default_factory=dict)
    sex_coverage: Coverage | None = None

    def __repr__(self) -> str:
        return (
            f"<CnvResult: {len(self.called):,} CNVs and {len(self.called_regions):,} CNV regions of"
            f" {len(self.samples):,} samples × {len(self.regions):,} regions>"
        )

    # ---- tables, as they are written ----------------------------------------------------------

    @property
    def cnvs(self) -> "pa.Table":
        """Segments that are CNVs: the columns of `segmentation`, and regions length frequency."""
        return tables.cnv_table(self)

    @property
    def cnv_regions(self) -> "pa.Table":
        """CNV regions: chrom start end and a column of copy numbers for every sample."""
        return tables.region_table(self, self.called_regions)

    @property
    def cnv_regions_robust(self) -> "pa.Table | None":
        """Robust CNV regions, with the columns of `cnv_regions`; None if they are not wanted."""
        if self.robust_regions is None:
            return None
        return tables.region_table(self, self.robust_regions)

    @property
    def segmentation(self) -> "pa.Table":
        """All segments: chrom start end sample median mean copy_number."""
        return tables.segment_table(self, self.segments)

    @property
    def fractional(self) -> "dict[str, pa.Table]":
        """Tables with fractional copy numbers, where these are wanted."""
        makers = tables.table_makers(self).items()
        return {name: make() for name, make in makers if name.endswith(tables.FRACTIONAL)}

    @property
    def matrices(self) -> "xr.Dataset":
        """Matrices that were kept, with regions, samples and classes as coordinates."""
        return dataset(joined(self.kept), self.regions, self.samples, self.options.classes)

    def tables(self) -> "dict[str, pa.Table]":
        """Return every table by the name of its file."""
        return {name: make() for name, make in tables.table_makers(self).items()}

    # ---- facts about the calls ----------------------------------------------------------------

    @cached_property
    def called(self) -> SegmentTable:
        """Segments that are CNVs."""
        return self.segments.take(self.segments.cnv)

    @cached_property
    def frequency(self) -> Floats:
        """float64[CNVs]: share of samples with a CNV in the same direction that shares a base.

        The samples are those that are compared on the chromosome.
        """
        cnvs = self.called
        sign = direction(cnvs.copy_number, self.options)
        carriers = np.zeros(len(cnvs), np.int64)
        for each in (-1, 0, 1):
            some = cnvs.take(sign == each)
            carriers[sign == each] = count_carriers(*genome_positions(some, cnvs), some.sample)
        compared = (self.usual_copies(cnvs.chrom, cnvs.start, cnvs.end) > 0).sum(axis=1)
        return np.asarray(carriers / compared)

    def usual_copies(self, chrom: Indices, start: Rows, end: Rows) -> NDArray[np.int8]:
        """Return int8[n, samples]: usual copies in each interval; 0 if not compared there."""
        if self.usual is not None:
            return self.usual.of_intervals(chrom, start, end)
        return np.full((len(chrom), len(self.samples)), self._same_copies, np.int8)

    def usual_copies_of(self, segments: SegmentTable) -> NDArray[np.int8]:
        """Return int8[n]: usual copies of each segment's sample in the segment."""
        if self.usual is not None:
            return self.usual.of_segments(segments)
        return np.full(len(segments), self._same_copies, np.int8)

    @property
    def _same_copies(self) -> int:
        """Usual copies where they do not go by sex."""
        return 1 if self.options.model == "haplo" else 2

    def shown_classes(self, table: SegmentTable | RegionTable) -> Indices:
        """Return the class to show for each copy number: that of the number of copies."""
        if isinstance(table, SegmentTable):
            return shown_classes(table, self.usual, self.options)
        return table.copy_number if table.copies is None else table.copies


def shown_classes(
    segments: SegmentTable, usual: UsualCopies | None, options: CnvOptions
) -> Indices:
    """Return int32[n]: the class to show for each segment: that of its number of copies."""
    if usual is None:
        return segments.copy_number
    return classes_by_usual_copies(options)[usual.of_segments(segments), segments.copy_number]


def genome_positions(rows: "SegmentTable | Variants", cnvs: SegmentTable) -> tuple[Rows, Rows]:
    """Return start and end of rows when chromosomes are laid end to end, with room for all CNVs."""
    offset = rows.chrom.astype(np.int64) * int(cnvs.end.max(initial=0))
    return offset + rows.start, offset + rows.end
