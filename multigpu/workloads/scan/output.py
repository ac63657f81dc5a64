"""Rows of a scan to a file, or to standard output."""

from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.files import atomic_output
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.tables.writers import open_table, split_format
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.parts import OutputNeeds
from multigpu.workloads.scan.sam_output import SAM_FORMATS, SamOutput


def write_matches(job: ScanJob, path: str | None, fmt: str) -> None:
    """Run the job and write its rows, compressed where the suffix of the path says so.

    path  None and "-": standard output
    fmt   a format of `multigpu.formats.tables.writers`; text is rendered by the workers

    Raises UsageError and InputError where SAM and BAM cannot have these samples.
    """
    kind, columns = split_format(fmt)
    sam = SamOutput(job, fmt) if kind.name in SAM_FORMATS else None
    needs = OutputNeeds(fmt=fmt if kind.lines else None, cigars="cigar" in columns)
    with atomic_output(path) as file:
        if sam:
            needs, table = sam.needs, sam.open(file, path)
        else:
            table = open_table(file, fmt, compression_of(path), job.signatures)
        with table as write:
            for rows in job.rows(needs):
                begin = now()
                write(rows)
                job.emit(Event("written", details={"begin": begin}))
