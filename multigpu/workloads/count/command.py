"""`multigpu count`."""

import logging
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from multigpu.formats.storage.suffixes import check_table
from multigpu.run.command import (
    Reporting,
    check_outputs,
    command_of,
    keep_inputs,
    number_of,
    print_outcome,
    say,
    watch,
)
from multigpu.run.compiling import compilation_reported
from multigpu.run.options import RunOptions
from multigpu.run.values import texts_of
from multigpu.workloads.count.options import CountOutput
from multigpu.workloads.count.request import CountRequest

if TYPE_CHECKING:
    from multigpu.workloads.count.job import CountJob


@command_of(example="multigpu count *.bam --window 25kb -o counts.parquet", without=(RunOptions,))
def command(request: CountRequest, out: CountOutput, reporting: Reporting) -> None:
    """Count the reads of ALIGNMENTS in windows or regions.

    ALIGNMENTS are BAM or CRAM files, one a sample, or directories with them.

    OUT is Parquet where its suffix is .parquet or .pq, else TSV, compressed for .gz and .zst. The
    columns are chrom, start, end (0-based, half open) and the samples. `multigpu cnv` takes it.
    """
    if reporting.dry_run:
        from multigpu.workloads.count.dry_run import show_plan

        show_plan(request, reporting.json)
        return
    from multigpu.formats.alignments.files import files_of
    from multigpu.formats.tables.counts import write_counts
    from multigpu.workloads.count.job import CountJob

    options, output = request.options, out.output
    if reporting.quiet:
        logging.getLogger("multigpu").setLevel(logging.ERROR)
    paths = files_of(texts_of(request.files, "files"))
    inputs = [*paths, *([str(options.regions)] if options.regions else [])]
    keep_inputs(inputs, *check_outputs(reporting, output))
    check_table(output)
    job = CountJob(paths, options, request.run)
    with ExitStack() as stack:
        if not reporting.quiet:
            stack.enter_context(compilation_reported())
        found = partial(reads_found, job)
        stack.enter_context(watch(job, reporting, name="count", results=found, rows_to=output))
        counts = job.counts()
    write_counts(output, counts)
    if not reporting.quiet:
        for note in counts.notes:
            say(f"note: {note}")
    samples = number_of(len(counts.samples), "sample")
    outcome = f"{number_of(int(counts.values.sum()), 'read')} of {samples}"
    print_outcome(reporting, f"{outcome} in {number_of(len(counts.regions), 'region')}", output)


def reads_found(job: "CountJob") -> str:
    """Return the results so far in words, for the progress."""
    return f"{job.reads:,} reads"
