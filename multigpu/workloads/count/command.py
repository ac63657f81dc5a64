"""`multigpu count`."""

from typing import TYPE_CHECKING

from multigpu.formats.storage.suffixes import check_table
from multigpu.run.command import Reporting, Summary, command_of, keep_inputs, number_of
from multigpu.run.options import RunOptions
from multigpu.run.values import texts_of
from multigpu.workloads.count.options import CountOutput
from multigpu.workloads.count.request import CountRequest

if TYPE_CHECKING:
    from multigpu.formats.tables.counts import Counts
    from multigpu.workloads.count.job import CountJob


@command_of(
    example="multigpu count *.bam --window 25kb -o counts.parquet", without=(RunOptions, Summary)
)
def command(request: CountRequest, out: CountOutput, reporting: Reporting) -> None:
    """Count the reads of ALIGNMENTS in windows or regions.

    ALIGNMENTS are BAM or CRAM files, one a sample, or directories, lists and sample sheets of them.

    OUT is Parquet where its suffix is .parquet or .pq, else TSV, compressed for .gz and .zst. The
    columns are chrom, start, end (0-based, half open) and the samples. `multigpu cnv` takes it.
    """
    from multigpu.formats.storage.sources import ALIGNMENTS
    from multigpu.formats.tables.counts_files import write_counts
    from multigpu.workloads.count.job import CountJob

    output, given = out.output, texts_of(request.files, "files")
    outputs = reporting.check_outputs(output)
    keep_inputs(given, *outputs)
    check_table(output)
    options, paths = request.options, request.paths
    inputs = [*given, *paths, *([str(options.regions)] if options.regions else [])]
    inputs += [f"{path}{suffix}" for path in paths for suffix in (".bai", ".csi", ".crai")]
    keep_inputs(inputs, *outputs, given=given, kind=ALIGNMENTS)
    job = CountJob(paths, options, request.run)
    with reporting.notes():
        counts = count_alignments(reporting, job, output)
    write_counts(output, counts)
    reporting.say(*(f"note: {note}" for note in counts.notes))
    samples = number_of(len(counts.samples), "sample")
    outcome = f"{number_of(int(counts.values.sum()), 'read')} of {samples}"
    reporting.say_outcome(f"{outcome} in {number_of(len(counts.regions), 'region')}", output)


def count_alignments(reporting: Reporting, job: "CountJob", output: str | None = "") -> "Counts":
    """Return the counts of a job, with progress."""
    with reporting.watch(job, "count", lambda: f"{job.reads:,} reads", output):
        return job.counts()
