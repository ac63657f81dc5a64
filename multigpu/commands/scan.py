"""`multigpu scan`."""

import logging
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from cluster import context
from multigpu.commands.options import RUN, SCAN, keep_inputs, options, run_options, scan_options
from multigpu.errors import UsageError


@click.command()
@options(SCAN)
@click.option("-o", "--output", metavar="OUT", help="The output file; - or none: standard output.")
@click.option(
    "--format", "chosen", type=click.Choice(["tsv", "text", "bed", "jsonl", "parquet"]),
    help="Else by the suffix of OUT, else tsv.",
)  # fmt: skip
@options(RUN)
@click.option("--summary", metavar="FILE", help="Write what was done as JSON.")
@click.option("--progress/--no-progress", default=None, help="Else on a terminal.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def command(**values: Any) -> None:
    """Find which SIGNATURES occur where in which SAMPLES, and how sure that is.

    SAMPLES are FASTQ or FASTA files, directories, quoted patterns, URLs or - for standard input,
    plain or compressed with gzip or zstd. Without any, a small built-in demo is scanned.
    """
    started = time.time()
    scanning, running = scan_options(values), run_options(values)
    if values["quiet"]:
        logging.getLogger("multigpu").setLevel(logging.ERROR)
    devices = running.devices()
    if len(devices) == 1 and not running.processes:
        threading.Thread(target=context.start, args=(devices[0].uuid,), daemon=True).start()
    from cluster.output import atomic_output, check_output
    from multigpu.io.compressed import compression_of
    from multigpu.io.writers import closed_after, format_of, open_sink
    from multigpu.progress import Progress
    from multigpu.summary import write_summary

    output = values["output"]
    fmt = format_of(output, values["chosen"])
    for path in (output, values["summary"]):
        check_output(path)
    with ExitStack() as stack:
        samples, signatures = list(values["samples"]), list(values["signatures"])
        if not samples and not signatures:
            samples, signatures = _demo(stack, values["quiet"])
        elif not samples:
            raise UsageError("no SAMPLES given")
        elif not signatures:
            raise UsageError("no --signatures given")
        from multigpu.api import ScanJob

        keep_inputs([*samples, *signatures], output, values["summary"])
        job = ScanJob(samples, signatures, scanning, running, devices=devices)
        shown = _shown(values)
        with atomic_output(output) as file, Progress(shown, job) as progress:
            names = job.signatures.names
            with closed_after(open_sink(file, fmt, compression_of(output), names)) as sink:
                for rows in job.rows(None if fmt == "parquet" else fmt):
                    sink.write(rows)
                    progress.update()
        if values["summary"]:
            write_summary(values["summary"], job, fmt, output, started)


def _shown(values: dict[str, Any]) -> bool:
    """Whether progress is shown: when asked for, else on a terminal."""
    if values["quiet"] or values["progress"] is False:
        return False
    return values["progress"] is True or sys.stderr.isatty()


def _demo(stack: ExitStack, quiet: bool) -> tuple[list[str], list[str]]:
    from multigpu.demo import demo_files

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="multigpu-demo-"))
    samples, signatures = demo_files(Path(folder))
    if not quiet:
        click.echo("multigpu: no samples given: scanning the built-in demo", err=True)
    return [str(samples)], [str(signatures)]
