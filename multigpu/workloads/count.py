"""Counting as a workload: a span is a piece of one alignment file, a part the counts from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster.workload import Place
from kernels.counting.cpu import Counter
from kernels.counting.types import Counting, Reads
from multigpu.io.alignments import Alignments, reads, stretches
from multigpu.io.bam import Stretch
from multigpu.io.regions import Regions


@dataclass(frozen=True)
class CountSpan:
    """A piece of the file of this number."""

    file: int
    stretch: Stretch


@dataclass(frozen=True, eq=False)
class CountPart:
    """Reads of a piece.

    file    whose they are
    first   row of the first region that has any
    counts  int64[n], of this and the following regions
    reads   how many mapped reads there are in the piece, whether they count or not
    """

    file: int
    first: int
    counts: NDArray[np.int64]
    reads: int


@dataclass(frozen=True, eq=False)
class Loaded:
    """The reads of a span, decompressed while they are taken, and the rows they may fall into."""

    span: CountSpan
    rows: slice
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

    def open(self, place: Place) -> "CountSession":
        return CountSession(self)

    def correct(self, span: CountSpan, part: CountPart) -> None:
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
        self.rows = {int(self.chrom[rows.start]): rows for rows in regions.blocks}

    def load(self, span: CountSpan) -> Loaded:
        number = span.stretch.reference
        rows = slice(0, len(self.chrom)) if number < 0 else self.rows[number]
        file = self.workload.files[span.file]
        ordered = self.workload.options.remove_duplicates
        return Loaded(span, rows, reads(file, span.stretch, ordered))

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

    def finish(self, loaded: Loaded, computed: Computed) -> CountPart:
        """Rows without reads at either end are left out: most pieces touch few of many regions."""
        touched = np.flatnonzero(computed.counts)
        first, stop = (int(touched[0]), int(touched[-1]) + 1) if len(touched) else (0, 0)
        counts = computed.counts[first:stop]
        return CountPart(loaded.span.file, loaded.rows.start + first, counts, computed.reads)

    def close(self) -> None:
        """Nothing is kept between spans."""
