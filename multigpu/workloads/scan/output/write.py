"""All outputs of a scan, written in one pass."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from multigpu.cluster.engine.events import Event, now
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.output.row_sink import RowSink


def write_outputs(job: ScanJob, sinks: Sequence[RowSink[Any]]) -> None:
    """Run the job and write all of its outputs; each has its name when all are complete.

    Raises what the job raises, and InputError for samples that an output cannot have.
    """
    with ExitStack() as stack:
        writes = [stack.enter_context(sink.open()) for sink in sinks]
        for payloads, first in job.payloads(sinks):
            begin = now()
            for write, payload in zip(writes, payloads, strict=True):
                write(payload, first)
            job.emit(Event("written", details={"begin": begin}))
