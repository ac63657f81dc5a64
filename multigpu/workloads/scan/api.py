"""The Python function `multigpu.scan` and its result."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from multigpu.errors import UsageError, option
from multigpu.formats.sequences.memory_records import records_or_paths
from multigpu.formats.storage.sources import Source
from multigpu.run.functions import function_of
from multigpu.run.values import path_list
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.inputs import expand_inputs
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.output.batches import BatchSink
from multigpu.workloads.scan.output.parquet import to_arrow
from multigpu.workloads.scan.output.registry import FORMATS
from multigpu.workloads.scan.request import ScanRequest

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


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
        """Return the batches in the order of the input; `sample_index` counts through all of it."""
        self._job.take_once("rows", "multigpu.scan")
        return self._batches()

    def _batches(self) -> Iterator[Batch]:
        with self._job.keep_journal():
            for (rows,), first in self._job.payloads([BatchSink()]):
                if len(rows):
                    yield rows.numbered(first)

    def to_table(self) -> "pa.Table":
        """Return all rows as a pyarrow table with the columns of the Parquet output."""
        job = self._job
        columns = FORMATS["parquet"].columns(job.columns)
        return to_arrow(Batch.concatenate(list(self)), job.signatures.names, columns, job.paths)

    def to_pandas(self) -> "pd.DataFrame":
        """Return all rows as a pandas frame with the columns of the Parquet output."""
        return self.to_table().to_pandas()


@function_of(ScanRequest)
def scan(request: ScanRequest) -> ScanResult:
    """Return which signatures occur where in which samples, with the mean quality of each match.

    {options}

    Raises UsageError and InputError here for what is wrong with the options and the files'
    beginnings, and from the iteration for what shows later.
    """
    samples = _sources_of(request.samples, "samples")
    signatures = _sources_of(request.signatures, "signatures")
    inputs = expand_inputs(samples, signatures, request.pairs)
    place = request.journal_path
    if place and not inputs.files:
        problem = "samples in memory cannot be compared with those of an earlier run"
        raise UsageError(f"no {option('journal')} can be kept: {problem}; give files")
    job = ScanJob(inputs, request.options, request.run, client=request.client, journal=place)
    return ScanResult(job)


def _sources_of(given: object, name: str) -> Sequence[str | Source]:
    records, paths = records_or_paths(given, name)
    return [records] if records else path_list(paths, name)
