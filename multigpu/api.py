"""The Python API, which the commands call too."""

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from cluster import worker
from cluster.deploy import Workers
from cluster.devices import Device
from multigpu.batch import Batch
from multigpu.config import RunOptions, ScanOptions
from multigpu.errors import Failure
from multigpu.io.signatures import Signatures, read_signatures
from multigpu.io.sources import Source, expand, fingerprints, inspect
from multigpu.jobs import Facts, Job, Paths, path_list
from multigpu.workloads.joining import Joiner
from multigpu.workloads.scan import ScanPart, ScanPlan, ScanWorkload, plan_scan, scan_spans

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass
class ScanFacts(Facts[ScanPart]):
    """What a scan has done so far."""

    records: int = 0
    bases: int = 0
    hits: int = 0

    def add(self, outcome: worker.Outcome[ScanPart]) -> None:
        super().add(outcome)
        self.records += outcome.part.records
        self.bases += outcome.part.bases


class ScanJob(Job):
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
        super().__init__(run, client, devices)
        self.options = options
        self.facts = ScanFacts()
        self.chunk_plan: ScanPlan | None = None
        self.signatures: Signatures = read_signatures(signatures)
        self.sources: list[Source] = [inspect(path) for path in expand(samples)]

    def plan(self, workers: Workers | None = None) -> ScanPlan:
        """The chunk plan; without workers, that of this machine."""
        here = self.capacity(workers)
        return plan_scan(
            self.sources, self.signatures, here.free, here.threads, here.lanes, self.run
        )

    def outcomes(self, fmt: str | None = None) -> Iterator[worker.Outcome[ScanPart]]:
        """The parts in order, rows as text where `fmt` says so. Raises what stopped the scan."""
        with self.workers() as workers:
            sources = self._seen_by(workers) if self.remote else self.sources
            self.chunk_plan = self.plan(workers)
            workload = ScanWorkload(uuid.uuid4().hex, sources, self.signatures, self.options, fmt)
            spans = scan_spans(sources, self.chunk_plan, self.options)
            yield from self.dispatched(workers, workload, spans, self.facts)

    def rows(self, fmt: str | None = None) -> Iterator[Batch | bytes]:
        """The rows of every part in order, samples numbered through the whole input."""
        joiner = Joiner(self.sources, self.options)
        for outcome in self.outcomes(fmt):
            for rows in joiner.rows(outcome.part):
                self.facts.hits = joiner.hits
                yield rows
        yield from joiner.finish()
        self.facts.hits = joiner.hits

    def told(self) -> dict[str, Any]:
        """What only a scan has to tell in a summary."""
        return {
            "samples": [asdict(source) for source in self.sources],
            "signatures": len(self.signatures),
            "records": self.facts.records,
            "bases": self.facts.bases,
            "hits": self.facts.hits,
        }

    def progress(self, seconds: float) -> tuple[int | None, str, str]:
        """Of all chunks, how many there are, if that is known; speed; results so far."""
        chunks = self.chunk_plan.chunks if self.chunk_plan else (None,)
        known = [count for count in chunks if count is not None]
        total = sum(known) if len(known) == len(chunks) else None
        rate = self.facts.bases / max(seconds, 1e-9)
        return total, f"{rate / 1e6:,.0f} Mbases/s", f"{self.facts.hits:,} matches"

    def _seen_by(self, workers: Workers) -> list[Source]:
        """The sources with paths that mean the same elsewhere.

        Raises Failure that names every worker that does not see a file, or sees another one.
        """
        sources = [
            replace(source, path=os.path.abspath(source.path)) if source.cuttable else source  # noqa: PTH100
            for source in self.sources
        ]
        paths = [source.path for source in sources if source.cuttable]
        here = fingerprints(paths)
        problems = [
            f"worker {name}: {path}: {'not the same file as here' if digest else 'not there'}"
            for name, there in workers.everywhere(fingerprints, paths).items()
            for path, ours, digest in zip(paths, here, there, strict=True)
            if digest != ours
        ]
        if problems:
            raise Failure("; ".join(problems))
        return sources


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
        path_list(samples), path_list(signatures), options, RunOptions(gpus=gpus, **run), client
    )
    return ScanResult(job)
