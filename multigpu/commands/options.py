"""Options that several commands share, declared once."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click
from click.shell_completion import CompletionItem

from multigpu.config import PRECISION, DockOptions, RunOptions, ScanOptions

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _bases_or_share(text: str) -> int | float:
    """A type of options: a whole number, or with a decimal point a share below 1."""
    try:
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither a number of bases, e.g. 2, nor a share, e.g. 0.1"
        ) from None


class FileName(click.ParamType[str]):
    """A file or folder, as text: completed by the shell, checked by whoever opens it."""

    name = "path"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


FILE = FileName()

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


def _numbers(form: str, example: str) -> Callable[[str], tuple[float, ...]]:
    """A type of options: numbers separated by commas, as many as the form has names."""

    def convert(text: str) -> tuple[float, ...]:
        try:
            numbers = tuple(float(word) for word in text.split(","))
        except ValueError:
            numbers = ()
        if len(numbers) != len(form.split(",")):
            raise click.BadParameter(f"expected {form}, e.g. {example}; got {text!r}")
        return numbers

    return convert


DOCK = (
    click.argument("ligands", nargs=-1, required=True, type=FILE),
    click.option(
        "--pocket", type=FILE, required=True, metavar="FILE",
        help="AutoGrid's .maps.fld, OpenDX, MRC/CCP4, or .npy and .npz of NumPy.",
    ),
    click.option(
        "--origin", type=_numbers("X,Y,Z", "--origin -12.5,4,30.25"), metavar="X,Y,Z",
        help="Of a NumPy grid, Å.",
    ),
    click.option("--spacing", type=float, metavar="S", help="Of a NumPy grid, Å."),
    click.option(
        "--precision", type=float, show_default=f"{PRECISION:g}", metavar="P",
        help="Degrees from one angle to the next; all three angles run through 360.",
    ),
    click.option("--rotations", type=int, metavar="N", help="N rotations, spread evenly, instead."),
    click.option(
        "--rotation-file", type=FILE, metavar="FILE",
        help="Quaternions w x y z, one a line, instead.",
    ),
    click.option(
        "--center", type=_numbers("X,Y,Z", "--center 15.2,53.9,16.9"), metavar="X,Y,Z",
        help="Where the ligands' centroids go; else they stay where they are.",
    ),
    click.option(
        "--translations", type=_numbers("R,STEP", "--translations 2,0.5"), metavar="R,STEP",
        help="Also try all shifts by steps of STEP Å, up to R Å along each axis.",
    ),
    click.option(
        "--interpolation", type=click.Choice(["linear", "nearest"]), default="linear",
        show_default=True, help="Between the points of the grid.",
    ),
    click.option(
        "--outside", type=click.Choice(["clamp", "zero", "penalty"]),
        show_default="penalty for AutoGrid, else clamp",
        help="Atoms outside of the grid score as at its border, nothing, or AutoDock's penalty.",
    ),
    click.option("--top", type=int, default=1, show_default=True, metavar="K",
                 help="Poses of each ligand."),
    click.option(
        "--min-rmsd", type=float, default=DockOptions.min_rmsd, show_default=True, metavar="D",
        help="Å that these are apart, at least.",
    ),
    click.option(
        "--on-error", type=click.Choice(["skip", "stop"]), default="skip", show_default=True,
        help="What to do about a ligand that cannot be docked.",
    ),
    click.option(
        "--allow-flat", is_flag=True,
        help="Dock ligands drawn in two dimensions as they are; else they are skipped.",
    ),
)  # fmt: skip

CLUSTER = (
    click.option("--scheduler", metavar="ADDRESS", help="A running Dask scheduler to use."),
    click.option("--scheduler-file", type=FILE, metavar="FILE", help="The same by its file."),
    click.option(
        "--connect-timeout", type=float, default=30.0, show_default=True, metavar="SECONDS",
        help="How long the scheduler may take to answer.",
    ),
    click.option(
        "--max-chunk-bytes", type=int, metavar="N",
        help="No chunk is larger; else as serves: 32 MB to 256 MiB.",
    ),
    click.option(
        "--threads", type=int, default=0, metavar="N",
        help="CPU threads, or chunks in hand per GPU; 0: as many as serve.",
    ),
    click.option(
        "--workers", "processes", type=int, default=0, metavar="N",
        help="Worker processes on this machine, which do all work; 0: as few as possible.",
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
    click.option(
        "--mixed", is_flag=True, help="Let workers of a scheduler that have no GPU help the others."
    ),
    click.option(
        "--cpu-fallback/--no-cpu-fallback", default=True, show_default=True,
        help="The CPU does what does not fit on a GPU, or what a broken one leaves.",
    ),
    click.option(
        "--resume", is_flag=True,
        help="Go on with what an interrupted run has finished; else begin anew.",
    ),
)  # fmt: skip

SUMMARY = (
    click.option("--summary", type=FILE, metavar="FILE", help="Write what was done as JSON."),
)

WATCH = (
    click.option(
        "--log-json", type=FILE, metavar="FILE", help="Write every event as a line of JSON."
    ),
    click.option(
        "--trace", type=FILE, metavar="FILE", help="Write a timeline for Perfetto or Chrome."
    ),
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
        values["max_ambiguous"],
    )


def dock_options(values: dict[str, Any]) -> DockOptions:
    return DockOptions(**{field.name: values[field.name] for field in fields(DockOptions)})


def run_options(values: dict[str, Any]) -> RunOptions:
    """Those that the command has; the others as they are by default."""
    names = [field.name for field in fields(RunOptions)]
    return RunOptions(**{name: values[name] for name in names if name in values})
