"""Records of a run, by columns with names: segments, CNV regions, calls of a chromosome.

Rows are counting regions, numbered from the first one of their chromosome. A span of rows is
(first, stop), half open. Samples are numbered among all cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

NOT_CALLED = -1  # class where nothing is called

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Indices = NDArray[np.int32]
Copies = NDArray[np.int8]
States = NDArray[np.int8]  # of `kernels.hmm`
Mask = NDArray[np.bool_]
Spans = tuple[Rows, Rows]
Matrices = dict[str, NDArray[Any]]
Pieces = list[tuple[int, Matrices]]  # (first row among all regions, rows of every matrix)


@dataclass(frozen=True, eq=False, kw_only=True)
class Columnar:
    """Arrays of the same length, as the columns of a table."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """Return some of the rows, chosen by mask, index or slice."""
        return type(self)(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of all parts, one at least, in the order given."""
        names = [each.name for each in fields(cls)]
        return cls(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})


@dataclass(frozen=True, eq=False, kw_only=True)
class SegmentTable(Columnar):
    """Segments by chromosome, sample and position.

    chrom, sample  int32[n]    indices of their names
    first, stop    int64[n]    rows of the chromosome
    start, end     int64[n]    bases, from 0, half open
    mean, median   float64[n]  of the signed I/NI
    copy_number    int32[n]    class relative to what is usual, or NOT_CALLED
    shown          int32[n]    class to show: that of the number of copies, or NOT_CALLED
    fractional     float64[n]  fractional copy number; NaN where it is not wanted
    cnv            bool[n]     whether the segment is a CNV
    quality        float64[n]  Phred: that there is a change; NaN where it is not computed
    """

    chrom: Indices
    sample: Indices
    first: Rows
    stop: Rows
    start: Rows
    end: Rows
    mean: Floats
    median: Floats
    copy_number: Indices
    shown: Indices
    fractional: Floats
    cnv: Mask
    quality: Floats

    @classmethod
    def uncalled(cls, **columns: NDArray[Any]) -> Self:
        """Return segments of which nothing is called yet, from the columns up to the median."""
        count = len(columns["sample"])
        nothing = np.full(count, NOT_CALLED, np.int32)
        return cls(
            **columns,
            copy_number=nothing,
            shown=nothing,
            fractional=np.full(count, np.nan),
            cnv=np.zeros(count, np.bool_),
            quality=np.full(count, np.nan),
        )

    @classmethod
    def empty(cls) -> Self:
        none = {kind: np.empty(0, kind) for kind in (np.int32, np.int64, np.float64)}
        columns: dict[str, NDArray[Any]] = dict.fromkeys(("chrom", "sample"), none[np.int32])
        columns |= dict.fromkeys(("first", "stop", "start", "end"), none[np.int64])
        return cls.uncalled(**columns, **dict.fromkeys(("mean", "median"), none[np.float64]))

    @property
    def rows(self) -> Rows:
        """int64[n]: counting regions in each segment."""
        return self.stop - self.first


@dataclass(frozen=True, eq=False, kw_only=True)
class RegionTable(Columnar):
    """CNV regions by chromosome and position."""

    chrom: Indices  # int32[n]: index of the name
    start: Rows  # int64[n]: bases, from 0, half open
    end: Rows  # int64[n]: bases, from 0, half open
    copy_number: Indices  # int32[n, samples]: classes to show: those of the numbers of copies
    fractional: Floats  # float64[n, samples]: copy numbers; NaN where they are not wanted


@dataclass(frozen=True, eq=False, kw_only=True)
class Genotypes(Columnar):
    """Copies of every sample at every CNV, from their posteriors."""

    copies: Copies  # int8[CNVs, samples]: -1 where the sample is not compared
    quality: NDArray[np.float32]  # float32[CNVs, samples]: Phred of the copies
    # bool[CNVs]: whether half of the samples have other copies than usual, or that is unsure
    is_common: Mask


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleFacts(Columnar):
    """Facts about each sample and then control, for quality control."""

    reads: Floats  # float64[n]: on all chromosomes
    references: Indices  # int32[n]: how many samples it is compared with; 0 where it is with all
    correlation: Floats  # float64[n]: mean of those with these samples; NaN where it is not known
    # float64[n]: median absolute difference of log2 ratios of neighbouring regions, or NaN
    noise: Floats

    @classmethod
    def uncompared(cls, reads: Floats, noise: Floats) -> Self:
        unknown, none = np.full(len(reads), np.nan), np.zeros(len(reads), np.int32)
        return cls(reads=reads, references=none, correlation=unknown, noise=noise)


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleTracks:
    """Values of samples along a chromosome, for the plots of samples: means of several regions."""

    chrom: int  # index of the chromosome's name
    row: Rows  # int64[points]: the region in the middle of those of each point
    samples: Indices  # int32[compared]: samples that are compared there, ascending
    values: NDArray[np.float32]  # float32[points, samples]: means of the signed I/NI


@dataclass(frozen=True, eq=False, kw_only=True)
class CnvPart:
    """Calls of a chromosome."""

    segments: SegmentTable
    # int8[CNVs, samples]: model's class of the inner regions; NOT_CALLED if not compared
    classes: Copies
    usual: Copies  # int8[CNVs, samples]: usual copies there; 0 where the sample is not compared
    regions: RegionTable  # CNV regions, in which all have what is usual: `CnvResult` adds the CNVs
    robust: RegionTable | None  # robust CNV regions in the same way, where they are wanted
    pieces: Pieces  # rows of the matrices that the client keeps or writes
    notes: tuple[str, ...]
    left_out: str  # why the samples are not compared, after the chromosome's name; or empty
    genotypes: Genotypes | None = None  # of the rows of `classes`, where they are computed
    tracks: SampleTracks | None = None  # None where they are not wanted, or no samples are compared


# Of these the parts in a journal consist.
JOURNAL_CLASSES = (CnvPart, SegmentTable, RegionTable, Genotypes, SampleTracks)
