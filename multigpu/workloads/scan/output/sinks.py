"""The outputs that a command asks for. A new one is a class, its option, and a line here."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from multigpu.errors import UsageError, option
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.options import ALIGNMENTS, ScanOutput, multiqc_paths
from multigpu.workloads.scan.output.amplicon_sink import amplicon_sinks
from multigpu.workloads.scan.output.columns import AlignmentStyle
from multigpu.workloads.scan.output.counts import write_counts
from multigpu.workloads.scan.output.multiqc import write_columns, write_heat_map
from multigpu.workloads.scan.output.record_sink import record_sink
from multigpu.workloads.scan.output.report import write_report
from multigpu.workloads.scan.output.row_sink import RowFormat, RowSink
from multigpu.workloads.scan.output.tally_sink import TallyFile, TallySink
from multigpu.workloads.scan.output.write import FileSink


def sinks_of(job: ScanJob, out: ScanOutput, rows: RowFormat) -> list[FileSink[Any]]:
    """Return all outputs of a run, with the rows in this format.

    Raises UsageError and InputError for inputs that an output cannot have.
    """
    sinks: list[FileSink[Any]] = []
    if out.has_rows:
        sinks.append(_rows(job, out, rows))
    if written := tuple(_tally_files(job, out)):
        sinks.append(
            TallySink(
                signatures=job.signatures, options=job.options, files=job.paths, written=written
            )
        )
    if out.templates:
        sinks.append(record_sink(job, out))
    return [*sinks, *amplicon_sinks(job, out)]


def _rows(job: ScanJob, out: ScanOutput, rows: RowFormat) -> RowSink[Any]:
    if job.sheet and rows.name in ALIGNMENTS:
        problem = f"{rows.name} cannot have barcodes: choose another {option('format')}"
        raise UsageError(f"{option('sample_sheet')}: {problem}")
    for name in ("circular", "overhang"):
        if getattr(job.options, name) and rows.name in ALIGNMENTS:
            raise UsageError(
                f"{option(name)}: {option('format')} {rows.name} has no place for matches over the"
                " end of a sample: choose another format"
            )
    if (out.tags or out.cigar != "=X") and rows.name not in ALIGNMENTS:
        asked = option("tags" if out.tags else "cigar")
        formats = " or ".join(ALIGNMENTS)
        raise UsageError(f"{asked} is of alignments: choose {option('format')} {formats}")
    columns = list(job.columns)
    if out.ambiguous or job.options.max_ambiguous is not None:
        columns.append("ambiguous")
    return rows.sink(
        path=out.output,
        format=rows,
        columns=rows.columns(columns),
        signatures=job.signatures,
        files=job.paths,
        layouts=frozenset(source.layout for source in job.sources),
        options=job.options,
        style=AlignmentStyle(md=out.tags == "MD", cigar=out.cigar),
    )


def _tally_files(job: ScanJob, out: ScanOutput) -> Iterator[TallyFile]:
    """Yield the outputs that are made of numbers of files and signatures."""
    if out.counts:
        yield TallyFile(out.counts, partial(write_counts, out.counts))
    if out.multiqc:
        heat_map, columns = multiqc_paths(out.multiqc)
        yield TallyFile(heat_map, write_heat_map)
        yield TallyFile(columns, write_columns)
    if out.report:
        yield TallyFile(out.report, partial(write_report, job.options), is_detailed=True)
