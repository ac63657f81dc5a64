"""The Python function `multigpu.scan` and its result."""

from collections.abc import Iterator

from multigpu.errors import UsageError, option
from multigpu.run.functions import function_of
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.inputs import expand_inputs, sources_of
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.output.registry import FORMATS
from multigpu.workloads.scan.output.row_sink import BatchSink
from multigpu.workloads.scan.request import ScanRequest
from multigpu.workloads.scan.results import RowResult


class ScanResult(RowResult):
    """The rows of a scan, computed as they are taken; they can be taken once.

    Raises UsageError where they were taken already.
    """

    def __init__(self, job: ScanJob) -> None:
        self._job = job
        super().__init__(job.signatures, FORMATS["parquet"].columns(job.columns), job.paths)

    def __repr__(self) -> str:
        return (
            f"<ScanResult: {len(self.signature_names):,} signatures,"
            f" {len(self._job.sources):,} sample files; iterate over it, or call to_table()>"
        )

    def __iter__(self) -> Iterator[Batch]:
        self._job.take_once("rows", "multigpu.scan")
        return self._batches()

    def _batches(self) -> Iterator[Batch]:
        with self._job.keep_journal():
            for (rows,), first in self._job.payloads([BatchSink()]):
                if len(rows):
                    yield rows.numbered(first)


@function_of(ScanRequest)
def scan(request: ScanRequest) -> ScanResult:
    """Return which signatures occur where in which samples, with the mean quality of each match.

    {options}

    Raises UsageError and InputError here for what is wrong with the options and the files'
    beginnings, and from the iteration for what shows later.
    """
    samples = sources_of(request.samples, "samples")
    given = request.signatures
    signatures = () if isinstance(given, tuple) and not given else sources_of(given, "signatures")
    inputs = expand_inputs(samples, signatures, request.pairs, request.sample_sheet)
    place = request.journal_path
    if place and not inputs.files:
        problem = "samples in memory cannot be compared with those of an earlier run"
        raise UsageError(f"no {option('journal')} can be kept: {problem}; give files")
    job = ScanJob(inputs, request.options, request.run, client=request.client, journal=place)
    return ScanResult(job)
