"""Results of a copy-number run over all chromosomes: the tables of its files as objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.alignments.regions import Regions
from multigpu.workloads.cnv.calls.copy_numbers import direction
from multigpu.workloads.cnv.calls.regions import count_carriers
from multigpu.workloads.cnv.calls.segments import Columnar, Floats, Indices, Rows
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.output import tables
from multigpu.workloads.cnv.output.matrices import Matrices, dataset, joined
from multigpu.workloads.cnv.output.windows import Window
from multigpu.workloads.cnv.samples.sex import Coverage, UsualCopies

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr


@dataclass(frozen=True, eq=False, kw_only=True)
class SegmentTable(Columnar):
    """Segments by chromosome, sample and position.

    chrom, sample  int32[n]    indices of their names
    start, end     int64[n]    bases, from 0, half open
    rows           int64[n]    regions in the segment
    mean, median   float64[n]  of the signed I/NI
    copy_number    int32[n]    class relative to what is usual, or NOT_CALLED; see `UsualCopies`
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
    copy_number  int32[n, samples]    classes to show: those of the numbers of copies
    fractional   float64[n, samples]  fractional copy numbers; NaN where they are not wanted
    """

    chrom: Indices
    start: Rows
    end: Rows
    copy_number: Indices
    fractional: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class CnvResult:
    """Results of a run; the properties have the names and the columns of the files.

    regions, samples  of the input, in its order
    controls          names of the controls
    segments          all segments; `cnv` marks the CNVs
    classes           int8[CNVs, samples]: the model's class of each sample in the inner regions of
                      each CNV; NOT_CALLED where it is not compared
    usual             usual copies, with which the model compares
    sex, ploidy       of every sample, where they were given or inferred
    kept              (first region, matrices by name) of every chromosome, where they were kept
    windows           the largest CNV regions and their surroundings, for figures
    notes             remarks on the data and the options, one sentence each
    lengths           of chromosomes in bases, by name, where they are known
    sex_coverage      coverage of X and Y, where sexes were inferred from it
    """

    options: CnvOptions
    regions: Regions
    samples: tuple[str, ...]
    segments: SegmentTable
    called_regions: RegionTable
    classes: NDArray[np.int8]
    usual: UsualCopies
    robust_regions: RegionTable | None = None
    controls: tuple[str, ...] = ()
    sex: tuple[str, ...] = ()
    ploidy: tuple[int, ...] | None = None
    kept: tuple[tuple[int, Matrices], ...] = ()
    windows: tuple[Window, ...] = ()
    notes: tuple[str, ...] = ()
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
        compared = (self.usual.of_intervals(cnvs.chrom, cnvs.start, cnvs.end) > 0).sum(axis=1)
        return np.asarray(carriers / compared)


def genome_positions(rows: SegmentTable, cnvs: SegmentTable) -> tuple[Rows, Rows]:
    """Return start and end of rows when chromosomes are laid end to end, with room for all CNVs."""
    offset = rows.chrom.astype(np.int64) * int(cnvs.end.max(initial=0))
    return offset + rows.start, offset + rows.end
