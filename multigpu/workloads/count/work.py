"""Counting as a workload: a span is one alignment file, a part the counts from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place, Session
from multigpu.formats.alignments.files import AlignmentFile, reads
from multigpu.formats.alignments.regions import Regions
from multigpu.kernels.counting.cpu import Counter
from multigpu.kernels.counting.types import Counting, Reads
from multigpu.run.fitness import Expected, require
from multigpu.workloads.count.plan import CountSpan


@dataclass(frozen=True, eq=False, kw_only=True)
class CountPart:
    """Counts from one file.

    file    its number
    counts  int32[regions]  reads in each region
    mapped  mapped reads, whether they count or not
    """

    file: int
    counts: NDArray[np.int32]
    mapped: int


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedReads:
    """Reads of a file, decompressed while they are taken."""

    span: CountSpan
    reads: Iterator[Reads]


@dataclass(eq=False, kw_only=True)
class CountWorkload:
    """Everything that a worker needs to count.

    regions     grouped by chromosome
    references  of each file, numbers of the references that the chromosomes stand for
    expected    requirements for a worker that is not this process
    """

    key: str
    files: Sequence[AlignmentFile]
    regions: Regions
    references: Sequence[Sequence[int]]
    options: Counting
    expected: Expected | None = None

    def open(self, place: Place) -> "CountSession":
        """Return a session on a worker. Raises Unfit where the worker may not take part."""
        require(self.expected, place)
        return CountSession(self)

    def name(self, span: CountSpan) -> str:
        """Return the file of a span."""
        return self.files[span.file].path

    def correct(self, span: CountSpan | None, part: CountPart) -> None:
        """Return None: a span is a whole file."""


class CountSession(Session[CountSpan, CountPart]):
    """Counting on one worker. A span is a unit: its reads can be taken only once."""

    def __init__(self, workload: CountWorkload) -> None:
        self.workload = workload

    def load(self, span: CountSpan) -> LoadedReads:
        """Open the file of the span."""
        workload = self.workload
        ordered = workload.options.remove_duplicates
        return LoadedReads(span=span, reads=reads(workload.files[span.file], ordered))

    def compute(self, loaded: LoadedReads) -> CountPart:
        """Count the reads, block by block."""
        workload, file = self.workload, loaded.span.file
        regions = workload.regions
        counter = Counter(
            chrom=np.array(workload.references[file], np.int32)[regions.chrom],
            start=regions.start,
            end=regions.end,
            references=len(workload.files[file].references),
            options=workload.options,
        )
        mapped = 0
        for block in loaded.reads:
            counter.add(block)
            mapped += len(block)
        return CountPart(file=file, counts=counter.counts().astype(np.int32), mapped=mapped)

    def need(self, loaded: LoadedReads) -> int:
        """Return the bytes of the counts: only one block of reads is in memory at a time."""
        return 8 * len(self.workload.regions)

    def finish(self, loaded: LoadedReads, computed: CountPart) -> CountPart:
        """Return what was counted."""
        return computed
