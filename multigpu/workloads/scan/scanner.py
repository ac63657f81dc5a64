"""The class `multigpu.Scanner`: signatures whose index is kept for many scans in memory."""

import logging
import os
import uuid
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from queue import SimpleQueue
from threading import Thread
from typing import Any, NoReturn

from multigpu.cluster.devices import memory
from multigpu.cluster.workers.worker import WORKER, run_chunk
from multigpu.errors import UsageError, option, spelled
from multigpu.formats.sequences.memory_records import MemoryRecords, records_or_paths
from multigpu.formats.sequences.record_source import RecordSource
from multigpu.formats.sequences.signatures import read_signatures
from multigpu.formats.sequences.spans import BlockSpan
from multigpu.formats.sequences.streams import OpenStreams
from multigpu.run.declarations import declaration, function_of
from multigpu.run.options import RunOptions
from multigpu.workloads.scan.api import FoundRows
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.inputs import expand_inputs, sources_of
from multigpu.workloads.scan.join import Joiner
from multigpu.workloads.scan.notes import notes_before
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.registry import FORMATS
from multigpu.workloads.scan.output.row_sink import BatchSink
from multigpu.workloads.scan.parts import ScanPart
from multigpu.workloads.scan.patterns import check_errors
from multigpu.workloads.scan.request import PathsOrRecords
from multigpu.workloads.scan.work import ScanWorkload

logger = logging.getLogger(__name__)

NAME = "records"  # what messages call the records
BLOCK_BYTES = 4 << 20  # of records that a thread searches at a time
IN_LINE = 2  # blocks of a thread that are made before they are searched


@dataclass(frozen=True)
class ScannerRequest(ScanOptions, RunOptions, group="Input"):
    """Everything that a scanner is asked for."""

    signatures: PathsOrRecords = field(metadata=declaration(
        "File with signatures, or records, as tuples of name and sequence."
    ))  # fmt: skip

    def check(self) -> None:
        super().check()
        for name in ("scheduler", "scheduler_file", "workers", "resume"):
            if getattr(self, name):
                raise UsageError(f"a Scanner has threads only, no {option(name)}: see scan")
        if self.sample_sheet:
            raise UsageError(f"a Scanner has signatures, no {option('sample_sheet')}: see scan")


@function_of(ScannerRequest)
def _request_of(request: ScannerRequest) -> ScannerRequest:
    return request


class Scanner:
    """Signatures whose index is kept for many scans of records in memory.

    It computes in threads of this process, on its CPUs or one GPU. Several threads may use it at
    once.

    signatures  file with signatures, or records, as tuples of name and sequence
    options     as of `multigpu.scan`: hits, strand, max_mismatches …, gpus, threads, cpu_fallback

    Raises UsageError and InputError for wrong options and signatures.
    """

    def __init__(self, signatures: PathsOrRecords, **options: Any) -> None:
        request = _request_of(signatures, **options)
        self._options = request.part(ScanOptions)
        place = MemoryRecords(NAME, [("", "", "")])
        inputs = expand_inputs([place], sources_of(request.signatures, "signatures"))
        self._signatures = read_signatures(inputs.signatures)
        check_errors(self._signatures, self._options)
        for note in notes_before([place], self._signatures, self._options):
            logger.warning("multigpu: %s", spelled(note))
        self._gpu, self._cpu_fallback = _gpu_of(request), request.cpu_fallback
        self._threads = request.threads or len(os.sched_getaffinity(0))
        workload = ScanWorkload(
            key=uuid.uuid4().hex,
            sources=[place],
            signatures=self._signatures,
            options=self._options,
            sinks=[BatchSink()],
            streams=OpenStreams([], self._options.phred_offset),
        )
        self._workload = workload
        WORKER.jobs.admit(workload)
        pool = self._pool = ThreadPoolExecutor(self._threads, "scanner")
        _closer()
        self._end = weakref.finalize(self, _forgotten.put, (workload.key, pool))
        self.scan([("first", "ACGT" * 64, "I" * 256)])  # the index is made by who needs it

    def __repr__(self) -> str:
        where = "CPUs" if self._gpu is None else f"the GPU {self._gpu}"
        return f"<Scanner: {len(self._signatures):,} signatures on {where}>"

    def scan(self, records: Iterable[Any]) -> FoundRows:
        """Return which signatures occur where in which records.

        records  tuples of name, sequence and, if known, quality, each str or bytes; records of
                 pysam, dnaio or Biopython; or a table with the Arrow C stream interface and the
                 columns name, sequence and, if known, quality

        Raises InputError for a wrong record, and UsageError for paths.
        """
        if not self._end.alive:
            raise UsageError("the Scanner is closed: make another one")
        source = records_or_paths(records, NAME)
        if not isinstance(source, RecordSource):
            is_path = isinstance(source, str | bytes | os.PathLike)
            if is_path or not isinstance(source, Iterable) or list(source):
                raise UsageError("a Scanner takes records in memory: multigpu.scan takes files")
            source = MemoryRecords(NAME, [])  # there are none
        joiner = Joiner([source], self._options, self._workload.sinks)
        found = [
            rows.numbered(first)
            for part in self._parts(source)
            for (rows,), first in joiner.add(part)
            if len(rows)
        ]
        mate = ("mate",) * source.has_mates
        columns = FORMATS["parquet"].columns((*mate, *self._options.columns))
        return FoundRows(Batch.concatenate(found), self._signatures, columns, [NAME])

    def close(self) -> None:
        """Free the index, and the memory on the GPU."""
        if self._end.detach():
            _close(self._workload.key, self._pool)

    def _parts(self, source: RecordSource) -> Iterator[ScanPart]:
        """Yield the parts of the records, in order."""
        running: deque[Future[ScanPart]] = deque()
        spans = source.spans(0, BLOCK_BYTES, self._options.phred_offset)
        try:
            for span in spans:
                running.append(self._pool.submit(self._part, span))
                if len(running) > IN_LINE * self._threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for waiting in running:
                waiting.cancel()

    def _part(self, span: BlockSpan) -> ScanPart:
        outcome = run_chunk(self._workload.key, self._gpu, span, self._cpu_fallback)
        part: ScanPart = outcome.part
        return part


def _gpu_of(run: RunOptions) -> str | None:
    """Return the UUID of the first GPU that the options allow; None for the CPU."""
    devices = run.devices()
    if not devices:
        return None
    if problem := memory.cupy_problem():
        if run.gpus != "auto":
            raise UsageError(f"GPUs cannot be used: {problem}")
        logger.warning("multigpu: using the CPU, because %s", spelled(f"{problem}"))
        return None
    return devices[0].uuid


def _close(key: str, pool: ThreadPoolExecutor) -> None:
    WORKER.jobs.dismiss(key)
    pool.shutdown(wait=False, cancel_futures=True)


# A Scanner that nobody holds may be collected in the midst of any line, whatever locks its thread
# has: all that may be done there is to put it here, which needs no lock.
_forgotten: SimpleQueue[tuple[str, ThreadPoolExecutor]] = SimpleQueue()


@cache
def _closer() -> Thread:
    """Return the thread that closes Scanners which nobody holds any more."""
    thread = Thread(target=_close_forgotten, name="closing", daemon=True)
    thread.start()
    return thread


def _close_forgotten() -> NoReturn:
    while True:
        with suppress(Exception):
            _close(*_forgotten.get())
