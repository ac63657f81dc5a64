"""`multigpu scan`."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from multigpu.cluster.engine.events import now
from multigpu.cluster.files import is_replaced, scratch_folder
from multigpu.run.command import (
    FILE,
    RUN,
    SUMMARY,
    WATCH,
    Reporting,
    check_outputs,
    file_option,
    keep_inputs,
    number_of,
    options,
    options_from,
    print_outcome,
    start_workers,
    watch,
)
from multigpu.run.options import RunOptions
from multigpu.run.summary import write_summary
from multigpu.workloads.scan.options import ScanOptions, scan_lanes

if TYPE_CHECKING:
    from multigpu.workloads.scan.inputs import ScanInputs

ARGUMENTS = "multigpu.arguments"  # where click keeps the arguments of a command for us


class OrderedCommand(click.Command):
    """A command that keeps its arguments and options in the order given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments before click sorts them."""
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)


def _bases_or_share(text: str) -> int | float:
    """Return a whole number of bases, or, where there is a decimal point, a share."""
    try:
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a number of bases, e.g. 2, nor a share, e.g. 0.1"
        ) from None


SCAN = (
    click.argument("samples", nargs=-1, type=FILE),
    file_option(
        "--signatures", "-s", multiple=True,
        text="FASTA file with signatures; may be given several times.",
    ),
    click.option(
        "--hits", type=click.Choice(["first", "best", "all"]), default="first", show_default=True,
        help="Matches to report of each sample and signature: the first (lowest start), the best"
        " (fewest errors), or all.",
    ),
    click.option(
        "--strand", type=click.Choice(["forward", "both"]), default="forward", show_default=True,
        help="Search the signatures only, or their reverse complements too.",
    ),
    click.option(
        "--sample-n", type=click.Choice(["match", "mismatch"]), default="match",
        show_default=True, help="Whether ambiguous bases of samples may match others.",
    ),
    click.option(
        "--min-score", type=float, metavar="S",
        help="Drop rows with a lower score.  [default: keep all]",
    ),
    click.option(
        "--phred-offset", type=click.Choice(["33", "64"]), default="33", show_default=True,
        help="Phred offset of the quality characters: 33, or 64 for old Illumina files.",
    ),
    click.option(
        "--max-ambiguous", type=_bases_or_share, metavar="K",
        help="Most ambiguous sample bases of a match, e.g. 2, or a share of its length, e.g. 0.1."
        "  [default: no limit]",
    ),
    click.option(
        "--max-mismatches", type=_bases_or_share, metavar="K",
        help="Allow up to K mismatches (substitutions), e.g. 2, or a share of the signature's"
        " length, e.g. 0.05.  [default: 0]",
    ),
    click.option(
        "--max-edits", type=_bases_or_share, metavar="K",
        help="Allow up to K substitutions, insertions and deletions, e.g. 2, or a share of the"
        " signature's length, e.g. 0.05.  [default: 0]",
    ),
    click.option(
        "--exact-prefix", type=int, default=0, metavar="N",
        help="Bases at the start of each signature that must match exactly.  [default: 0]",
    ),
    click.option(
        "--exact-suffix", type=int, default=0, metavar="N",
        help="Bases at the end of each signature that must match exactly.  [default: 0]",
    ),
)  # fmt: skip


def scan_options(values: Mapping[str, Any]) -> ScanOptions:
    """Return the options of a scan from the values of the options in SCAN."""
    return options_from(ScanOptions, {**values, "phred_offset": int(values["phred_offset"])})


@click.command(cls=OrderedCommand)
@options(SCAN)
@file_option(
    "-o",
    "--output",
    text="File for the rows; -: standard output.  [default: standard output]",
    metavar="OUT",
)
@click.option(
    "--format",
    "chosen",
    type=click.Choice(["tsv", "csv", "text", "bed", "jsonl", "parquet", "sam", "bam", "paf"]),
    help="Format of the rows; sam, bam and paf are alignments."
    "  [default: by the suffix of OUT, else tsv]",
)
@click.option(
    "--ambiguous",
    is_flag=True,
    help="Add a last column with the ambiguous sample bases of each match to TSV, CSV and BED, or"
    " a tag to SAM, BAM and PAF.",
)
@options(RUN, SUMMARY, WATCH)
def command(
    samples: tuple[str, ...],
    signatures: tuple[str, ...],
    output: str | None,
    chosen: str | None,
    ambiguous: bool,
    **values: Any,
) -> None:
    """Find which SIGNATURES occur where in which SAMPLES, with the mean quality of each match.

    SAMPLES are FASTQ or FASTA files, directories, quoted patterns, URLs or - for standard input,
    plain or compressed with gzip or zstd. Without any, a small built-in demo is scanned.
    """
    started = now()
    scanning, running = scan_options(values), options_from(RunOptions, values)
    reporting = options_from(Reporting, values)
    written = check_outputs(reporting, output)
    from multigpu.formats.storage.read_ahead import Streams

    with ExitStack() as stack:
        inputs = _inputs(stack, samples, signatures, reporting.quiet)
        streams = stack.enter_context(Streams())
        streams.begin(inputs.samples)
        lanes = scan_lanes(inputs.plain_bytes)
        workers = stack.enter_context(start_workers(running, reporting, lanes))
        # GPUs and streams start in threads of their own, while the rest of the program loads.
        from multigpu.cluster.engine.journal import journal_of
        from multigpu.formats.storage.sources import is_repeatable
        from multigpu.formats.tables.writers import format_of, with_columns
        from multigpu.workloads.scan.job import ScanJob
        from multigpu.workloads.scan.misplaced_signatures import refuse_strays
        from multigpu.workloads.scan.notes import notes_on_format
        from multigpu.workloads.scan.output import write_matches

        keep_inputs([*inputs.samples, *inputs.signatures], *written)
        fmt = format_of(output, chosen)
        kept = output and is_replaced(output) and all(map(is_repeatable, inputs.samples))
        job = ScanJob(
            inputs,
            scanning,
            running,
            streams,
            coming=workers,
            journal=journal_of(output) if output and kept else None,
        )
        arguments = click.get_current_context().meta[ARGUMENTS]
        refuse_strays(arguments, samples, job.sources, job.signatures)
        job.notes_before += notes_on_format(fmt, output, scanning, ambiguous)
        columns = list(scanning.error_columns)
        if ambiguous or scanning.max_ambiguous is not None:
            columns.append("ambiguous")

        def matches_found() -> str:
            return f"{job.stats.hits:,} matches"

        watched = watch(job, reporting, name="scan", results=matches_found, rows_to=output)
        with watched, job.keep_journal():
            write_matches(job, output, with_columns(fmt, columns))
            job.published = True
            if reporting.summary:
                write_summary(reporting.summary, job, output, fmt, started)
        records = number_of(job.stats.records, "sample")
        print_outcome(reporting, f"{number_of(job.stats.hits, 'match')} in {records}", output)


def _inputs(
    stack: ExitStack, samples: tuple[str, ...], signatures: tuple[str, ...], quiet: bool
) -> "ScanInputs":
    """Return the files of the command line, or those of the demo, which `stack` removes."""
    from multigpu.workloads.scan.inputs import expand_inputs

    if not samples and not signatures:
        from multigpu.workloads.scan.simulate import write_demo

        folder = stack.enter_context(scratch_folder())
        if not quiet:
            click.echo("multigpu: no samples given: scanning the built-in demo", err=True)
        sample_file, signature_file = write_demo(folder)
        samples, signatures = (str(sample_file),), (str(signature_file),)
    return expand_inputs(samples, signatures)
