"""Counting as a workload: a span is a piece of one alignment file, a part the counts from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place, Session
from multigpu.formats.alignments.bam import Stretch
from multigpu.formats.alignments.files import AlignmentFile, reads
from multigpu.formats.alignments.regions import Regions
from multigpu.kernels.compiled.alignments import POSITION_BITS
from multigpu.kernels.counting.cpu import Counter
from multigpu.kernels.counting.types import Counting, Reads
from multigpu.run.fitness import Expected, require


@dataclass(frozen=True)
class CountSpan:
    """A piece of an alignment file."""

    file: int  # number of the file
    stretch: Stretch  # records of it


@dataclass(frozen=True, eq=False, kw_only=True)
class CountPart:
    """Counts from one span."""

    file: int  # number of the file
    rows: NDArray[np.int64]  # int64[n]: regions that have reads in the span
    counts: NDArray[np.int64]  # int64[n]: reads in each of these regions
    mapped: NDArray[np.int64]  # int64[references]: mapped reads in the span, that count or not


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedReads:
    """Reads of a span, decompressed while they are taken."""

    span: CountSpan
    rows: NDArray[np.int64]  # int64[n]: regions that the reads may fall into
    reads: Iterator[Reads]


@dataclass(eq=False, kw_only=True)
class CountWorkload:
    """Everything that a worker needs to count."""

    key: str
    files: Sequence[AlignmentFile]
    regions: Regions  # grouped by chromosome
    references: Sequence[Sequence[int]]  # of each file: numbers of those that the chromosomes are
    options: Counting
    expected: Expected | None = None  # requirements for a worker that is not this process

    def open(self, place: Place) -> "CountSession":
        """Return a session on a worker. Raises Unfit where the worker may not take part."""
        require(self.expected, place)
        return CountSession(self)

    def name(self, span: CountSpan) -> str:
        return self.files[span.file].path

    def correct(self, span: CountSpan | None, part: CountPart) -> None:
        """Return None: every span begins at a record that the index names."""


class CountSession(Session[CountSpan, CountPart]):
    """Counting on one worker. A span is a unit: its reads can be taken only once."""

    def __init__(self, workload: CountWorkload) -> None:
        self.workload = workload

    def load(self, span: CountSpan) -> LoadedReads:
        """Open the span, and find the regions of the references in it."""
        stretch, file = span.stretch, self.workload.files[span.file]
        first, last = stretch.begin >> POSITION_BITS, stretch.end >> POSITION_BITS
        regions, references = self.workload.regions, self.workload.references[span.file]
        numbered = [(references[regions.chrom[rows.start]], rows) for rows in regions.blocks]
        rows = [np.r_[rows] for number, rows in numbered if first <= number <= last]
        indexed = file.kind == "bam" and stretch.offset > 0
        ordered = indexed or self.workload.options.remove_duplicates
        return LoadedReads(
            span=span, rows=np.concatenate(rows), reads=reads(file, stretch, ordered)
        )

    def compute(self, loaded: LoadedReads) -> CountPart:
        """Count the reads, block by block; regions without any are left out: there are many."""
        workload, rows = self.workload, loaded.rows
        file, chrom = loaded.span.file, workload.regions.chrom[rows]
        count = len(workload.files[file].references)
        counter = Counter(
            chrom=np.array(workload.references[file], np.int32)[chrom],
            start=workload.regions.start[rows],
            end=workload.regions.end[rows],
            references=count,
            options=workload.options,
        )
        mapped = np.zeros(count, np.int64)
        for block in loaded.reads:
            counter.add(block)
            mapped += np.bincount(block.chrom, minlength=count)
        counts = counter.counts()
        touched = np.flatnonzero(counts)
        return CountPart(file=file, rows=rows[touched], counts=counts[touched], mapped=mapped)

    def need(self, loaded: LoadedReads) -> int:
        """Return the bytes of the counts: only one block of reads is in memory at a time."""
        return 8 * len(loaded.rows)

    def finish(self, loaded: LoadedReads, computed: CountPart) -> CountPart:
        return computed


def counted_ranges(regions: Regions, references: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return where the first region of each reference begins and its last one ends, in bases.

    references  numbers of the references that the chromosomes of the regions stand for
    """
    return {
        references[regions.chrom[rows.start]]: (
            int(regions.start[rows].min()),
            int(regions.end[rows].max()),
        )
        for rows in regions.blocks
    }
