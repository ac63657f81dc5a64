"""The job of a count: files looked at, cut into spans, counted on CPUs; counts that are kept."""

import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.plan import balanced
from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError, several
from multigpu.formats.alignments.files import AlignmentFile, cut, index_error, inspect_alignments
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage.fingerprints import digest, fingerprint
from multigpu.formats.storage.npy import UNREADABLE, read_arrays
from multigpu.formats.tables.counts import Counts
from multigpu.kernels.counting.types import Counting
from multigpu.run.job import Job
from multigpu.run.options import RunOptions
from multigpu.workloads.count.files import choose_references, choose_regions, choose_sample_names
from multigpu.workloads.count.options import CountOptions
from multigpu.workloads.count.work import CountPart, CountSpan, CountWorkload, counted_ranges

VERSION = 1  # of the files, and of what counting means


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
        # Counts of files are kept without a journal, so nothing is missing where there is none.
        super().__init__(replace(run, gpus="none", resume=False), client=client, devices=())
        self.options = options
        self.files = [inspect_alignments(path) for path in paths]
        self.samples = choose_sample_names(self.files, options.sample_names)
        self.regions, notes = choose_regions(self.files[0], options)
        bare = [file.path for file in self.files if file.kind == "bam" and file.index is None]
        if bare and options.index:
            notes = (*notes, f"no index, so one thread reads the whole file: {several(bare)}")
        self.notes = notes
        self.references = choose_references(self.files, self.regions, options)
        self.reads = 0  # mapped reads seen so far
        # Mapped reads of each file: by its index, and those seen.
        self._told: dict[int, tuple[AlignmentFile, dict[int, int | None]]] = {}
        self._mapped: dict[int, NDArray[np.int64]] = {}

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
        for number in _fill_columns(self._parts(missing), missing, values):
            self._check_mapped(number)
            if kept := every.get(self.references[number]):
                kept.put(self.files[number].path, values[:, number])
        empty = [
            f"{self.files[number].path}: no read counts: {self.samples[number]} is all zero"
            for number in np.flatnonzero(~values.any(axis=0)).tolist()
        ]
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
                part = outcome.part
                self.reads += int(part.mapped.sum())
                self._mapped[part.file] = part.mapped + self._mapped.get(part.file, 0)
                yield part

    def _check_mapped(self, number: int) -> None:
        """Raise InputError where a file has not the mapped reads that its index tells."""
        file, told = self._told[number]
        if any(count not in (None, self._mapped[number][key]) for key, count in told.items()):
            raise index_error(file)

    def _spans(self, numbers: Sequence[int], chunk_bytes: int) -> Iterator[CountSpan]:
        """Yield the spans of these files, each of which is opened when its turn comes."""
        for number in numbers:
            file = self.files[number]
            if not self.options.index:
                file = replace(file, index=None)
            ranges = counted_ranges(self.regions, self.references[number])
            stretches, mapped = cut(file, ranges, chunk_bytes)
            self._told[number] = file, mapped
            for stretch in stretches:
                yield CountSpan(number, stretch)


def _fill_columns(
    parts: Iterable[CountPart], numbers: Sequence[int], values: NDArray[np.int32]
) -> Iterator[int]:
    """Add the parts to the columns of their files; yield the number of each complete column.

    parts    in the order of the files
    numbers  of the files that are counted, ascending
    values   int32[regions, files]
    """
    waiting = deque(numbers)
    for part in parts:
        while waiting[0] < part.file:
            yield waiting.popleft()
        values[part.rows, part.file] += part.counts
    yield from waiting


class KeptCounts:
    """Folder of counts, by alignment file, regions and options."""

    def __init__(
        self, folder: str, regions: Regions, numbers: list[int], options: Counting
    ) -> None:
        """Make the folder, where there is none.

        numbers  of the references that the chromosomes of the regions stand for
        """
        self._folder, self._count = Path(folder), len(regions)
        self._folder.mkdir(exist_ok=True)
        self._asked = (VERSION, numbers, astuple(options), regions)

    def get(self, path: str) -> NDArray[np.int32] | None:
        """Return int32[regions], the counts of a file, or None where they cannot be read."""
        try:
            counts = read_arrays(self._place(path).read_bytes(), "counts")["counts"]
        except UNREADABLE:
            return None
        right = counts.dtype == np.int32 and counts.shape == (self._count,)
        return counts if right and counts.min(initial=0) >= 0 else None

    def put(self, path: str, counts: NDArray[np.int32]) -> None:
        with atomic_output(str(self._place(path))) as file:
            np.savez_compressed(file, counts=counts)

    def _place(self, path: str) -> Path:
        return self._folder / f"{digest((self._asked, fingerprint(path)))}.npz"
