"""The job of a count: files looked at, cut into spans, counted on CPUs."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from multigpu.errors import UsageError
from multigpu.formats.alignments.files import (
    inspect_alignments,
)
from multigpu.formats.tables.counts import Counts
from multigpu.run.job import Job
from multigpu.run.options import RunOptions
from multigpu.workloads.count.files import choose_references, choose_regions, choose_sample_names
from multigpu.workloads.count.kept_counts import KeptCounts
from multigpu.workloads.count.options import CountOptions
from multigpu.workloads.count.plan import CountSpan
from multigpu.workloads.count.work import CountPart, CountWorkload


class CountJob(Job):
    """A count: opened (all files looked at), and run once, on CPUs also where there are GPUs.

    keep_in  folder that keeps the counts of each file for a run that is resumed; None: none is
    """

    keep_in: str | None = None

    def __init__(
        self, paths: Sequence[str], options: CountOptions, run: RunOptions, client: Any = None
    ) -> None:
        """Look at the files of these paths: directories and patterns are expanded before."""
        if not paths:
            raise UsageError("no alignment files given")
        super().__init__(replace(run, gpus="none"), client=client, devices=())
        self.options = options
        self.files = [inspect_alignments(path) for path in paths]
        self.samples = choose_sample_names(self.files, options.sample_names)
        self.regions, self.notes = choose_regions(self.files[0], options)
        self.references = choose_references(self.files, self.regions, options)
        self.reads = 0  # mapped reads seen so far

    @property
    def lengths(self) -> dict[str, int]:
        """Bases of the references, by the names that the regions have for them."""
        lengths = [self.files[0].references[number][1] for number in self.references[0]]
        return dict(zip(self.regions.names, lengths, strict=True))

    def counts(self) -> Counts:
        """Return the table. Raises what stopped the count."""
        counting = self.options.counting
        every = {
            numbers: KeptCounts(self.keep_in, self.regions, list(numbers), counting)
            for numbers in set(self.references)
            if self.keep_in is not None
        }
        values = np.zeros((len(self.regions), len(self.files)), np.int32)
        missing = []
        for number, file in enumerate(self.files):
            kept = every.get(self.references[number])
            if kept and (counts := kept.get(file.path)) is not None:
                values[:, number] = counts
            else:
                missing.append(number)
        for part in self._parts(missing):
            values[:, part.file] = part.counts
            if kept := every.get(self.references[part.file]):
                kept.put(self.files[part.file].path, part.counts)
        empty = [
            f"{self.files[number].path}: no read counts: {self.samples[number]} is all zero"
            for number in np.flatnonzero(~values.any(axis=0)).tolist()
        ]
        return Counts(self.regions, self.samples, values, (*self.notes, *empty))

    def _parts(self, numbers: Sequence[int]) -> Iterator[CountPart]:
        """Yield the counts of the files of these numbers, in order."""
        if not numbers:
            return
        files = self.files
        if self.remote:
            files = [replace(file, path=str(Path(file.path).absolute())) for file in files]
        counted = [files[number] for number in numbers]
        with ExitStack() as stack:
            crew = self.crew(stack, [file.path for file in counted])
            workload = CountWorkload(
                key=uuid.uuid4().hex,
                files=files,
                regions=self.regions,
                references=self.references,
                options=self.options.counting,
                expected=crew.expected,
            )
            spans = self.skip_finished(map(CountSpan, numbers))
            for outcome in self.run_spans(crew, workload, spans):
                self.reads += outcome.part.mapped
                yield outcome.part
