"""Options that several commands share, declared once."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from multigpu.config import DEFAULT_CHUNK_BYTES, RunOptions, ScanOptions
from multigpu.errors import UsageError

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

CLUSTER = (
    click.option("--scheduler", metavar="ADDRESS", help="A running Dask scheduler to use."),
    click.option("--scheduler-file", metavar="FILE", help="The same by its file."),
    click.option(
        "--connect-timeout", type=float, default=30.0, show_default=True, metavar="SECONDS",
        help="How long the scheduler may take to answer.",
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
)  # fmt: skip

RUN = (
    click.option(
        "--gpus", default="auto", show_default=True, metavar="WHICH",
        help="auto, all, none, or numbers and UUIDs: 0,1 or 0-3 or GPU-5a1f…",
    ),
    click.option(
        "--memory-fraction", type=float, default=RunOptions.memory_fraction, show_default=True,
        help="The share of a device's free memory to use.",
    ),
    *CLUSTER,
)  # fmt: skip


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
    """Those that the command has; the others as they are by default."""
    names = [field.name for field in fields(RunOptions)]
    return RunOptions(**{name: values[name] for name in names if name in values})


def keep_inputs(inputs: Sequence[str], *outputs: str | None) -> None:
    """Raises UsageError where an output would replace an input, or another output."""
    kept = {str(Path(path).resolve()) for path in inputs}
    for path in outputs:
        if path is None or path == "-" or (Path(path).exists() and not Path(path).is_file()):
            continue  # nothing is replaced
        place = str(Path(path).resolve())
        if place in kept:
            raise UsageError(f"{path} is named twice: it would be replaced")
        kept.add(place)
