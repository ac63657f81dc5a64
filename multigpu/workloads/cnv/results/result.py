"""Results of a copy-number run over all chromosomes: the tables of its files as objects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables import arrow
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import (
    NOT_CALLED,
    CnvPart,
    Copies,
    Floats,
    Genotypes,
    Indices,
    Matrices,
    RegionTable,
    Rows,
    SampleFacts,
    SampleTracks,
    SegmentTable,
    Spans,
)
from multigpu.workloads.cnv.results.copy_numbers import class_labels, direction, fractional_labels
from multigpu.workloads.cnv.results.intervals import count_carriers, overlaps
from multigpu.workloads.cnv.results.matrices import dataset, joined
from multigpu.workloads.cnv.results.qc import QcTable
from multigpu.workloads.cnv.samples.sex import Coverage

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr

FRACTIONAL = "_fractional"  # end of the names of tables with fractional copy numbers
LOW_QUALITY = 20.0  # Phred: one in a hundred such records has no change


@dataclass(frozen=True, eq=False, kw_only=True)
class CnvResult:
    """Results of a run; the properties have the names and the columns of the files.

    regions, samples  of the input, in its order
    controls          names of the controls
    segments          all segments; `cnv` marks the CNVs
    classes, usual    int8[CNVs, samples]: see `CnvPart`
    sex, ploidy       of every sample, where they were given or inferred
    kept              (first region, matrices by name) of every chromosome, where they were kept
    tracks            values of the samples along each chromosome, for the report
    notes             remarks on the data and the options, one sentence each
    lengths           of chromosomes in bases, by name, where they are known
    sex_coverage      coverage of X and Y, where sexes were inferred from it
    genotypes         of the rows of `called`, where they were computed
    facts             what is known of each sample and then control
    """

    options: CnvOptions
    regions: Regions
    samples: tuple[str, ...]
    segments: SegmentTable
    called_regions: RegionTable
    classes: Copies
    usual: Copies
    robust_regions: RegionTable | None = None
    controls: tuple[str, ...] = ()
    sex: tuple[str, ...] = ()
    ploidy: tuple[int, ...] | None = None
    kept: tuple[tuple[int, Matrices], ...] = ()
    tracks: tuple[SampleTracks, ...] = ()
    notes: tuple[str, ...] = ()
    lengths: Mapping[str, int] = field(default_factory=dict)
    sex_coverage: Coverage | None = None
    genotypes: Genotypes | None = None
    facts: SampleFacts | None = None

    def __repr__(self) -> str:
        return (
            f"<CnvResult: {len(self.called):,} CNVs and {len(self.called_regions):,} CNV regions of"
            f" {len(self.samples):,} samples × {len(self.regions):,} regions>"
        )

    @property
    def cnvs(self) -> "pa.Table":
        """Segments that are CNVs: the columns of `segmentation`, and regions length frequency.

        By a hidden Markov model they have another column: quality.

        Where regions have names, these are the last column of all tables: genes.
        """
        return self._cnv_table()

    @property
    def cnv_regions(self) -> "pa.Table":
        """CNV regions: chrom start end, and a column of copy numbers for every sample [genes]."""
        return self._region_table(self.called_regions)

    @property
    def cnv_regions_robust(self) -> "pa.Table | None":
        """Robust CNV regions, with the columns of `cnv_regions`; None if they are not wanted."""
        return None if self.robust_regions is None else self._region_table(self.robust_regions)

    @property
    def segmentation(self) -> "pa.Table":
        """All segments: chrom start end sample median mean copy_number [genes]."""
        return self._segment_table(self.segments)

    @property
    def fractional(self) -> "dict[str, pa.Table]":
        """Tables with fractional copy numbers, where these are wanted."""
        makers = self.table_makers().items()
        return {name: make() for name, make in makers if name.endswith(FRACTIONAL)}

    @property
    def matrices(self) -> "xr.Dataset":
        """Matrices that were kept, with regions, samples and classes as coordinates."""
        return dataset(joined(self.kept), self.regions, self.samples, self.options.classes)

    def tables(self) -> "dict[str, pa.Table]":
        """Return every table by the name of its file."""
        return {name: make() for name, make in self.table_makers().items()}

    def table_makers(self) -> "dict[str, Callable[[], pa.Table]]":
        """Return a function for every table, by the name of its file: a thread can take each."""
        makers: dict[str, Callable[..., pa.Table]] = {
            "cnvs": self._cnv_table,
            "cnv_regions": partial(self._region_table, self.called_regions),
            "segmentation": partial(self._segment_table, self.segments),
        }
        fractional = {}
        if self.options.fractional is not None:
            fractional = {name + FRACTIONAL: partial(m, True) for name, m in makers.items()}
        if self.robust_regions is not None:
            makers["cnv_regions_robust"] = partial(self._region_table, self.robust_regions)
        return makers | fractional

    def _cnv_table(self, fractional: bool = False) -> "pa.Table":
        cnvs = self.called
        more = {"regions": cnvs.rows, "length": cnvs.end - cnvs.start, "frequency": self.frequency}
        if self.options.is_hmm:
            more["quality"] = np.round(cnvs.quality, 1)
        return self._segment_table(cnvs, fractional, more)

    def _with_genes(self, table: "pa.Table", spans: Spans) -> "pa.Table":
        """Return a table with the names of the regions in each row's span, where there are any."""
        if not self.regions.genes:
            return table
        genes = arrow.strings([",".join(each) for each in self._genes_in(spans)])
        return table.append_column("genes", genes)

    def rows_of(self, segments: SegmentTable) -> Spans:
        """Return the first of each segment's rows among all regions, and the row after them."""
        begin = self.first_rows[segments.chrom]
        return begin + segments.first, begin + segments.stop

    def genes(self, segments: SegmentTable) -> list[list[str]]:
        """Return the names of each segment's regions, each once, by position."""
        return self._genes_in(self.rows_of(segments))

    def _genes_in(self, spans: Spans) -> list[list[str]]:
        """Return the names of the regions in spans of rows, each once in a span."""
        names, borders = self.regions.genes, zip(*(rows.tolist() for rows in spans), strict=True)
        return [[*filter(None, dict.fromkeys(names[first:stop]))] for first, stop in borders]

    def _segment_table(
        self, segments: SegmentTable, fractional: bool = False, more: Any = ()
    ) -> "pa.Table":
        if fractional:
            labels = fractional_labels(segments.fractional, self.options)
        else:
            labels = class_labels(segments.shown, self.options.classes)
        columns = {
            "chrom": arrow.named(segments.chrom, self.regions.names),
            "start": segments.start,
            "end": segments.end,
            "sample": arrow.named(segments.sample, self.samples),
            "median": segments.median,
            "mean": segments.mean,
            "copy_number": arrow.named(*labels),
            **dict(more),
        }
        return self._with_genes(arrow.table(columns.items()), self.rows_of(segments))

    def _region_table(self, regions: RegionTable, fractional: bool = False) -> "pa.Table":
        if fractional:
            indices, labels = fractional_labels(regions.fractional, self.options)
        else:
            indices, labels = class_labels(regions.copy_number, self.options.classes)
        copies = (arrow.named(column, labels) for column in indices.T)
        table = arrow.table(
            [
                ("chrom", arrow.named(regions.chrom, self.regions.names)),
                ("start", regions.start),
                ("end", regions.end),
                *zip(self.samples, copies, strict=True),
            ]
        )
        if not self.regions.genes:
            return table
        room = int(self.regions.end.max(initial=0))
        places = self.regions.chrom.astype(np.int64) * room + self.regions.start
        first, stop = (np.searchsorted(places, each) for each in genome_positions(regions, room))
        return self._with_genes(table, (first, stop))

    @cached_property
    def first_rows(self) -> Rows:
        """int64[chromosome names]: the first region of each, among all regions."""
        first = np.zeros(len(self.regions.names), np.int64)
        for block in self.regions.blocks:
            first[self.regions.chrom[block.start]] = block.start
        return first

    @cached_property
    def called(self) -> SegmentTable:
        """Segments that are CNVs."""
        return self.segments.take(self.segments.cnv)

    @cached_property
    def qc(self) -> QcTable:
        """Reads, noise, calls and sex of every sample, and which are outliers."""
        return QcTable.of(self)

    @cached_property
    def frequency(self) -> Floats:
        """float64[CNVs]: share of samples with a CNV in the same direction that shares a base.

        The samples are those that are compared on the chromosome.
        """
        cnvs = self.called
        sign, room = direction(cnvs.copy_number, self.options), int(cnvs.end.max(initial=0))
        carriers = np.zeros(len(cnvs), np.int64)
        for each in (-1, 0, 1):
            some = cnvs.take(sign == each)
            carriers[sign == each] = count_carriers(*genome_positions(some, room), some.sample)
        return np.asarray(carriers / (self.usual > 0).sum(axis=1))

    def failed_filters(self, rows: Rows) -> list[str]:
        """Return the names of the filters that a record fails.

        rows  of `called` that it shows: CNVs of samples in one place, with one direction
        """
        cnvs, genotypes = self.called, self.genotypes
        fails = {
            "LowQual": cnvs.quality[rows].max() < LOW_QUALITY,
            "COMMON": genotypes is not None and genotypes.is_common[rows[0]],
            "OUTLIER": (self.qc.outlier[cnvs.sample[rows]] != "").all(),
        }
        return [name for name, fail in fails.items() if fail]


SPECIAL = {"X": 1, "Y": 2, "M": 3, "MT": 3}  # R's order of the chromosomes that have no number


def join_segments(parts: Sequence[CnvPart]) -> SegmentTable:
    """Return the segments. Where there is no CNV at all nothing is called, as in R."""
    segments = SegmentTable.joined([part.segments for part in parts])
    if segments.cnv.any():
        return segments
    nothing = np.full(len(segments), NOT_CALLED, np.int32)
    return replace(segments, copy_number=nothing, shown=nothing)


def join_regions(
    tables: Sequence[RegionTable], cnvs: SegmentTable, names: Sequence[str] | None = None
) -> RegionTable:
    """Return regions with the copy numbers of the CNVs there: of several, the first one's.

    names  of chromosomes, by which R's pairs them with regions; None: their own chromosomes
    """
    regions = RegionTable.joined(tables)
    if names is not None:
        regions = replace(regions, chrom=_chromosomes_of_r(regions.chrom, names))
    room = max(int(regions.end.max(initial=0)), int(cnvs.end.max(initial=0)))
    places = (*genome_positions(regions, room), *genome_positions(cnvs, room))
    for cnv, region in overlaps(*places):
        # Of several, the one written last stays.
        regions.copy_number[region, cnvs.sample[cnv]] = cnvs.shown[cnv]
    return regions


def genome_positions(table: SegmentTable | RegionTable, room: int) -> tuple[Rows, Rows]:
    """Return start and end of rows when chromosomes of `room` bases are laid end to end."""
    offset = table.chrom.astype(np.int64) * room
    return offset + table.start, offset + table.end


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
