"""The command line of every job: options that all share, and what is done around a run."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.shell_completion import CompletionItem

from multigpu.cluster.deploy import Coming, starting
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.engine.output import STDOUT, check_output, failures_named, is_replaced
from multigpu.cluster.workers.worker import free_bytes
from multigpu.errors import UsageError
from multigpu.run.options import Lanes, RunOptions

if TYPE_CHECKING:
    from multigpu.cluster.deploy import Deployment
    from multigpu.run.job import Job
    from multigpu.run.progress import Progress

logger = logging.getLogger(__name__)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class FileName(click.ParamType[str]):
    """A file or folder, as text: completed by the shell, checked by whoever opens it."""

    name = "path"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


FILE = FileName()


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


def run_options(values: dict[str, Any]) -> RunOptions:
    """Those that the command has; the others as they are by default."""
    names = [field.name for field in fields(RunOptions)]
    return RunOptions(**{name: values[name] for name in names if name in values})


def begun(
    stack: ExitStack,
    running: RunOptions,
    values: dict[str, Any],
    lanes: Lanes,
    prepare: Callable[[str | None], object] = free_bytes,
    here_too: bool = False,
) -> tuple[tuple[Device, ...], Coming]:
    """The devices, and their workers, which may start while the input is read: see `starting`."""
    from multigpu.run.compiling import compilation_reported
    from multigpu.run.job import deployment

    if values["quiet"]:
        logging.getLogger("multigpu").setLevel(logging.ERROR)
    else:
        stack.enter_context(compilation_reported())
    devices = running.devices()
    where = deployment(running, devices, lanes)
    for problem in _without_effect(running, where):
        logger.warning("multigpu: %s", problem)
    return devices, stack.enter_context(starting(where, prepare, here_too))


def _without_effect(running: RunOptions, where: "Deployment") -> Iterator[str]:
    """Options that change nothing where the job runs."""
    if running.dashboard and not where.local_cluster:
        cure = "the scheduler serves its own" if where.remote else "give --workers 1 or more"
        yield f"--dashboard has no effect: only worker processes of this machine have one; {cure}"
    if running.mixed and not where.remote:
        yield "--mixed has no effect without --scheduler or --scheduler-file"
    if running.processes and where.remote:
        yield "--workers has no effect: the scheduler has its own workers"


@contextmanager
def watched(
    values: dict[str, Any], job: "Job", name: str, results: Callable[["Job"], str]
) -> Iterator[None]:
    """The log, the timeline and the progress of a job, as asked for."""
    if values.get("resume") and not job.keeps_journal:
        logger.warning(
            "multigpu: --resume has no effect: a run that reads a pipe or writes to standard output"
            " cannot be continued"
        )
    from multigpu.run.trace import logged, traced

    with ExitStack() as stack:
        for listener in (
            stack.enter_context(logged(values["log_json"])),
            stack.enter_context(traced(values["trace"])),
            stack.enter_context(progress)
            if (progress := _progress(values, job, name, results))
            else None,
        ):
            if listener is not None:
                job.listeners.append(listener)
        yield


def _progress(
    values: dict[str, Any], job: "Job", name: str, results: Callable[["Job"], str]
) -> "Progress | None":
    """Return what shows the progress, where it is asked for; else on a terminal, but for rows.

    Where rows go to a terminal the drawn progress would stand within their lines.
    """
    from multigpu.run.progress import Progress

    rows_shown = values.get("output") in (None, *STDOUT) and _is_terminal(sys.stdout)
    drawable = _is_terminal(sys.stderr) and not rows_shown
    wanted = drawable if values["progress"] is None else values["progress"]
    if values["quiet"] or not wanted:
        return None
    return Progress(job, name, results, drawn=drawable)


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream, which is None where it is closed, is a terminal."""
    return stream is not None and stream.isatty()


def number_of(number: int, noun: str) -> str:
    """Return a number with its noun: 1 match, 1,234 matches."""
    plural = f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def conclude(values: dict[str, Any], found: str, place: str | None) -> None:
    """Print one line on standard error: what a run found, and where it is; not with --quiet."""
    if not values["quiet"]:
        where = "standard output" if place in (None, *STDOUT) else place
        with suppress(OSError):  # nobody reads it any more
            click.echo(f"multigpu: {found}; written to {where}", err=True)


def outputs(values: dict[str, Any], *own: str | None) -> list[str | None]:
    """The files that a run writes: its own, the summary, the log and the timeline.

    Raises UsageError for one that cannot be written.
    """
    written = [*own, values.get("summary"), values["log_json"], values["trace"]]
    for path in written:
        check_output(path)
    return written


def keep_inputs(inputs: Iterable[str], *outputs: str | None) -> None:
    """Raises UsageError where an output would replace an input, or another output.

    inputs: are asked for only where an output is there before the run
    """
    kept: set[str] = set()
    looked = False
    for path in outputs:
        if path is None:
            continue
        with failures_named(path, UsageError):
            if not is_replaced(path):
                continue
        place = _place(path)
        if not looked and os.path.lexists(place):
            kept.update(map(_place, inputs))
            looked = True
        if place in kept:
            raise UsageError(f"{path} is named twice: it would be replaced")
        kept.add(place)


def _place(path: str) -> str:
    """Where it lies. What is wrong with it is told by who reads or writes it."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # the folder that we are in is gone; a zero byte
        return path
