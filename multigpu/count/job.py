"""The job of a count: files looked at, cut into spans, counted on CPUs."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from multigpu.cluster.engine.plan import balanced
from multigpu.count.inputs import choose_regions, choose_sample_names
from multigpu.count.options import CountOptions
from multigpu.count.output import fill_columns, notes_of_empty_samples
from multigpu.count.plan import CountSpan, counted_ranges
from multigpu.count.work import CountPart, CountWorkload
from multigpu.errors import UsageError
from multigpu.formats.alignments.files import (
    check_references,
    inspect_alignments,
    stretches,
    with_index,
)
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_cache import CountsCache
from multigpu.run.job import Job
from multigpu.run.options import RunOptions


class CountJob(Job):
    """A count: opened (all files looked at), and run once, on CPUs also where there are GPUs."""

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
        check_references(self.files, rename=options.rename == "auto")
        self.regions, self.references, self.notes = choose_regions(self.files[0], options)
        self.reads = 0  # mapped reads seen so far

    @property
    def lengths(self) -> dict[str, int]:
        """Bases of the references, by the names that the regions have for them."""
        lengths = [self.files[0].references[number][1] for number in self.references]
        return dict(zip(self.regions.names, lengths, strict=True))

    def counts(self) -> Counts:
        """Return the table. Raises what stopped the count."""
        options = self.options
        cache = None
        if options.cache is not None:
            cache = CountsCache(options.cache, self.regions, self.references, options.counting)
        values = np.zeros((len(self.regions), len(self.files)), np.int32)
        missing = []
        for number, file in enumerate(self.files):
            kept = cache.get(file.path) if cache else None
            if kept is None:
                missing.append(number)
            else:
                values[:, number] = kept
        for number in fill_columns(self._parts(missing), missing, values):
            if cache:
                cache.put(self.files[number].path, values[:, number])
        empty = notes_of_empty_samples(self.files, self.samples, values)
        return Counts(self.regions, self.samples, values, (*self.notes, *empty))

    def _parts(self, numbers: Sequence[int]) -> Iterator[CountPart]:
        """Yield the parts of the files of these numbers, in order."""
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
            stored = sum(Path(file.path).stat().st_size for file in counted)
            chunk_bytes = balanced(stored, self.run.chunk_bytes(), crew.capacity.threads)
            spans = self.skip_finished(self._spans(numbers, chunk_bytes))
            for outcome in self.run_spans(crew, workload, spans):
                self.reads += outcome.part.reads
                yield outcome.part

    def _spans(self, numbers: Sequence[int], chunk_bytes: int) -> Iterator[CountSpan]:
        """Yield the spans of these files; a missing index is made while earlier files are read."""
        ranges = counted_ranges(self.regions, self.references)
        for number in numbers:
            file = self.files[number]
            if self.options.index:
                file = with_index(file, self.deployment.threads)
            else:
                file = replace(file, index=None)
            for stretch in stretches(file, ranges, chunk_bytes):
                yield CountSpan(number, stretch)
