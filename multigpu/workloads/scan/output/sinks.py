"""The outputs that a command asks for. A new one is a class, its option, and a line here."""

from typing import Any

from multigpu.errors import UsageError, option
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.options import ScanOutput
from multigpu.workloads.scan.output.row_sink import RowFormat
from multigpu.workloads.scan.output.write import FileSink

ALIGNMENTS = ("sam", "bam", "paf")


def sinks_of(job: ScanJob, out: ScanOutput, rows: RowFormat) -> list[FileSink[Any]]:
    """Return all outputs of a run, with the rows in this format.

    Raises UsageError and InputError for inputs that an output cannot have.
    """
    if job.options.circular and rows.name in ALIGNMENTS:
        raise UsageError(
            f"{option('circular')}: {option('format')} {rows.name} has no place for matches over"
            " the end of a sample: choose another format"
        )
    columns = list(job.columns)
    if out.ambiguous or job.options.max_ambiguous is not None:
        columns.append("ambiguous")
    return [
        rows.sink(
            path=out.output,
            format=rows,
            columns=rows.columns(columns),
            signatures=job.signatures,
            files=job.paths,
            layouts=frozenset(source.layout for source in job.sources),
            options=job.options,
        )
    ]
