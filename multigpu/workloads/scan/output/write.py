"""All outputs of a scan, written in one pass."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol, TypeVar

from multigpu.cluster.engine.events import Event, now
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.output.row_sink import Write
from multigpu.workloads.scan.sink import Sink

T = TypeVar("T")


class FileSink(Sink[T], Protocol):
    """Output that is written to files."""

    def open(self, files: ExitStack) -> AbstractContextManager[Write[T]]:
        """Yield the function that writes payloads; what is written is complete when it has ended.

        files  gets the files: they have their names, all outputs of a run together, when it ends
        """


def write_outputs(job: ScanJob, sinks: Sequence[FileSink[Any]]) -> None:
    """Run the job and write all of its outputs; each has its name when all are complete.

    Raises what the job raises, and InputError for samples that an output cannot have.
    """
    with ExitStack() as files, ExitStack() as contents:
        writes = [contents.enter_context(sink.open(files)) for sink in sinks]
        for payloads, first in job.payloads(sinks):
            begin = now()
            for write, payload in zip(writes, payloads, strict=True):
                write(payload, first)
            job.emit(Event("written", details={"begin": begin}))
