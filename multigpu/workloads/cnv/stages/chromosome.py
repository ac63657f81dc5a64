"""A chromosome on its way through the stages, and what a stage is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError
from multigpu.kernels.hmm.types import ExpectedCounts, SampleModel, Scores
from multigpu.workloads.cnv.plan import CnvSpan, Shape
from multigpu.workloads.cnv.records import (
    CnvPart,
    Copies,
    Floats,
    Indices,
    Mask,
    Matrices,
    Rows,
    SegmentTable,
    States,
)
from multigpu.workloads.cnv.samples.reference_samples import ReferenceSamples
from multigpu.workloads.cnv.stages.common_regions import CommonRegions
from multigpu.workloads.cnv.stages.whole_chromosomes import WholeChange


class NotComparable(UsageError):
    """Samples cannot be compared on a chromosome; the text begins with its name and a colon."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """Columns of the counts: cases, then controls.

    references reference samples of all columns, where they are used; also for some of the columns
    """

    names: tuple[str, ...]  # of the samples
    cases: int  # number of columns that are cases
    totals: Floats  # float64[columns]: reads of each on all chromosomes
    factors: Floats | None  # float64[chromosomes, columns]: size factors of the client
    coverages: Floats | None  # float64[columns]: coverages, where these are modelled (--norm 2)
    references: ReferenceSamples | None = None
    # Chromosomes and arms of cases that are changed as a whole, by chromosome's block
    whole: Mapping[int, Sequence[WholeChange]] = field(default_factory=dict)

    def take(self, chosen: Sequence[int]) -> Self:
        """Return some of the columns, of which cases come first."""
        rows = np.array(chosen, np.intp)
        return replace(
            self,
            names=tuple(self.names[k] for k in chosen),
            cases=int((rows < self.cases).sum()),
            totals=self.totals[rows],
            factors=None if self.factors is None else self.factors[:, rows],
            coverages=None if self.coverages is None else self.coverages[rows],
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Chromosome:
    """A chromosome, and what the stages have found so far: nothing where it has no samples."""

    # From the input.
    span: CnvSpan
    counts: NDArray[Any]  # int32 or float64[regions, columns] of the samples that are compared
    start: Rows  # int64[regions], in bases
    end: Rows
    columns: Columns  # what is known of the compared samples
    places: Indices  # int32[cases]: numbers of the compared cases among all
    copies: Copies  # int8[all cases]: usual copies outside of `span.par`; 0: not compared

    # On a device.
    divisor: int = 1  # factor by which pieces are smaller, on a device with little memory
    piece_rows: int = 0  # regions that are on the device at a time
    on_device: Any = None  # the counts there, where they fit in one piece; else those of the host
    modelled: dict[str, Any] = field(default_factory=dict)  # results of the model by name, there

    # From the stages.
    scale: Floats = field(default_factory=lambda: np.empty(0))  # float64[columns]: size factors
    level: Any = None  # float64[regions]: that of the controls, or of a single sample; or None
    expected: ExpectedCounts | None = None  # with reference samples: what samples should have
    common: CommonRegions = field(default_factory=CommonRegions)  # where a change is common
    ways: Scores | None = None  # int32[regions, 3]: scores of the ways into each, of that model
    states: States | None = None  # int8[regions, cases]: likeliest of the hidden Markov model
    segments: SegmentTable = field(default_factory=SegmentTable.empty)  # of all cases, uncalled
    robust: SegmentTable = field(default_factory=SegmentTable.empty)  # of I/NI, if wanted
    matrices: Matrices = field(default_factory=dict)  # results of the model by name, on the host
    notes: tuple[str, ...] = ()
    left_out: str = ""  # why the samples are not compared, as in `NotComparable`
    part: CnvPart | None = None  # the calls

    @classmethod
    def load(
        cls, span: CnvSpan, counts: NDArray[Any], start: Rows, end: Rows, every: Columns, usual: int
    ) -> Self:
        """Return a chromosome before the first stage.

        counts  of all columns, which `every` describes
        usual   usual copies where they do not go by sex
        """
        columns, places = every, np.arange(every.cases, dtype=np.int32)
        if span.columns is not None:
            counts, columns = counts.take(span.columns, axis=1), every.take(span.columns)
            places = np.array(span.columns[: columns.cases], np.int32)
        copies = np.zeros(every.cases, np.int8)
        copies[places] = usual if span.copies is None else span.copies[: columns.cases]
        return cls(
            span=span,
            counts=counts,
            start=start,
            end=end,
            columns=columns,
            places=places,
            copies=copies,
        )

    def without_samples(self, why: str) -> Self:
        """Return the chromosome when no samples are compared."""
        return replace(
            self,
            counts=self.counts[:, :0],
            columns=self.columns.take(()),
            places=self.places[:0],
            copies=np.zeros_like(self.copies),
            left_out=why,
        )

    @property
    def cases(self) -> int:
        """Number of compared cases, which are the first columns of the counts."""
        return len(self.places)

    @property
    def shape(self) -> Shape:
        regions, columns = self.counts.shape
        return Shape(regions, columns, self.cases, self.counts.itemsize)

    @cached_property
    def par(self) -> Mask:
        """bool[regions]: whether each lies in a pseudoautosomal region."""
        return self.span.is_in_par(self.start, self.end)

    def breaks(self, max_gap: int | None) -> Mask:
        """Return bool[regions]: whether more bases than these before a region have no regions."""
        found = np.zeros(len(self.start), np.bool_)
        if max_gap is not None:
            found[1:] = self.start[1:] - np.maximum.accumulate(self.end)[:-1] > max_gap
        return found

    @cached_property
    def coverages(self) -> tuple[Floats, Floats]:
        """float64[columns]: coverages that the model takes for averages of counts.

        The second are those in pseudoautosomal regions.
        """
        usual = self.columns.coverages
        usual = np.ones(len(self.columns.names)) if usual is None else usual
        if self.span.shares is not None:
            usual = usual * np.array(self.span.shares)
        copies = self.span.copies
        return usual, usual if copies is None else usual * 2 / np.array(copies)

    @cached_property
    def sample_model(self) -> SampleModel:
        """Facts about samples for the hidden Markov model."""
        span, references, count = self.span, self.columns.references, len(self.columns.names)
        assert references is not None
        columns = np.arange(count) if span.columns is None else np.array(span.columns)
        usual = [self.copies.max(initial=0)] * count if span.copies is None else span.copies
        return references.model(columns, np.array(usual, np.int8))

    def usual_copies(self, start: Rows, end: Rows) -> Copies:
        """Return int8[n, all cases]: usual copies in each interval."""
        found = np.tile(self.copies, (len(start), 1))
        found[self.span.is_in_par(start, end)] = 2 * (self.copies > 0)
        return found

    def usual_copies_of(self, segments: SegmentTable) -> Copies:
        """Return int8[n]: usual copies of each segment's sample in the segment."""
        found = self.copies[segments.sample]
        found[self.span.is_in_par(segments.start, segments.end)] = 2
        return found


class Stage(Protocol):
    """A step on the way from counts to calls.

    name  under which its time is reported
    """

    name: ClassVar[str]

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Return the chromosome with what this stage finds. Raises NotComparable."""


def true_runs(mask: Mask) -> list[slice]:
    """Return the runs of consecutive rows in which `mask` is true."""
    borders = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return [slice(a, b) for a, b in borders.reshape(-1, 2).tolist()]
