"""`multigpu count`."""

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from multigpu.formats.storage.suffixes import check_table
from multigpu.run.command import (
    BASES,
    CLUSTER,
    FILE,
    WATCH,
    Reporting,
    check_outputs,
    errors_of_options,
    keep_inputs,
    number_of,
    options,
    options_from,
    print_outcome,
    say,
    watch,
)
from multigpu.run.compiling import compilation_reported
from multigpu.run.options import RunOptions

if TYPE_CHECKING:
    from multigpu.workloads.count.job import CountJob
    from multigpu.workloads.count.options import CountOptions

COUNT = (
    click.option(
        "--window", type=BASES, default=25_000, show_default=True, metavar="BASES",
        help="Width of the windows to count in, in bases, or as 25kb.  [R: WL]",
    ),
    click.option(
        "--chromosomes", metavar="NAME,…",
        help="References to count in, in this order.  [default: all]  [R: refSeqNames]",
    ),
    click.option(
        "--regions", type=FILE, metavar="BED",
        help="BED file with regions to count in, instead of windows.  [R: GR]",
    ),
    click.option(
        "--sample-names", metavar="NAME,…",
        help="Names of the samples, one a file; @RG: the names (SM) in the files' read groups."
        "  [default: the files' names without suffix]  [R: sampleNames]",
    ),
    click.option(
        "--min-mapq", type=int, default=1, show_default=True, metavar="Q",
        help="Lowest mapping quality of a read that counts, 0 to 255.  [R: min.mapq]",
    ),
    click.option(
        "--remove-duplicates", is_flag=True,
        help="Count only the first of the reads with one position and strand.  [R: remove.dup]",
    ),
    click.option(
        "--read-width", type=BASES, default=1, show_default=True, metavar="BASES",
        help="Bases that a read covers, from its position on.  [R: read.width]",
    ),
    click.option(
        "--get-width", is_flag=True,
        help="Let a read cover its own length instead of --read-width.  [R: get.width]",
    ),
    click.option(
        "--stranded-start", is_flag=True,
        help="Let a reverse read cover the last bases of its length.  [R: stranded.start]",
    ),
    click.option(
        "--rename", type=click.Choice(["none", "auto"]), default="none", show_default=True,
        help="auto: treat chromosome names that differ by `chr` as the same.",
    ),
    click.option(
        "--index/--no-index", default=True,
        help="Use indexes and make missing ones, or read every file from start to end."
        "  [default: --index]",
    ),
    click.option(
        "--counts-cache", "cache", type=FILE, metavar="DIR",
        help="Folder that keeps the counts of each sample for later runs.",
    ),
    click.option(
        "--compat", type=click.Choice(["none", "r"]), default="none", show_default=True,
        help="r: repeat the errors of R, for comparisons with it.",
    ),
)  # fmt: skip


@click.command()
@click.argument("files", nargs=-1, type=FILE, metavar="ALIGNMENTS...")
@options(COUNT)
@click.option(
    "-o", "--output", type=FILE, metavar="OUT",
    help="File for the table; -: standard output.  [default: standard output]",
)  # fmt: skip
@options(CLUSTER, WATCH)
def command(files: tuple[str, ...], output: str | None, **values: Any) -> None:
    """Count the reads of ALIGNMENTS in windows or regions.

    ALIGNMENTS are BAM or CRAM files, one a sample, or directories with them.

    OUT is Parquet where its suffix is .parquet or .pq, else TSV, compressed for .gz and .zst. The
    columns are chrom, start, end (0-based, half open) and the samples. `multigpu cnv` takes it.
    """
    from multigpu.formats.alignments.files import files_of
    from multigpu.formats.tables.counts import write_counts
    from multigpu.workloads.count.job import CountJob

    reporting, regions = options_from(Reporting, values), values["regions"]
    if reporting.quiet:
        logging.getLogger("multigpu").setLevel(logging.ERROR)
    paths = files_of(files)
    inputs = [*paths, *([regions] if regions else [])]
    keep_inputs(inputs, *check_outputs(reporting, output))
    check_table(output)
    job = CountJob(paths, count_options(values), options_from(RunOptions, values))
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


def count_options(values: Mapping[str, Any]) -> "CountOptions":
    """Return the options of a count from the values of the options in COUNT."""
    from multigpu.workloads.count.options import CountOptions

    names = CountOptions().parameters().keys() - {"compat_r"}
    given = {name: values[name] for name in names}
    for name in ("chromosomes", "sample_names"):
        given[name] = given[name] or ()
    with errors_of_options(names):
        return CountOptions.of(**given, compat_r=values["compat"] == "r")
