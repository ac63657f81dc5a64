"""The Python function `multigpu.count`."""

from dataclasses import replace

from multigpu.errors import spelled
from multigpu.formats.tables.counts import Counts
from multigpu.run.declarations import function_of
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.request import CountRequest


@function_of(CountRequest)
def count(request: CountRequest) -> Counts:
    """Return the number of reads of BAM or CRAM files in windows or regions.

    {options}

    Raises UsageError and InputError for what is wrong with options and files.
    """
    counts = CountJob(request.paths, request.options, request.run, request.client).counts()
    return replace(counts, notes=tuple(map(spelled, counts.notes)))
