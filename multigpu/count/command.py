"""`multigpu count`."""

import logging
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from multigpu.run.command import CLUSTER, FILE, WATCH, Reporting, options, options_from
from multigpu.run.options import RunOptions

if TYPE_CHECKING:
    from multigpu.count.api import CountOptions

COUNT = (
    click.option(
        "--window", type=int, default=25_000, show_default=True, metavar="BASES",
        help="Count in windows of this width.  [R: WL]",
    ),
    click.option(
        "--chromosomes", metavar="NAME,…",
        help="Only these references, in this order; else all.  [R: refSeqNames]",
    ),
    click.option(
        "--regions", type=FILE, metavar="BED",
        help="Count in these regions instead of windows.  [R: GR]",
    ),
    click.option(
        "--sample-names", metavar="NAME,…",
        help="Else the files' names without suffix; @RG: the names (SM) in their read groups."
        "  [R: sampleNames]",
    ),
    click.option(
        "--min-mapq", type=int, default=1, show_default=True, metavar="Q",
        help="Lowest mapping quality that counts.  [R: min.mapq]",
    ),
    click.option(
        "--remove-duplicates", is_flag=True,
        help="Of reads with one position and strand the first.  [R: remove.dup]",
    ),
    click.option(
        "--read-width", type=int, default=1, show_default=True, metavar="BASES",
        help="Bases a read covers from its position on.  [R: read.width]",
    ),
    click.option(
        "--get-width", is_flag=True, help="It covers its own length instead.  [R: get.width]",
    ),
    click.option(
        "--stranded-start", is_flag=True,
        help="A reverse read covers its last bases.  [R: stranded.start]",
    ),
    click.option(
        "--rename", type=click.Choice(["none", "auto"]), default="none", show_default=True,
        help="auto: chromosome names that differ by `chr` are the same.",
    ),
    click.option(
        "--index/--no-index", default=True,
        help="Use indexes and make missing ones, or read files from begin to end.",
    ),
    click.option(
        "--counts-cache", "cache", type=FILE, metavar="DIR", help="Keep each sample's counts here.",
    ),
    click.option(
        "--compat", type=click.Choice(["none", "r"]), default="none", show_default=True,
        help="r: what R does where it is plainly wrong, for comparisons.",
    ),
)  # fmt: skip


@click.command()
@click.argument("files", nargs=-1, type=FILE, metavar="ALIGNMENTS...")
@options(COUNT)
@click.option(
    "-o", "--output", type=FILE, metavar="OUT", help="The table; - or none: standard output."
)
@options(CLUSTER, WATCH)
def command(**values: Any) -> None:
    """Count the reads of ALIGNMENTS in windows or regions.

    ALIGNMENTS are BAM or CRAM files, one a sample, or directories with them.

    OUT is Parquet where its suffix is .parquet or .pq, else TSV, compressed for .gz and .zst. The
    columns are chrom, start, end (0-based, half open) and the samples. `multigpu cnv` takes it.
    """
    from multigpu.count.api import CountJob
    from multigpu.formats.alignments.alignments import files_of
    from multigpu.formats.storage.suffixes import check_table
    from multigpu.formats.tables.counts import write_counts
    from multigpu.run import command as running
    from multigpu.run.command import check_outputs, keep_inputs, watch
    from multigpu.run.compiling import compilation_reported

    if values["quiet"]:
        logging.getLogger("multigpu").setLevel(logging.ERROR)
    output, regions = values["output"], values["regions"]
    reporting = Reporting.of(values)
    files = files_of(values["files"])
    keep_inputs([*files, *([regions] if regions else [])], *check_outputs(reporting, output))
    check_table(output)
    job = CountJob(files, count_options(values), options_from(RunOptions, values))
    with ExitStack() as stack:
        if not values["quiet"]:
            stack.enter_context(compilation_reported())
        results = partial(counted, job)
        stack.enter_context(watch(job, reporting, name="count", results=results, rows_to=output))
        counts = job.counts()
    write_counts(output, counts)
    if not values["quiet"]:
        for note in counts.notes:
            click.echo(f"multigpu: note: {note}", err=True)
    read, regions = running.number_of(job.reads, "read"), len(counts.regions)
    found = f"{read} of {running.number_of(len(counts.samples), 'sample')} in"
    running.print_outcome(reporting, f"{found} {running.number_of(regions, 'region')}", output)


def counted(job: Any) -> str:
    """What the progress says of results."""
    return f"{job.reads:,} reads"


def count_options(values: dict[str, Any]) -> "CountOptions":
    """From the values of the options in COUNT."""
    from multigpu.count.api import CountOptions
    from multigpu.kernels.counting.types import Counting

    counting = Counting(
        values["min_mapq"], values["remove_duplicates"], values["read_width"],
        values["get_width"], values["stranded_start"],
    )  # fmt: skip
    return CountOptions(
        values["window"], _listed(values["chromosomes"]), values["regions"],
        _listed(values["sample_names"]), counting, values["rename"], values["compat"] == "r",
        values["index"], values["cache"],
    )  # fmt: skip


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()
