"""What every command that runs a job does around it."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

from multigpu.cluster.deploy.start import PendingWorkers, start_workers
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.engine.output import STDOUT, check_output, failures_named, is_replaced
from multigpu.cluster.workers.worker import start_device
from multigpu.config import Lanes, RunOptions
from multigpu.errors import UsageError

if TYPE_CHECKING:
    from multigpu.cluster.deploy.deployment import Deployment
    from multigpu.job import Job
    from multigpu.progress import Progress

logger = logging.getLogger(__name__)


def begun(
    stack: ExitStack,
    running: RunOptions,
    values: dict[str, Any],
    lanes: Lanes,
    prepare: Callable[[str | None], object] = start_device,
    here_too: bool = False,
) -> tuple[tuple[Device, ...], PendingWorkers]:
    """Return the devices and their workers, which start at once: see `start_workers`."""
    from multigpu.compiling import compilation_reported
    from multigpu.job import deployment

    if values["quiet"]:
        logging.getLogger("multigpu").setLevel(logging.ERROR)
    else:
        stack.enter_context(compilation_reported())
    devices = running.devices()
    where = deployment(running, devices, lanes)
    for problem in _without_effect(running, where):
        logger.warning("multigpu: %s", problem)
    return devices, stack.enter_context(start_workers(where, prepare, here_too))


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
    from multigpu.watch import logged, traced

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
    from multigpu.progress import Progress

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
