"""The Python API, which the commands call too."""

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cluster import deploy, dispatch, worker
from cluster.deploy import GPU_LANES, DaskWorkers, Deployment, Workers
from cluster.devices import Device
from multigpu.batch import Batch
from multigpu.config import RunOptions, ScanOptions
from multigpu.io.signatures import Signatures, read_signatures
from multigpu.io.sources import Source, check_seen, expand, fingerprints, inspect
from multigpu.workloads.joining import Joiner
from multigpu.workloads.scan import ScanPart, ScanPlan, ScanWorkload, plan_scan, scan_spans

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass
class Facts:
    """What a run has done so far."""

    records: int = 0
    bases: int = 0
    hits: int = 0
    chunks: int = 0
    seconds: dict[str, float] = field(default_factory=dict)  # of each step, over all threads
    spans: list[tuple[str, str, float, float]] = field(default_factory=list)

    def add(self, outcome: worker.Outcome[ScanPart]) -> None:
        part = outcome.part
        self.records += part.records
        self.bases += part.bases
        self.chunks += 1
        for step in outcome.steps:
            spent = self.seconds.get(step.name, 0.0)
            self.seconds[step.name] = spent + step.end - step.begin
            self.spans.append((outcome.worker, step.name, step.begin, step.end))


class ScanJob:
    """A scan: opened (all input looked at), planned, and run once."""

    def __init__(
        self,
        samples: Sequence[str],
        signatures: Sequence[str],
        options: ScanOptions,
        run: RunOptions,
        client: Any = None,
        devices: tuple[Device, ...] | None = None,
    ) -> None:
        self.options, self.run, self.client = options, run, client
        self.facts = Facts()
        self.chunk_plan: ScanPlan | None = None
        if devices is None:
            devices = () if client else run.devices()
        self.devices = devices
        self.signatures: Signatures = read_signatures(signatures)
        self.sources: list[Source] = [inspect(path) for path in expand(samples)]

    @property
    def threads(self) -> int:
        """Chunks in hand at a time on each local worker."""
        if self.devices:
            return self.run.threads or min(GPU_LANES, max(2, len(os.sched_getaffinity(0))))
        return self.run.threads or len(os.sched_getaffinity(0))

    def plan(self, workers: Workers | None = None) -> ScanPlan:
        """The chunk plan; without workers, that of this machine."""
        if workers is not None and self._remote:
            free = min(workers.everywhere(worker.free_bytes, workers.gpu).values())
        elif self.devices:
            free = min(device.free_bytes for device in self.devices)
        else:
            free = worker.free_bytes(None)
        if workers is None:
            threads, lanes = self.threads * max(1, len(self.devices)), self.threads
        else:
            threads, lanes = workers.threads, workers.lanes
        return plan_scan(self.sources, self.signatures, free, threads, lanes, self.run)

    @property
    def _remote(self) -> bool:
        return bool(self.client) or self.run.elsewhere

    def outcomes(self, fmt: str | None = None) -> Iterator[worker.Outcome[ScanPart]]:
        """The parts in order, rows as text where `fmt` says so. Raises what stopped the scan."""
        with ExitStack() as stack:
            workers = self._workers(stack)
            sources = self._seen_by(workers) if self._remote else self.sources
            self.chunk_plan = self.plan(workers)
            workload = ScanWorkload(uuid.uuid4().hex, sources, self.signatures, self.options, fmt)
            spans = scan_spans(sources, self.chunk_plan, self.options)
            for outcome in dispatch.dispatch(workers, workload, spans):
                self.facts.add(outcome)
                yield outcome

    def rows(self, fmt: str | None = None) -> Iterator[Batch | bytes]:
        """The rows of every part in order, samples numbered through the whole input."""
        joiner = Joiner(self.sources, self.options)
        for outcome in self.outcomes(fmt):
            for rows in joiner.rows(outcome.part):
                self.facts.hits = joiner.hits
                yield rows
        yield from joiner.finish()
        self.facts.hits = joiner.hits

    def _seen_by(self, workers: Workers) -> list[Source]:
        """The sources with paths that mean the same elsewhere.

        Raises Failure that names every worker that does not see a file, or sees another one.
        """
        sources = [
            replace(source, path=os.path.abspath(source.path)) if source.cuttable else source  # noqa: PTH100
            for source in self.sources
        ]
        paths = [source.path for source in sources if source.cuttable]
        check_seen(paths, workers.everywhere(fingerprints, paths))
        return sources

    def _workers(self, stack: ExitStack) -> Workers:
        if self.client is not None:
            workers: Workers = DaskWorkers(self.client, worker.FIRST)
        else:
            deployment = Deployment(
                self.devices,
                self.threads,
                self.run.processes,
                self.run.scheduler,
                self.run.scheduler_file,
                self.run.connect_timeout,
            )
            workers = stack.enter_context(deploy.workers(deployment))
        if self.run.gpus == "none":
            workers.gpu = None
        return workers


class ScanResult:
    """The rows of a scan, computed as they are taken; they can be taken once."""

    def __init__(self, job: ScanJob) -> None:
        self._job = job
        self.signature_names = [name.decode("utf-8", "replace") for name in job.signatures.names]

    def __iter__(self) -> Iterator[Batch]:
        """Batches in the order of the input; `sample_index` counts through all of it."""
        for rows in self._job.rows():
            assert isinstance(rows, Batch)  # no text format was asked for
            yield rows

    def to_table(self) -> "pa.Table":
        """All rows as a pyarrow table with the columns of the Parquet output."""
        from multigpu.io.writers import to_arrow

        return to_arrow(Batch.concatenate(list(self)), self._job.signatures.names)

    def to_pandas(self) -> "pd.DataFrame":
        """All rows as a pandas frame with the columns of the Parquet output."""
        return self.to_table().to_pandas()


def scan(
    samples: Paths,
    signatures: Paths,
    *,
    gpus: str = "auto",
    client: Any = None,
    hits: Any = "first",
    strand: Any = "forward",
    sample_n: Any = "match",
    min_score: float | None = None,
    phred_offset: int = 33,
    **run: Any,
) -> ScanResult:
    """Which signatures occur where in which samples, and how sure that is.

    samples, signatures  files, directories, patterns, URLs (FASTQ or FASTA, gzip, zstd)
    gpus                 auto, all, none, or numbers and UUIDs as in `--gpus`
    client               a `dask.distributed.Client` to use instead of this machine
    hits                 "first": the lowest start of each sample and signature, or "all"
    strand               "forward" or "both"
    sample_n             "match" or "mismatch": may ambiguous sample bases stand for others?
    min_score            drop rows with a lower mean quality
    phred_offset         33, or 64 for old files
    run                  the other fields of `multigpu.config.RunOptions`

    Raises UsageError and InputError here for what is wrong with the options and the files'
    beginnings, and from the iteration for what shows later.
    """
    options = ScanOptions(hits, strand, sample_n, min_score, phred_offset)
    job = ScanJob(
        _paths(samples), _paths(signatures), options, RunOptions(gpus=gpus, **run), client
    )
    return ScanResult(job)


def _paths(paths: Paths) -> list[str]:
    if isinstance(paths, str | os.PathLike):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]
