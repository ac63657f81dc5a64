"""The Python function `multigpu.scan` and its result: rows as batches, as tables and as frames."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from multigpu.errors import UsageError, option
from multigpu.formats.sequences.signatures import Signatures
from multigpu.run.declarations import function_of
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.inputs import expand_inputs, sources_of
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.output.parquet import to_arrow
from multigpu.workloads.scan.output.registry import FORMATS
from multigpu.workloads.scan.output.row_lines import COLUMNS, Columns, ScanRows, separated
from multigpu.workloads.scan.output.row_sink import BatchSink
from multigpu.workloads.scan.request import ScanRequest

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

SHOWN = 5  # rows, where a result is printed


class RowResult(ABC):
    """Rows of a scan, which are iterated over as batches, or taken all at once."""

    def __init__(self, signatures: Signatures, columns: Columns, files: Sequence[str]) -> None:
        """Make a result with these columns on request, of samples in these files."""
        self._signatures, self._columns, self._files = signatures, columns, files
        self.signature_names = [name.decode("utf-8", "replace") for name in signatures.names]

    @abstractmethod
    def __iter__(self) -> Iterator[Batch]:
        """Return the batches in the order of the input; `sample_index` counts through all of it."""

    def to_table(self) -> "pa.Table":
        """Return all rows as a pyarrow table with the columns of the Parquet output."""
        rows = Batch.concatenate(list(self))
        return to_arrow(ScanRows(rows, self._signatures, self._columns, self._files))

    def to_pandas(self) -> "pd.DataFrame":
        """Return all rows as a pandas frame; see `to_table`. Raises UsageError without pandas."""
        _import("pandas")
        return self.to_table().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """Return all rows as a polars frame; see `to_table`. Raises UsageError without polars."""
        return _import("polars").DataFrame(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return all rows as an Arrow C stream, by which other packages read the result."""
        return self.to_table().__arrow_c_stream__(requested_schema)


class FoundRows(RowResult):
    """Rows that are in memory, for any number of uses."""

    def __init__(self, batch: Batch, *about: Any) -> None:
        super().__init__(*about)
        self.batch = batch

    def __len__(self) -> int:
        return len(self.batch)

    def __iter__(self) -> Iterator[Batch]:
        return iter([self.batch] if len(self.batch) else [])

    def __repr__(self) -> str:
        lines = ["\t".join(cells) for cells in self._first_rows()]
        return "\n".join([f"<{self._count}>", *lines])

    def _repr_html_(self) -> str:
        rows = ("".join(f"<td>{escape(cell)}" for cell in cells) for cells in self._first_rows())
        return f"<p>{self._count}<table><tr>{'<tr>'.join(rows)}</table>"

    @property
    def _count(self) -> str:
        more = f", the first {SHOWN}" if len(self) > SHOWN else ""
        return f"{len(self):,} matches of {len(self._signatures):,} signatures{more}"

    def _first_rows(self) -> list[list[str]]:
        """Return the titles and the first rows, as in TSV."""
        rows = ScanRows(self.batch[:SHOWN], self._signatures, (), self._files)
        lines = separated(rows, b"\t").decode("utf-8", "replace").split("\n")[:-1]
        return [list(COLUMNS), *(line.split("\t") for line in lines)]


def _import(package: str) -> Any:
    """Return a package. Raises UsageError where it is not installed."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise UsageError(f"{package} is not installed: pip install {package}") from error


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
