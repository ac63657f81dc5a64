"""`multigpu scan`."""

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from multigpu.cluster.engine.events import Event, now
from multigpu.commands.options import (
    FILE,
    RUN,
    SCAN,
    SUMMARY,
    WATCH,
    options,
    run_options,
    scan_options,
)
from multigpu.commands.strays import KeepsOrder, refuse_strays
from multigpu.config import scan_lanes
from multigpu.errors import UsageError

logger = logging.getLogger(__name__)


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
        from multigpu.commands.running import (
            begun,
            conclude,
            keep_inputs,
            number_of,
            outputs,
            watched,
        )
        from multigpu.formats.storage.sources import expand, plain_bytes

        scanning, running = scan_options(values), run_options(values)
        output = values["output"]
        lanes = scan_lanes(plain_bytes(values["samples"]))
        devices, coming = begun(stack, running, values, lanes)
        from multigpu.api import ScanJob
        from multigpu.cluster.engine.journal import journal_of
        from multigpu.cluster.engine.output import is_replaced
        from multigpu.formats.tables.writers import format_of, with_ambiguous
        from multigpu.summary import write_summary

        written = outputs(values, output)
        samples, signatures = _inputs(stack, values)
        keep_inputs([*expand(samples), *signatures], *written)
        fmt = format_of(output, values["chosen"])
        job = ScanJob(
            samples, signatures, scanning, running, streams, lanes, devices=devices, coming=coming,
            journal=journal_of(output) if is_replaced(output) else None,
        )  # fmt: skip
        refuse_strays(samples, job.sources, job.signatures)
        shown = values["ambiguous"] or scanning.max_ambiguous is not None
        if values["ambiguous"] and fmt == "text":
            logger.warning("multigpu: --ambiguous has no effect: text has no columns")
        with watched(values, job, "scan", _matches), job.kept():
            _write(job, output, with_ambiguous(fmt) if shown else fmt)
            job.published = True
            if values["summary"]:
                write_summary(values["summary"], job, output, fmt, started)
        records = number_of(job.facts.records, "sample")
        conclude(values, f"{number_of(job.facts.hits, 'match')} in {records}", output)


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
            job.tell(Event("written", facts={"begin": begin}))


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
    from multigpu.demo import demo_files

    folder = stack.enter_context(scratch_folder())
    samples, signatures = demo_files(Path(folder))
    if not quiet:
        click.echo("multigpu: no samples given: scanning the built-in demo", err=True)
    return [str(samples)], [str(signatures)]
