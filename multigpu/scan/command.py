"""`multigpu scan`."""

import logging
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click

from multigpu.cluster.engine.events import Event, now
from multigpu.errors import UsageError
from multigpu.run.command import FILE, RUN, SUMMARY, WATCH, Reporting, options, options_from
from multigpu.run.options import RunOptions
from multigpu.scan.options import ScanOptions, scan_lanes
from multigpu.scan.strays import KeepsOrder, refuse_strays

logger = logging.getLogger(__name__)


def _bases_or_share(text: str) -> int | float:
    """A type of options: a whole number, or with a decimal point a share below 1."""
    try:
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a number of bases, e.g. 2, nor a share, e.g. 0.1"
        ) from None


SCAN = (
    click.argument("samples", nargs=-1, type=FILE),
    click.option(
        "--signatures", "-s", type=FILE, multiple=True, metavar="FILE",
        help="FASTA with the signatures; may be given several times.",
    ),
    click.option(
        "--hits", type=click.Choice(["first", "all"]), default="first", show_default=True,
        help="The lowest start of every sample and signature, or every occurrence.",
    ),
    click.option(
        "--strand", type=click.Choice(["forward", "both"]), default="forward", show_default=True,
        help="Also look for the reverse complements.",
    ),
    click.option(
        "--sample-n", type=click.Choice(["match", "mismatch"]), default="match",
        show_default=True, help="Whether ambiguous bases of samples may stand for others.",
    ),
    click.option("--min-score", type=float, metavar="S", help="Drop rows with a lower score."),
    click.option(
        "--phred-offset", type=click.Choice(["33", "64"]), default="33", show_default=True,
        help="The quality character that means 0.",
    ),
    click.option(
        "--max-ambiguous", type=_bases_or_share, metavar="K",
        help="Matches may have at most K ambiguous sample bases; 0.1: 10 % of their length.",
    ),
)  # fmt: skip


def scan_options(values: dict[str, Any]) -> ScanOptions:
    return ScanOptions(
        values["hits"],
        values["strand"],
        values["sample_n"],
        values["min_score"],
        int(values["phred_offset"]),
        values["max_ambiguous"],
    )


@click.command(cls=KeepsOrder)
@options(SCAN)
@click.option(
    "-o", "--output", type=FILE, metavar="OUT", help="The output file; - or none: standard output."
)
@click.option(
    "--format", "chosen", type=click.Choice(["tsv", "csv", "text", "bed", "jsonl", "parquet"]),
    help="Else by the suffix of OUT, else tsv.",
)  # fmt: skip
@click.option(
    "--ambiguous", is_flag=True,
    help="TSV, CSV and BED: a last column with the ambiguous sample bases of each match.",
)  # fmt: skip
@options(RUN, SUMMARY, WATCH)
def command(**values: Any) -> None:
    """Find which SIGNATURES occur where in which SAMPLES, and how sure that is.

    SAMPLES are FASTQ or FASTA files, directories, quoted patterns, URLs or - for standard input,
    plain or compressed with gzip or zstd. Without any, a small built-in demo is scanned.
    """
    started = now()
    from multigpu.formats.storage.ahead import Streams

    with ExitStack() as stack:
        streams = stack.enter_context(Streams())
        streams.begin(values["samples"])  # before all else is loaded
        from multigpu.formats.storage.sources import expand, plain_bytes
        from multigpu.run.command import (
            check_outputs,
            keep_inputs,
            number_of,
            print_outcome,
            start_workers,
            watch,
        )

        scanning, running = scan_options(values), options_from(RunOptions, values)
        reporting = Reporting.of(values)
        output = values["output"]
        lanes = scan_lanes(plain_bytes(values["samples"]))
        workers = stack.enter_context(start_workers(running, reporting, lanes))
        from multigpu.cluster.engine.journal import journal_of
        from multigpu.cluster.engine.output import is_replaced
        from multigpu.formats.tables.writers import format_of, with_ambiguous
        from multigpu.run.summary import write_summary
        from multigpu.scan.api import ScanJob

        written = check_outputs(reporting, output)
        samples, signatures = _inputs(stack, values)
        keep_inputs([*expand(samples), *signatures], *written)
        fmt = format_of(output, values["chosen"])
        job = ScanJob(
            samples, signatures, scanning, running, streams, lanes, devices=workers.devices,
            coming=workers.coming, journal=journal_of(output) if is_replaced(output) else None,
        )  # fmt: skip
        refuse_strays(samples, job.sources, job.signatures)
        shown = values["ambiguous"] or scanning.max_ambiguous is not None
        if values["ambiguous"] and fmt == "text":
            logger.warning("multigpu: --ambiguous has no effect: text has no columns")
        found = partial(_matches, job)
        with watch(job, reporting, name="scan", results=found, rows_to=output), job.keep_journal():
            _write(job, output, with_ambiguous(fmt) if shown else fmt)
            job.published = True
            if reporting.summary:
                write_summary(reporting.summary, job, output, fmt, started)
        records = number_of(job.facts.records, "sample")
        print_outcome(reporting, f"{number_of(job.facts.hits, 'match')} in {records}", output)


def _write(job: Any, output: str | None, fmt: str) -> None:
    from multigpu.cluster.engine.output import atomic_output
    from multigpu.formats.storage.compressed import compression_of
    from multigpu.formats.tables.writers import closed_after, open_sink

    names = job.signatures.names
    with (
        atomic_output(output) as file,
        closed_after(open_sink(file, fmt, compression_of(output), names)) as sink,
    ):
        for rows in job.rows(None if fmt == "parquet" else fmt):
            begin = now()
            sink.write(rows)
            job.emit(Event("written", facts={"begin": begin}))


def _matches(job: Any) -> str:
    """What the progress says of results."""
    return f"{job.facts.hits:,} matches"


def _inputs(stack: ExitStack, values: dict[str, Any]) -> tuple[list[str], list[str]]:
    samples, signatures = list(values["samples"]), list(values["signatures"])
    if not samples and not signatures:
        return _demo(stack, values["quiet"])
    if not samples:
        raise UsageError("no SAMPLES given")
    if not signatures:
        raise UsageError("no --signatures given")
    return samples, signatures


def _demo(stack: ExitStack, quiet: bool) -> tuple[list[str], list[str]]:
    from multigpu.cluster.engine.scratch import scratch_folder
    from multigpu.scan.demo import demo_files

    folder = stack.enter_context(scratch_folder())
    samples, signatures = demo_files(Path(folder))
    if not quiet:
        click.echo("multigpu: no samples given: scanning the built-in demo", err=True)
    return [str(samples)], [str(signatures)]
