"""Rows of a scan to a file, or to standard output."""

from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.engine.output import atomic_output
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.tables.writers import is_text, open_table
from multigpu.scan.job import ScanJob


def write_matches(job: ScanJob, path: str | None, fmt: str) -> None:
    """Run the job and write its rows, compressed where the suffix of the path says so.

    path  None and "-": standard output
    fmt   a format of `multigpu.formats.tables.writers`; text is rendered by the workers
    """
    with (
        atomic_output(path) as file,
        open_table(file, fmt, compression_of(path), job.signatures.names) as write,
    ):
        for rows in job.rows(fmt if is_text(fmt) else None):
            begin = now()
            write(rows)
            job.emit(Event("written", facts={"begin": begin}))
