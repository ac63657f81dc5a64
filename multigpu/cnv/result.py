"""What a copy-number run found, over all chromosomes: the tables of the files as objects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.cnv.calls.calls import (
    MISSING,
    NOT_CALLED,
    Floats,
    Indices,
    Rows,
    carriers_there,
    direction,
    fractional_labels,
    names_by_copies,
)
from multigpu.cnv.options import CnvOptions
from multigpu.cnv.output.matrices import Matrices, dataset, joined
from multigpu.cnv.output.windows import Window
from multigpu.cnv.samples.sex import Coverage, Usual
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables import arrow

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr


@dataclass(frozen=True, eq=False)
class SegmentTable:
    """Segments by chromosome, sample and position.

    chrom, sample  int32[n]    indices of their names
    start, end     int64[n]    bases, from 0, half open
    rows           int64[n]    regions in the segment
    mean, median   float64[n]  of the signed I/NI
    copy_number    int32[n]    index of the class, or NOT_CALLED; see `CnvResult.copy_numbers`
    fractional     float64[n]  NaN where it was not asked for
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

    def __len__(self) -> int:
        return len(self.chrom)

    def take(self, rows: NDArray[Any]) -> Self:
        """Some of the rows: by mask or index."""
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class RegionTable:
    """CNV regions by chromosome and position.

    chrom        int32[n]
    start, end   int64[n]             bases, from 0, half open
    copy_number  int32[n, samples]    indices of classes, against what is usual
    fractional   float64[n, samples]  NaN where it was not asked for
    copies       int32[n, samples]    indices of the classes of as many copies; None: the same
    """

    chrom: Indices
    start: Rows
    end: Rows
    copy_number: Indices
    fractional: Floats
    copies: Indices | None = None

    def __len__(self) -> int:
        return len(self.chrom)


def class_labels(copy_number: Indices, classes: Sequence[str]) -> tuple[Indices, list[str]]:
    """Which label every index stands for, and the labels: MISSING for NOT_CALLED."""
    assert NOT_CALLED == -1  # the last one
    return copy_number % (len(classes) + 1), [*classes, MISSING]


@dataclass(frozen=True, eq=False)
class CnvResult:
    """All of a run; the properties have the names and the columns of the files.

    regions, samples  what was looked at, in the order of the input
    segments          every segment; `cnv` marks the CNVs
    sex, ploidy       of every sample, where they were given or inferred
    kept              (first region, matrices by name) of every chromosome, where they were kept
    windows           the largest CNV regions and what is around them, for figures
    notes             what was noticed on the way: one sentence each
    usual             copies that are usual, where these go by sex
    lengths           of chromosomes, by name, in bases; of those where they are known
    sex_coverage      of every sample, where sexes were inferred from it
    """

    options: CnvOptions
    regions: Regions
    samples: tuple[str, ...]
    segments: SegmentTable
    called_regions: RegionTable
    robust_regions: RegionTable | None = None
    sex: tuple[str, ...] = ()
    ploidy: tuple[int, ...] | None = None
    kept: tuple[tuple[int, Matrices], ...] = ()
    windows: tuple[Window, ...] = ()
    notes: tuple[str, ...] = ()
    usual: Usual | None = None
    lengths: Mapping[str, int] = field(default_factory=dict)
    sex_coverage: Coverage | None = None

    def __repr__(self) -> str:
        return (
            f"<CnvResult: {len(self.called):,} CNVs and {len(self.called_regions):,} CNV regions of"
            f" {len(self.samples):,} samples × {len(self.regions):,} regions>"
        )

    @cached_property
    def called(self) -> SegmentTable:
        """The segments that are CNVs."""
        return self.segments.take(self.segments.cnv)

    @property
    def segmentation(self) -> "pa.Table":
        """chrom start end sample median mean copy_number."""
        return self._segments(self.segments)

    @property
    def cnvs(self) -> "pa.Table":
        """The same of the segments that are CNVs, and: regions length frequency."""
        return self._cnvs()

    @property
    def cnv_regions(self) -> "pa.Table":
        """chrom start end and a column of copy numbers for every sample."""
        return self._regions(self.called_regions)

    @property
    def cnv_regions_robust(self) -> "pa.Table | None":
        """The same of robust CNV regions, None where they were not asked for."""
        return None if self.robust_regions is None else self._regions(self.robust_regions)

    @property
    def fractional(self) -> "dict[str, pa.Table]":
        """The tables with fractional copy numbers, where these were asked for."""
        return {name: make() for name, make in self._fractional().items()}

    @cached_property
    def frequency(self) -> Floats:
        """float64[CNVs]: share of the samples that have a CNV of the same direction there.

        There: sharing a base with it. The samples are those that are looked at on the chromosome.
        """
        cnvs = self.called
        sign = direction(cnvs.copy_number, self.options)
        carriers = np.zeros(len(cnvs), np.int64)
        for each in (-1, 0, 1):
            some = cnvs.take(sign == each)
            carriers[sign == each] = carriers_there(*on_one_line(some, cnvs), some.sample)
        looked_at = (self.usual_copies(cnvs.chrom, cnvs.start, cnvs.end) > 0).sum(axis=1)
        return np.asarray(carriers / looked_at)

    def usual_copies(self, chrom: Indices, start: Rows, end: Rows) -> NDArray[np.int8]:
        """int8[n, samples]: those that are usual in each of these stretches; 0: not looked at."""
        if self.usual is not None:
            return self.usual.of(chrom, start, end)
        return np.full((len(chrom), len(self.samples)), self._all_copies, np.int8)

    def usual_copies_of(self, segments: SegmentTable) -> NDArray[np.int8]:
        """int8[n]: the same of the sample of each segment."""
        if self.usual is not None:
            place = (segments.chrom, segments.start, segments.end, segments.sample)
            return self.usual.of_samples(*place)
        return np.full(len(segments), self._all_copies, np.int8)

    @property
    def _all_copies(self) -> int:
        """The usual copies where these do not go by sex."""
        return 1 if self.options.model == "haplo" else 2

    def tables(self) -> "dict[str, pa.Table]":
        """Every table by the name of its file."""
        return {name: make() for name, make in self.makers().items()}

    def makers(self) -> "Mapping[str, Callable[[], pa.Table]]":
        """What makes each of these tables: a thread can take each."""
        found: dict[str, Callable[[], pa.Table]] = {
            "cnvs": self._cnvs,
            "cnv_regions": partial(self._regions, self.called_regions),
            "segmentation": partial(self._segments, self.segments),
        }
        if self.robust_regions is not None:
            found["cnv_regions_robust"] = partial(self._regions, self.robust_regions)
        return found | self._fractional()

    def _fractional(self) -> "dict[str, partial[pa.Table]]":
        if self.options.fractional is None:
            return {}
        return {
            "cnvs_fractional": partial(self._cnvs, True),
            "cnv_regions_fractional": partial(self._regions, self.called_regions, True),
            "segmentation_fractional": partial(self._segments, self.segments, True),
        }

    @property
    def matrices(self) -> "xr.Dataset":
        """The matrices that were kept, with regions, samples and classes as coordinates."""
        return dataset(joined(self.kept), self.regions, self.samples, self.options.classes)

    def _cnvs(self, fractional: bool = False) -> "pa.Table":
        cnvs, found = self.called, self._segments(self.called, fractional)
        more = {"regions": cnvs.rows, "length": cnvs.end - cnvs.start, "frequency": self.frequency}
        for name, values in more.items():
            found = found.append_column(name, arrow.numbers(values))
        return found

    def _segments(self, segments: SegmentTable, fractional: bool = False) -> "pa.Table":
        return arrow.table(
            [
                ("chrom", names(segments.chrom, self.regions.names)),
                ("start", segments.start),
                ("end", segments.end),
                ("sample", names(segments.sample, self.samples)),
                ("median", segments.median),
                ("mean", segments.mean),
                ("copy_number", names(*self._labels(segments, fractional))),
            ]
        )

    def _regions(self, regions: RegionTable, fractional: bool = False) -> "pa.Table":
        indices, labels = self._labels(regions, fractional)
        copies = (names(column, labels) for column in indices.T)
        return arrow.table(
            [
                ("chrom", names(regions.chrom, self.regions.names)),
                ("start", regions.start),
                ("end", regions.end),
                *zip(self.samples, copies, strict=True),
            ]
        )

    def _labels(
        self, table: SegmentTable | RegionTable, fractional: bool
    ) -> tuple[Indices, list[str]]:
        if fractional:
            return fractional_labels(table.fractional, self.options)
        return class_labels(self.copy_numbers(table), self.options.classes)

    def copy_numbers(self, table: SegmentTable | RegionTable) -> Indices:
        """Of each row: the class of as many copies. The table's own are against what is usual."""
        if isinstance(table, SegmentTable):
            return copies_of(table, self.usual, self.options)
        return table.copy_number if table.copies is None else table.copies


def copies_of(segments: SegmentTable, usual: Usual | None, options: CnvOptions) -> Indices:
    """int32[n]: the classes of as many copies as the segments have."""
    if usual is None:
        return segments.copy_number
    own = usual.of_samples(segments.chrom, segments.start, segments.end, segments.sample)
    return names_by_copies(options)[own, segments.copy_number]


class _Placed(Protocol):
    """Rows of a table that lie somewhere."""

    @property
    def chrom(self) -> Indices: ...
    @property
    def start(self) -> Rows: ...
    @property
    def end(self) -> Rows: ...


def on_one_line(rows: _Placed, cnvs: SegmentTable) -> tuple[Rows, Rows]:
    """Start and end of these rows where chromosomes follow each other, with room for all CNVs."""
    before = rows.chrom.astype(np.int64) * int(cnvs.end.max(initial=0))
    return before + rows.start, before + rows.end


def names(indices: Indices, of: Sequence[str]) -> "pa.Array":
    """A name for every index."""
    return arrow.strings(of).take(arrow.numbers(indices))
