"""Counting as a workload: a span is a piece of one alignment file, a part the counts from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place
from multigpu.formats.alignments.alignments import Alignments, reads, stretches
from multigpu.formats.alignments.bam import Stretch
from multigpu.formats.alignments.regions import Regions
from multigpu.kernels.compiled.alignments import POSITION_BITS
from multigpu.kernels.counting.cpu import Counter
from multigpu.kernels.counting.types import Counting, Reads
from multigpu.run.fitness import Expected, require


@dataclass(frozen=True)
class CountSpan:
    """A piece of the file of this number."""

    file: int
    stretch: Stretch


@dataclass(frozen=True, eq=False)
class CountPart:
    """Reads of a piece.

    file    whose they are
    rows    int64[n]  of the regions that have any
    counts  int64[n]  theirs
    reads   how many mapped reads there are in the piece, whether they count or not
    """

    file: int
    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    reads: int


@dataclass(frozen=True, eq=False)
class Loaded:
    """The reads of a span, decompressed while they are taken.

    rows  int64[n]  of the regions that they may fall into
    """

    span: CountSpan
    rows: NDArray[np.int64]
    reads: Iterator[Reads]


@dataclass(frozen=True, eq=False)
class Computed:
    """Counts of all rows."""

    counts: NDArray[np.int64]
    reads: int


@dataclass(eq=False)
class CountWorkload:
    """Everything a worker needs to know.

    regions  grouped by chromosome
    numbers  of the references that the chromosomes stand for, the same in all files
    """

    key: str
    files: Sequence[Alignments]
    regions: Regions
    numbers: list[int]
    options: Counting
    expected: Expected | None = None  # of a worker that is not this process

    def open(self, place: Place) -> "CountSession":
        require(self.expected, place)
        return CountSession(self)

    def name(self, span: CountSpan) -> str:
        return self.files[span.file].path

    def correct(self, span: CountSpan | None, part: CountPart) -> None:
        """Pieces begin at records that the index names."""

    def spans(self, number: int, file: Alignments, size: int) -> Iterator[CountSpan]:
        """The pieces of the file of this number, about `size` stored bytes each."""
        wanted = {
            self.numbers[self.regions.chrom[rows.start]]: (
                int(self.regions.start[rows].min()),
                int(self.regions.end[rows].max()),
            )
            for rows in self.regions.blocks
        }
        for stretch in stretches(file, wanted, size):
            yield CountSpan(number, stretch)


class CountSession:
    """Counting on one worker."""

    def __init__(self, workload: CountWorkload) -> None:
        self.workload = workload
        regions = workload.regions
        self.chrom = np.array(workload.numbers, np.int32)[regions.chrom]
        self.rows = {
            int(self.chrom[rows.start]): np.arange(rows.start, rows.stop) for rows in regions.blocks
        }

    def load(self, span: CountSpan) -> Loaded:
        stretch, file = span.stretch, self.workload.files[span.file]
        first, last = stretch.begin >> POSITION_BITS, stretch.end >> POSITION_BITS
        rows = [self.rows[number] for number in sorted(self.rows) if first <= number <= last]
        ordered = stretch.offset > 0 or self.workload.options.remove_duplicates
        return Loaded(span, np.concatenate(rows), reads(file, stretch, ordered))

    def compute(self, loaded: Loaded) -> Computed:
        workload, rows = self.workload, loaded.rows
        regions, file = workload.regions, workload.files[loaded.span.file]
        counter = Counter(
            self.chrom[rows], regions.start[rows], regions.end[rows], len(file.references),
            workload.options,
        )  # fmt: skip
        total = 0
        for block in loaded.reads:
            counter.add(block)
            total += len(block)
        return Computed(counter.counts(), total)

    def need(self, loaded: Loaded) -> int:
        """The counts; the reads pass by."""
        return 8 * len(loaded.rows)

    def halves(self, loaded: Loaded) -> tuple[Loaded, ...]:
        """Its reads can be taken only once."""
        return ()

    def joined(
        self, loaded: Loaded, halves: Sequence[Loaded], computed: Sequence[Computed]
    ) -> Computed:
        raise AssertionError("there are no halves")

    def finish(self, loaded: Loaded, computed: Computed) -> CountPart:
        """Regions without reads are left out: a piece of a file touches few of many."""
        some = np.flatnonzero(computed.counts)
        return CountPart(loaded.span.file, loaded.rows[some], computed.counts[some], computed.reads)

    def close(self) -> None:
        """Nothing is kept between spans."""
