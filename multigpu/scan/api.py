"""The Python API, which the commands call too."""

import logging
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from multigpu.cluster.engine.codec import Codec
from multigpu.cluster.workers.worker import Outcome
from multigpu.formats.sequences.signatures import Signatures, read_signatures
from multigpu.formats.storage.ahead import Streams
from multigpu.formats.storage.sources import (
    Source,
    check_stdin,
    expand,
    inspect,
    is_repeatable,
    plain_bytes,
)
from multigpu.formats.tables.batch import Batch
from multigpu.run import fitness
from multigpu.run.job import (
    Crew,
    Job,
    JobFacts,
    Paths,
    check_unchanged,
    describe_inputs,
    journal_path,
    path_list,
)
from multigpu.run.keywords import run_options
from multigpu.run.options import Lanes, RunOptions
from multigpu.scan.join import Joiner
from multigpu.scan.notes import notes_after, notes_before
from multigpu.scan.options import ScanOptions, scan_lanes
from multigpu.scan.work import PART_CLASSES, ScanPart, ScanPlan, ScanWorkload, plan_scan, scan_spans

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

logger = logging.getLogger(__name__)


@dataclass
class ScanFacts(JobFacts):
    """What a scan has done so far."""

    records: int = 0
    bases: int = 0
    hits: int = 0

    def add(self, outcome: Outcome[ScanPart]) -> None:
        super().add(outcome)
        self.records += outcome.part.records
        self.bases += outcome.part.bases


class ScanJob(Job):
    """A scan: opened (all input looked at), planned, and run once.

    streams  where the first stream may have been begun
    lanes    with which workers were started; more: see `Job`
    """

    def __init__(
        self,
        samples: Sequence[str],
        signatures: Sequence[str],
        options: ScanOptions,
        run: RunOptions,
        streams: Streams | None = None,
        lanes: Lanes | None = None,
        **more: Any,
    ) -> None:
        super().__init__(run, lanes or scan_lanes(plain_bytes(samples)), **more)
        self._streams = streams or Streams()
        self.facts: ScanFacts = ScanFacts()
        self.options = options
        self.chunk_plan: ScanPlan | None = None
        check_stdin([*samples, *signatures])
        self.notes: list[str] = []
        self.signatures: Signatures = read_signatures(signatures)
        self.sources: list[Source] = [inspect(path) for path in expand(samples)]
        self._before = list(
            notes_before(self.sources, expand(signatures), self.signatures, options)
        )
        if not all(map(is_repeatable, self._paths)):
            self._journal_path = None

    def summary_entries(self) -> dict[str, Any]:
        """What only a scan has to tell in a summary."""
        return {
            "samples": [asdict(source) for source in self.sources],
            "signatures": len(self.signatures),
            "records": self.facts.records,
            "bases": self.facts.bases,
            "hits": self.facts.hits,
            "notes": self.notes,
        }

    @property
    def _paths(self) -> list[str]:
        return [source.path for source in self.sources]

    @property
    def inputs(self) -> list[str]:
        """The files that workers read by themselves, by paths that mean the same elsewhere."""
        return [source.path for source in self._visible() if source.cuttable]

    @property
    def chunks(self) -> int | None:
        counts = self.chunk_plan.chunks if self.chunk_plan else (None,)
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def plan(self, crew: Crew | None = None) -> ScanPlan:
        """The chunk plan; without a crew, that of this machine."""
        here = crew.capacity if crew else self.capacity
        strands = 2 if self.options.strand == "both" else 1
        return plan_scan(self.sources, self.signatures, here, self.run, strands)

    def outcomes(self, fmt: str | None = None) -> Iterator[Outcome[ScanPart]]:
        """The parts in order, rows as text where `fmt` says so. Raises what stopped the scan."""
        with ExitStack() as stack:
            sources = self._visible() if self.remote else self.sources
            crew = self.crew(stack, self.inputs)
            plan = self.plan(crew)
            about = self._about(fmt)
            held = self.open_journal(about, {"chunk_bytes": plan.chunk_bytes}, Codec(PART_CLASSES))
            self.chunk_plan = plan.with_chunks(held["chunk_bytes"], sources)
            workload = ScanWorkload(
                uuid.uuid4().hex, sources, self.signatures, self.options, fmt, crew.expected
            )
            spans = scan_spans(sources, self.chunk_plan, self.options, self._streams)
            yield from self.run_spans(crew, workload, self.skip_finished(spans), **held)
            check_unchanged(about, self._paths)

    def rows(self, fmt: str | None = None) -> Iterator[Batch | bytes]:
        """The rows of every part in order, samples numbered through the whole input."""
        joiner = Joiner(self.sources, self.options)
        self._note(self._before)
        for outcome in self.outcomes(fmt):
            for rows in joiner.rows(outcome.part):
                self.facts.hits = joiner.facts.hits
                yield rows
        yield from joiner.finish()
        self.facts.hits = joiner.facts.hits
        self._note(notes_after(self.signatures, joiner.facts))

    def _note(self, notes: Iterable[str]) -> None:
        """Say them, and keep them for the summary."""
        for note in notes:
            logger.warning("multigpu: %s", note)
            self.notes.append(note)

    def _visible(self) -> list[Source]:
        """The sources with paths that mean the same elsewhere."""
        return [
            replace(source, path=os.path.abspath(source.path)) if source.cuttable else source  # noqa: PTH100
            for source in self.sources
        ]

    def _about(self, fmt: str | None) -> dict[str, str]:
        """What must be the same for another run to go on with this one's journal."""
        digest = blake2b(repr(list(self.signatures.names)).encode(), digest_size=16)
        digest.update(self.signatures.joined.joined.data)
        return {
            "program": fitness.program(),
            "job": "scan",
            "rows": fmt or "columns",
            **{f"option {name}": str(value) for name, value in asdict(self.options).items()},
            "signatures": f"{len(self.signatures):,}, content {digest.hexdigest()[:8]}",
            **describe_inputs(self._paths),
        }


class ScanResult:
    """The rows of a scan, computed as they are taken; they can be taken once.

    Raises UsageError where they were taken already.
    """

    def __init__(self, job: ScanJob) -> None:
        self._job = job
        self.signature_names = [name.decode("utf-8", "replace") for name in job.signatures.names]

    def __repr__(self) -> str:
        return (
            f"<ScanResult: {len(self.signature_names):,} signatures,"
            f" {len(self._job.sources):,} sample files; iterate over it, or call to_table()>"
        )

    def __iter__(self) -> Iterator[Batch]:
        """Batches in the order of the input; `sample_index` counts through all of it."""
        self._job.take_once("rows", "multigpu.scan")
        return self._batches()

    def _batches(self) -> Iterator[Batch]:
        with self._job.keep_journal():
            for rows in self._job.rows():
                assert isinstance(rows, Batch)  # no text format was asked for
                yield rows

    def to_table(self) -> "pa.Table":
        """All rows as a pyarrow table with the columns of the Parquet output."""
        from multigpu.formats.tables.writers import to_arrow

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
    journal: str | os.PathLike[str] | None = None,
    hits: Any = "first",
    strand: Any = "forward",
    sample_n: Any = "match",
    min_score: float | None = None,
    phred_offset: int = 33,
    max_ambiguous: float | None = None,
    **run: Any,
) -> ScanResult:
    """Return which signatures occur where in which samples, with the mean quality of each match.

    samples, signatures  files, directories, patterns, URLs (FASTQ or FASTA, gzip, zstd)
    gpus                 auto, all, none, or numbers and UUIDs as in `--gpus`
    client               a `dask.distributed.Client` to use instead of this machine
    journal              a file that keeps what is finished, until all rows were taken; with
                         `resume=True` a scan that was stopped goes on with it
    hits                 "first": the lowest start of each sample and signature, or "all"
    strand               "forward" or "both"
    sample_n             "match" or "mismatch": may ambiguous sample bases stand for others?
    min_score            drop rows with a lower mean quality
    phred_offset         33, or 64 for old files
    max_ambiguous        ambiguous sample bases that a match may have: an int, or as a float below 1
                         a share of its length; others do not count as matches
    run                  fields of `multigpu.run.options.RunOptions`, and `workers`: how many worker
                         processes on this machine

    Raises UsageError and InputError here for what is wrong with the options and the files'
    beginnings, and from the iteration for what shows later.
    """
    options = ScanOptions(hits, strand, sample_n, min_score, phred_offset, max_ambiguous)
    job = ScanJob(
        path_list(samples, "samples"), path_list(signatures, "signatures"), options,
        run_options(scan, {"gpus": gpus, **run}), client=client, journal=journal_path(journal),
    )  # fmt: skip
    return ScanResult(job)
