"""What every command that runs a job does around it."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from cluster.deploy import Coming, starting
from cluster.devices import Device
from cluster.output import check_output, failures_named, is_replaced
from cluster.worker import free_bytes
from multigpu.config import Lanes, RunOptions
from multigpu.errors import UsageError

if TYPE_CHECKING:
    from cluster.deploy import Deployment
    from multigpu.job import Job

logger = logging.getLogger(__name__)


def begun(
    stack: ExitStack,
    running: RunOptions,
    values: dict[str, Any],
    lanes: Lanes,
    prepare: Callable[[str | None], object] = free_bytes,
    here_too: bool = False,
) -> tuple[tuple[Device, ...], Coming]:
    """The devices, and their workers, which may start while the input is read: see `starting`."""
    from multigpu.job import deployment

    if values["quiet"]:
        for layer in ("multigpu", "cluster", "kernels"):
            logging.getLogger(layer).setLevel(logging.ERROR)
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
    from multigpu.progress import Progress
    from multigpu.watch import logged, traced

    with ExitStack() as stack:
        for listener in (
            stack.enter_context(logged(values["log_json"])),
            stack.enter_context(traced(values["trace"])),
            stack.enter_context(Progress(job, name, results)) if _shown(values) else None,
        ):
            if listener is not None:
                job.listeners.append(listener)
        yield


def _shown(values: dict[str, Any]) -> bool:
    """Whether progress is shown: when asked for, else on a terminal."""
    if values["quiet"] or values["progress"] is False:
        return False
    return values["progress"] is True or sys.stderr.isatty()


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
