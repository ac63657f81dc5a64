"""The job of a scan: opened (all input looked at), planned, and run once."""

import logging
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from multigpu.cluster.engine.journal import Codec
from multigpu.cluster.engine.workload import Workload
from multigpu.cluster.workers.worker import Outcome
from multigpu.errors import InputError, UsageError, option, spelled
from multigpu.formats.sequences.indexed_streams import IndexedSource
from multigpu.formats.sequences.reader import SpanReader
from multigpu.formats.sequences.registry import SEQUENCES
from multigpu.formats.sequences.sample_sheets import SampleSheet, read_sample_sheet
from multigpu.formats.sequences.signatures import read_signatures
from multigpu.formats.sequences.spans import BgzfSpan, Span
from multigpu.formats.sequences.streams import OpenStreams
from multigpu.formats.storage.fingerprints import digest
from multigpu.formats.storage.sources import Source, inspect_source
from multigpu.run import fitness
from multigpu.run.job import INPUT, Crew, Job, JobStats, check_unchanged, describe_inputs
from multigpu.run.options import RunOptions
from multigpu.workloads.scan.inputs import ScanInputs
from multigpu.workloads.scan.join import Joiner, WholeRecords
from multigpu.workloads.scan.notes import (
    note_on_ambiguity,
    note_on_sheet,
    notes_after,
    notes_before,
)
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.parts import JOURNAL_CLASSES, ExtractedRecords, ScanPart
from multigpu.workloads.scan.patterns import check_errors
from multigpu.workloads.scan.plan import (
    ScanPlan,
    finished_span,
    plan_scan,
    scan_spans,
    streams_on_workers,
)
from multigpu.workloads.scan.sink import RecordTexts, Sink
from multigpu.workloads.scan.work import ScanWorkload

logger = logging.getLogger(__name__)

EARLY_HITS = 1000  # from which on matches are looked at while they come


@dataclass
class ScanStats(JobStats):
    """Numbers of a scan so far."""

    records: int = 0
    bases: int = 0
    hits: int = 0

    def add(self, outcome: Outcome[ScanPart]) -> None:
        super().add(outcome)
        self.records += outcome.part.records
        self.bases += outcome.part.bases


class ScanJob(Job):
    """A scan; more: see `Job`."""

    def __init__(
        self,
        inputs: ScanInputs,
        options: ScanOptions,
        run: RunOptions,
        whole_records: bool = False,
        **more: Any,
    ) -> None:
        """Open all input.

        whole_records  whether an output takes records that are not cut
        """
        super().__init__(run, inputs.lanes, **more)
        self.stats: ScanStats = ScanStats()
        self.options = options
        self.chunk_plan: ScanPlan | None = None
        self.notes: list[str] = []
        self.sheet: SampleSheet | None = None
        if options.sample_sheet is None:
            self.signatures = read_signatures(inputs.signatures)
            check_errors(self.signatures, options)
        else:
            self.sheet = read_sample_sheet(options.sample_sheet)
            self.signatures = self.sheet.signatures()
        self.sources, self.empty_files, notes = inputs.open_samples()
        if self.sheet:
            self._place_barcodes(self.sheet)
        if options.needs_whole_records or whole_records:
            for source in self.sources:
                source.in_blocks = source.in_blocks or source.layout == "fasta"
        offset = options.phred_offset
        self._ranges: dict[int, Iterator[BgzfSpan]] = {}
        self._reader = SpanReader(
            self.sources,
            OpenStreams(self.sources, offset),
            overlap=0,
            phred_offset=offset,
            allocate=lambda size: np.empty(size, np.uint8),
        )
        self._files, self._pairs = [*inputs.files, *options.index_files], inputs.pairs
        found = notes_before(self.sources, self.signatures, options)
        self.notes_before = [*inputs.notes, *notes, *found]
        if self.sheet:
            self.notes_before += note_on_sheet(self.sheet, options)

    def _place_barcodes(self, sheet: SampleSheet) -> None:
        """Have the sources read with their index reads.

        Raises UsageError where the samples have no place for barcodes, or limits are wrong.
        """
        files, count = self.options.index_files, len(sheet.barcodes)
        for column in range(count):
            check_errors(sheet.signatures(column), self.options)
        if files:
            if len(files) != count or len(self.sources) > 1:
                needs = f"{count} index files, and samples in one file or pair of files"
                given = f"got {len(files):,}, and samples in {len(self.sources):,}"
                raise UsageError(
                    f"{sheet.path} needs {needs}; {given}: repeat {option('index_reads')} for each"
                )
            indexes = [inspect_source(file, SEQUENCES) for file in files]
            self.sources = [IndexedSource(self.sources[0], indexes)]
        elif self.options.index_reads:
            for source in self.sources:
                source.in_blocks = True  # their titles are read, too
        elif count > 1 and not all(source.is_paired for source in self.sources):
            problem = "barcode2 is in the second read of a pair, but not all samples are pairs"
            raise InputError(
                sheet.path, f"{problem}: see {option('pairs')}, {option('index_reads')}"
            )

    def summary_entries(self) -> dict[str, Any]:
        """Return the entries that only the summary of a scan has."""
        return {
            "samples": [file.facts() for source in self.sources for file in source.files],
            "signatures": len(self.signatures),
            "records": self.stats.records,
            "bases": self.stats.bases,
            "hits": self.stats.hits,
            "notes": self.notes,
        }

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the samples, by their numbers."""
        return tuple(file.path for source in self.sources for file in source.files)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of rows that the samples and the options add."""
        about_files = ("file",) * (len(self.paths) > 1)
        about_pairs = ("mate",) * any(source.has_mates for source in self.sources)
        return about_files + about_pairs + self.options.columns

    @property
    def worker_files(self) -> list[str]:
        """Absolute paths of the files that workers read by themselves."""
        streams = streams_on_workers(self.sources)
        return [
            file.path
            for number, source in enumerate(self._sources_by_absolute_path())
            if source.has_ranges or (source.is_file and number in streams)
            for file in source.files
        ]

    @property
    def chunks(self) -> int | None:
        """Number of chunks; None before the plan is made, and where there are streams."""
        if self.chunk_plan is None or None in self.chunk_plan.chunks:
            return None
        return sum(count or 0 for count in self.chunk_plan.chunks)

    def plan(self, crew: Crew | None = None) -> ScanPlan:
        """Return the chunk plan for these workers, or for this machine."""
        about = (self.sources, self.signatures)
        return self.fit(crew, lambda here: plan_scan(*about, here, self.run, self.options))

    def stands(self, changed: Sequence[str], part: ScanPart) -> bool:
        """Return whether a part is of a file before the first that has changed."""
        places: dict[str, int] = {}
        for number, source in enumerate(self.sources):
            for file in source.files:
                places.setdefault(f"{INPUT}{file.path}", number)
        return part.source < min(places.get(name, 0) for name in changed)

    def may_be_corrected(self, error: InputError) -> bool:
        # Workers of other machines have absolute paths.
        path, *files = map(os.path.abspath, [error.path, *self.paths])
        first = len(self.sources[0].files)  # two mates are one source
        return path in files[first:] and path not in files[:first]

    def outcomes(self, sinks: Sequence[Sink[Any]]) -> Iterator[Outcome[ScanPart]]:
        """Yield the parts in order. Raises what stopped the scan."""
        with ExitStack() as stack:
            sources = self._sources_by_absolute_path() if self.remote else self.sources
            crew = self.crew(stack, self.worker_files)
            plan = self.plan(crew)
            about = self._describe(sinks)
            sizes = {"chunk_bytes": plan.chunk_bytes}
            sizes = self.open_journal(about, sizes, Codec(JOURNAL_CLASSES))
            # A run that is resumed is cut as the one before.
            self.chunk_plan = plan.with_chunks(sizes["chunk_bytes"], sources)
            workload: Workload[Span, ScanPart] = ScanWorkload(
                key=uuid.uuid4().hex,
                sources=sources,
                signatures=self.signatures,
                options=self.options,
                sinks=sinks,
                sheet=self.sheet,
                streams=OpenStreams(sources, self.options.phred_offset),
                expected=crew.expected,
            )
            spans = scan_spans(
                sources,
                self.chunk_plan,
                self.options,
                after=self.last_finished(),
            )
            yield from self.run_spans(crew, workload, spans, **sizes)
            check_unchanged(about, self._files)

    def payloads(self, sinks: Sequence[Sink[Any]]) -> Iterator[WholeRecords]:
        """Yield what these outputs get, in the order of the input; see `outcomes`."""
        joiner = Joiner(self.sources, self.options, sinks)
        self._note(self.notes_before)
        for joined in chain(self._joined(joiner, sinks), joiner.finish()):
            self.stats.hits = joiner.totals.hits
            # Rows that nobody wants are noted before they fill a disk.
            if joiner.totals.hits >= EARLY_HITS:
                self._note(note_on_ambiguity(joiner.totals))
            yield joined
        self._note(notes_after(self.signatures, self.options, joiner.totals))

    def _joined(self, joiner: Joiner, sinks: Sequence[Sink[Any]]) -> Iterator[WholeRecords]:
        # The loop alone holds the outcomes: an error of the joiner closes them at once.
        for outcome in self.outcomes(sinks):
            yield from joiner.add(outcome.part if outcome.worker else self._restored(outcome.part))

    def _restored(self, part: ScanPart) -> ScanPart:
        """Return a part of a journal with the texts of its records, which are read again."""
        if not any(isinstance(each, ExtractedRecords) for each in part.payloads):
            return part
        assert self.chunk_plan is not None
        about = (self.sources, self.chunk_plan)
        pieces = self._reader.read(finished_span(*about, part, self._ranges))
        texts = RecordTexts(text=pieces.text, borders=pieces.borders)
        payloads = [
            each.read(texts) if isinstance(each, ExtractedRecords) else each
            for each in part.payloads
        ]
        self._reader.give_back(pieces)
        return replace(part, payloads=tuple(payloads))

    def _note(self, notes: Iterable[str]) -> None:
        """Print notes, and keep them for the summary."""
        for note in map(spelled, notes):
            logger.warning("multigpu: %s", note)
            self.notes.append(note)

    def _sources_by_absolute_path(self) -> list[Source]:
        """Return the sources with paths that mean the same on other machines."""
        return [source.with_absolute_path() for source in self.sources]

    def _describe(self, sinks: Sequence[Sink[Any]]) -> dict[str, str]:
        """Return what must be equal for another run to continue with the journal of this one."""
        sheet = self.sheet.barcodes if self.sheet else ()
        signatures = digest((self.signatures.names, self.signatures.letters, *sheet))
        return {
            "program": fitness.program(),
            "job": "scan",
            "rows": ", ".join(sink.name for sink in sinks),
            "pairs": self._pairs,
            **{f"option {name}": str(value) for name, value in asdict(self.options).items()},
            "signatures": f"{len(self.signatures):,}, content {signatures}",
            **describe_inputs(self._files),
        }
