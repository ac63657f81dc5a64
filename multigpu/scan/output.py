"""Rows of a scan to a file, or to standard output."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO

from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.engine.output import atomic_output
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.writers import has_cigars, is_text, open_table, split_format
from multigpu.scan.job import ScanJob
from multigpu.scan.parts import OutputNeeds
from multigpu.scan.sam_output import SAM_FORMATS, SamOutput


class TableOutput:
    """Rows as a table, in any format but SAM and BAM."""

    def __init__(self, job: ScanJob, fmt: str) -> None:
        self._job, self._fmt = job, fmt
        self.needs = OutputNeeds(fmt=fmt if is_text(fmt) else None, cigars=has_cigars(fmt))

    def open(
        self, file: BinaryIO, path: str | None
    ) -> AbstractContextManager[Callable[[Batch | bytes], object]]:
        """Return a context with a function that writes rows; `path` names the file."""
        return open_table(file, self._fmt, compression_of(path), self._job.signatures)


def write_matches(job: ScanJob, path: str | None, fmt: str) -> None:
    """Run the job and write its rows, compressed where the suffix of the path says so.

    path  None and "-": standard output
    fmt   a format of `multigpu.formats.tables.writers`; text is rendered by the workers

    Raises UsageError and InputError where SAM and BAM cannot have these samples.
    """
    kind = SamOutput if split_format(fmt)[0].name in SAM_FORMATS else TableOutput
    output = kind(job, fmt)
    with atomic_output(path) as file, output.open(file, path) as write:
        for rows in job.rows(output.needs):
            begin = now()
            write(rows)
            job.emit(Event("written", facts={"begin": begin}))
