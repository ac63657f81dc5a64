"""The command line of every job: options that all share, and what is done around a run."""

import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from multigpu.cluster.deploy import start
from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.deploy.start import PendingWorkers
from multigpu.cluster.devices import memory
from multigpu.cluster.files import (
    STDOUT,
    atomic_output,
    check_output,
    failures_named,
    is_replaced,
)
from multigpu.errors import UsageError, printable
from multigpu.run.compiling import compilation_reported
from multigpu.run.options import GpuLanes, RunOptions
from multigpu.run.trace import log_events, record_timeline

if TYPE_CHECKING:
    from multigpu.run.job import Job
    from multigpu.run.progress import Progress

logger = logging.getLogger(__name__)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Options = TypeVar("Options")


# ---- options ----------------------------------------------------------------------------------


# A file or folder, as text: completed by the shell, checked by whoever opens it.
FILE = click.Path(readable=False)


def file_option(*names: str, text: str, metavar: str = "FILE", **more: Any) -> Decorator:
    """Return an option whose value is a file or folder; `text`: its help."""
    return click.option(*names, type=FILE, metavar=metavar, help=text, **more)


class Size(click.ParamType):  # type: ignore[type-arg]  # not generic in old versions
    """Number of bases or bytes as users write it: 25000, 25k, 25kb, 1.5Mb; 64M, 64MiB, 64MB.

    k, M and G are powers of 1,000; for bytes of 1,024 where no B follows, and with an i anyhow.
    """

    LAYOUT = re.compile(r"(-?\d+(?:\.\d+)?) ?([kmg]?)(i?)(b|bp|)", re.IGNORECASE)

    def __init__(self, unit: str) -> None:
        self.name = unit

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number. Fails for other texts, and for parts of a base or byte."""
        size = Decimal("nan")
        if found := self.LAYOUT.fullmatch(str(value).strip()):
            number, prefix, binary, last = found.groups()
            base = 1024 if binary or (self.name == "bytes" and not last) else 1000
            size = Decimal(number) * base ** " kmg".index(prefix.lower() or " ")
        if size % 1 != 0:
            example = "64M" if self.name == "bytes" else "25kb"
            self.fail(f"{value!r} is no number of {self.name}: give one like 25000 or {example}")
        return int(size)


BASES, BYTES = Size("bases"), Size("bytes")

CLUSTER = (
    click.option("--scheduler", metavar="ADDRESS", help="Address of a running Dask scheduler."),
    file_option("--scheduler-file", text="File of a running Dask scheduler."),
    click.option(
        "--connect-timeout", type=float, default=30.0, show_default=True, metavar="SECONDS",
        help="Seconds to wait for the scheduler, or its file, to be there.",
    ),
    click.option(
        "--max-chunk-bytes", type=BYTES, metavar="N",
        help="Maximum chunk size in bytes, or as 64M.  [default: automatic, 1 to 256 MiB]",
    ),
    click.option(
        "--threads", type=int, default=0, metavar="N",
        help="CPU threads, or chunks in progress on each GPU; 0: automatic.  [default: 0]",
    ),
    click.option(
        "--workers", "processes", type=int, default=0, metavar="N",
        help="Worker processes on this machine; 0: automatic.  [default: 0]",
    ),
    click.option(
        "--chunk-timeout", type=float, metavar="SECONDS",
        help="Seconds after which a chunk is also started on another worker."
        "  [default: from the times of the other chunks]",
    ),
    click.option(
        "--worker-timeout", type=float, default=RunOptions.worker_timeout, show_default=True,
        metavar="SECONDS", help="Seconds to wait for a worker when none is left.",
    ),
    click.option(
        "--dashboard", is_flag=True, help="Serve Dask's status page and print its address."
    ),
)  # fmt: skip

RUN = (
    click.option(
        "--gpus", default="auto", show_default=True, metavar="WHICH",
        help="GPUs to use: auto, all, none, or numbers and UUIDs (0,1 or 0-3 or GPU-5a1f…).",
    ),
    click.option(
        "--memory-fraction", type=float, default=RunOptions.memory_fraction, show_default=True,
        help="Share of a device's free memory to use.",
    ),
    *CLUSTER,
    click.option(
        "--mixed", is_flag=True,
        help="Also use workers of a scheduler that have no GPU.",
    ),
    click.option(
        "--cpu-fallback/--no-cpu-fallback", default=True, show_default=True,
        help="Use the CPU for chunks that do not fit on a GPU, and when a GPU fails.",
    ),
    click.option(
        "--resume", is_flag=True,
        help="Continue an interrupted run.  [default: start over]",
    ),
)  # fmt: skip

SUMMARY = (file_option("--summary", text="Write a summary of the run as JSON."),)

WATCH = (
    file_option("--log-json", text="Write every event as a line of JSON."),
    file_option("--trace", text="Write a timeline for Perfetto or Chrome."),
    click.option(
        "--progress/--no-progress",
        default=None,
        help="Show the progress.  [default: on a terminal]",
    ),
    click.option("--quiet", "-q", is_flag=True, help="Print errors only."),
    click.option("--debug", is_flag=True, help="Print the traceback of an error."),
)


def options(*groups: tuple[Any, ...]) -> Decorator:
    """Return a decorator that adds all options of the groups, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


def options_from(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Return a dataclass with the values of its fields' names; the others have their defaults.

    Raises UsageError for a wrong value, with the name that it has on the command line.
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    with errors_of_options(names):
        return kind(**{name: values[name] for name in names if name in values})


@contextmanager
def errors_of_options(names: Collection[str]) -> Iterator[None]:
    """Raise a UsageError again with the names that parameters have on the command line."""
    try:
        yield
    except UsageError as error:
        words = str(error).split(" ")
        for i, word in enumerate(words):
            if word.rstrip(",") in names and (i == 0 or "_" in word):
                words[i] = f"--{word.replace('_', '-')}"
        raise UsageError(" ".join(words)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Files that a run writes, and lines that it shows, beside its output: SUMMARY and WATCH.

    progress: None: where standard error is a terminal
    """

    summary: str | None = None
    log_json: str | None = None
    trace: str | None = None
    progress: bool | None = None
    quiet: bool = False


# ---- around a run -----------------------------------------------------------------------------


@contextmanager
def start_workers(
    run: RunOptions,
    reporting: Reporting,
    lanes: GpuLanes,
) -> Iterator[PendingWorkers]:
    """Start the workers of a run, while the caller reads its input; see `cluster.deploy.start`."""
    from multigpu.run.job import deployment

    memory.spare_address_space()
    with ExitStack() as stack:
        if reporting.quiet:
            logging.getLogger("multigpu").setLevel(logging.ERROR)
        else:
            stack.enter_context(compilation_reported())
        where = deployment(run, run.devices(), lanes)
        for problem in _without_effect(run, where):
            logger.warning("multigpu: %s", problem)
        yield stack.enter_context(start.start_workers(where))


def _without_effect(run: RunOptions, where: Deployment) -> Iterator[str]:
    """Yield a sentence for each option that changes nothing where the job runs."""
    if run.dashboard and (where.remote or where.in_process):
        cure = "the scheduler serves its own" if where.remote else "give --workers 1 or more"
        yield f"--dashboard has no effect: only worker processes of this machine have one; {cure}"
    if run.mixed and not where.remote:
        yield "--mixed has no effect without --scheduler or --scheduler-file"
    if run.processes and where.remote:
        yield "--workers has no effect: the scheduler has its own workers"


@contextmanager
def watch(
    job: "Job",
    reporting: Reporting,
    *,
    name: str,
    results: Callable[[], str],
    rows_to: str | None = "",
) -> Iterator[None]:
    """Write the log and the timeline of a job, and show its progress, as `reporting` asks for.

    name     the command's, in the progress
    results  returns what the job has found so far, in words
    rows_to  the output file; None and "-": rows go to standard output
    """
    if job.run.resume and not job.keeps_journal:
        logger.warning(
            "multigpu: --resume has no effect: a run that reads a pipe or writes to standard output"
            " cannot be continued"
        )
    with ExitStack() as stack:
        if reporting.log_json is not None:
            job.listeners.append(stack.enter_context(log_events(reporting.log_json)))
        if reporting.trace is not None:
            job.listeners.append(stack.enter_context(record_timeline(reporting.trace)))
        if progress := _progress(job, reporting, name, results, rows_to):
            job.listeners.append(stack.enter_context(progress))
        yield


def _progress(
    job: "Job", reporting: Reporting, name: str, results: Callable[[], str], rows_to: str | None
) -> "Progress | None":
    """Return what shows the progress, where it is asked for; else on a terminal, but for rows.

    Where rows go to a terminal the drawn progress would stand within their lines.
    """
    rows_shown = rows_to in (None, *STDOUT) and _is_terminal(sys.stdout)
    drawable = _is_terminal(sys.stderr) and not rows_shown
    wanted = drawable if reporting.progress is None else reporting.progress
    if reporting.quiet or not wanted:
        return None
    from multigpu.run.progress import Progress

    return Progress(job, name, results, drawn=drawable)


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream, which is None where it is closed, is a terminal."""
    return stream is not None and stream.isatty()


def number_of(number: int, noun: str) -> str:
    """Return a number with its noun: 1 match, 1,234 matches."""
    plural = f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def print_outcome(reporting: Reporting, found: str, place: str | None) -> None:
    """Print one line on standard error: what a run found, and where it is; not with --quiet."""
    if not reporting.quiet:
        where = "standard output" if place in (None, *STDOUT) else place
        with suppress(OSError):  # nobody reads it any more
            say(f"{found}; written to {where}")


def say(text: str) -> None:
    """Print a line on standard error."""
    click.echo(f"multigpu: {printable(text)}", err=True)


def answer(lines: Iterable[str]) -> None:
    """Write lines to standard output, with their colours on a terminal only.

    Raises UsageError where standard output is closed or full, PipeClosed where nobody reads it.
    """
    with atomic_output(None) as out:
        text = "".join(f"{line}\n" for line in lines)
        shown = text if _is_terminal(sys.stdout) else click.unstyle(text)
        out.write(shown.encode(errors="surrogateescape"))


# ---- files ------------------------------------------------------------------------------------


def check_outputs(reporting: Reporting, *own: str | None) -> list[str | None]:
    """Return the files that a run writes: its own, the summary, the log and the timeline.

    Raises UsageError for one that cannot be written.
    """
    written = [*own, reporting.summary, reporting.log_json, reporting.trace]
    for path in written:
        check_output(path)
    return written


def keep_inputs(inputs: Iterable[str], *outputs: str | None) -> None:
    """Raise UsageError where an output would replace an input, or another output.

    inputs: taken only where an output is there before the run
    """
    places: list[tuple[str, str]] = []
    for path in filter(None, outputs):
        with failures_named(path, UsageError):
            if is_replaced(path):
                places.append((path, _place(path)))
    kept: set[str] = set()
    if any(os.path.lexists(place) for _, place in places):
        kept.update(map(_place, inputs))
    for path, place in places:
        if place in kept:
            raise UsageError(f"{path} is named twice: a run would replace it; give another output")
        kept.add(place)


def _place(path: str) -> str:
    """Return the path without links; problems with it are reported by who reads or writes it."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # the folder that we are in is gone; a zero byte
        return path
