"""Options that several commands share, declared once."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from multigpu.config import DEFAULT_CHUNK_BYTES, RunOptions, ScanOptions

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

SCAN = (
    click.argument("samples", nargs=-1),
    click.option(
        "--signatures", "-s", multiple=True, metavar="FILE",
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
)  # fmt: skip

RUN = (
    click.option(
        "--gpus", default="auto", show_default=True, metavar="WHICH",
        help="auto, all, none, or numbers and UUIDs: 0,1 or 0-3 or GPU-5a1f…",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="A running Dask scheduler to use."),
    click.option("--scheduler-file", metavar="FILE", help="The same by its file."),
    click.option(
        "--connect-timeout", type=float, default=30.0, show_default=True, metavar="SECONDS",
        help="How long the scheduler may take to answer.",
    ),
    click.option(
        "--memory-fraction", type=float, default=RunOptions.memory_fraction, show_default=True,
        help="The share of a device's free memory to use.",
    ),
    click.option(
        "--max-chunk-bytes", type=int, default=DEFAULT_CHUNK_BYTES, show_default=True,
        help="No chunk is larger.",
    ),
    click.option(
        "--threads", type=int, default=0, metavar="N",
        help="CPU threads, or chunks in hand per GPU; 0: as many as serve.",
    ),
    click.option(
        "--workers", "processes", type=int, default=0, metavar="N",
        help="Worker processes on this machine; 0: as few as possible.",
    ),
    click.option(
        "--mixed", is_flag=True, help="Let workers of a scheduler that have no GPU help the others."
    ),
    click.option(
        "--resume", is_flag=True,
        help="Go on with what an interrupted run has finished; else begin anew.",
    ),
    click.option(
        "--cpu-fallback/--no-cpu-fallback", default=True, show_default=True,
        help="The CPU does what does not fit on a GPU, or what a broken one leaves.",
    ),
    click.option(
        "--chunk-timeout", type=float, metavar="SECONDS",
        help="A chunk that takes longer is begun on another worker, too; else by the others.",
    ),
    click.option(
        "--worker-timeout", type=float, default=RunOptions.worker_timeout, show_default=True,
        metavar="SECONDS", help="How long to go on without any worker.",
    ),
    click.option(
        "--dashboard", is_flag=True, help="Serve Dask's status page, and say where."
    ),
)  # fmt: skip

WATCH = (
    click.option("--summary", metavar="FILE", help="Write what was done as JSON."),
    click.option("--log-json", metavar="FILE", help="Write every event as a line of JSON."),
    click.option("--trace", metavar="FILE", help="Write a timeline for Perfetto or Chrome."),
    click.option("--progress/--no-progress", default=None, help="Else on a terminal."),
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors."),
    click.option("--debug", is_flag=True, help="Show where an error comes from."),
)


def options(*groups: tuple[Any, ...]) -> Decorator:
    """All options of the groups, in their order in the help."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


def scan_options(values: dict[str, Any]) -> ScanOptions:
    return ScanOptions(
        values["hits"],
        values["strand"],
        values["sample_n"],
        values["min_score"],
        int(values["phred_offset"]),
    )


def run_options(values: dict[str, Any]) -> RunOptions:
    return RunOptions(**{field.name: values[field.name] for field in fields(RunOptions)})
