"""Rows of a scan as they are, for Python."""

from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.sink import Findings


class BatchSink:
    """An output that is no file: the rows as columns."""

    name, needs = "columns", frozenset({"sample"})

    def collect(self, found: Findings) -> Batch:
        return found.rows
