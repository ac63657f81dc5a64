"""The command line of every job: options that all share, and what is done around a run."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Any, TextIO, get_type_hints

import click

from multigpu.cluster.deploy import start
from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.deploy.start import PendingWorkers
from multigpu.cluster.devices import memory
from multigpu.cluster.engine.output import (
    STDOUT,
    atomic_output,
    check_output,
    failures_named,
    is_replaced,
)
from multigpu.cluster.workers.worker import start_device
from multigpu.errors import UsageError, option, options_spelled, printable, spelled
from multigpu.run.compiling import compilation_reported
from multigpu.run.declarations import Declared, Options, declare, declared, flag
from multigpu.run.options import Lanes, RunOptions
from multigpu.run.trace import log_events, record_timeline
from multigpu.run.values import Anything, Choice, File, Kind, Number, Switch, TextPath, Whole

if TYPE_CHECKING:
    from multigpu.run.job import Job
    from multigpu.run.progress import Progress

logger = logging.getLogger(__name__)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

ARGUMENTS = "multigpu.arguments"  # where click keeps the arguments of a command for us
GROUPS = (
    "Input", "Search", "Model", "Normalization", "Calling", "Counting", "Output", "Devices",
    "Faults", "Reporting",
)  # fmt: skip

# ---- options ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Reporting(Options, group="Reporting"):
    """Files that a run writes, and lines that it shows, beside its output."""

    summary: TextPath | None = declare(None, "Write a summary of the run as JSON.")
    log_json: TextPath | None = declare(None, "Write every event as a line of JSON.")
    trace: TextPath | None = declare(None, "Write a timeline for Perfetto or Chrome.")
    progress: bool | None = declare(None, "Show the progress.", default="on a terminal")
    quiet: bool = declare(False, "Print errors only.", short="q")
    dry_run: bool = declare(False, "Show how the job would be cut into chunks, without running it.")
    json: bool = declare(False, f"With {option('dry_run')}: print JSON.")
    debug: bool = declare(False, "Print the traceback of an error.")


# A file or folder, as text: completed by the shell, checked by whoever opens it.
FILE = click.Path(readable=False)


def file_option(*names: str, text: str, metavar: str = "FILE", **more: Any) -> Decorator:
    """Return an option whose value is a file or folder; `text`: its help."""
    return click.option(*names, type=FILE, metavar=metavar, help=text, **more)


class Typed(click.ParamType):  # type: ignore[type-arg]  # not generic in old versions
    """Kind of value on the command line."""

    def __init__(self, kind: Kind, example: str = "") -> None:
        self.kind, self.example, self.name = kind, example, kind.metavar

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a text. Fails for a text that has none."""
        try:
            return self.kind.parse(value, self.example) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class TypedChoice(click.Choice):  # type: ignore[type-arg]
    """One of several values on the command line."""

    def __init__(self, kind: Choice) -> None:
        super().__init__(list(kind.texts))
        self.kind = kind

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a text. Fails for a text that has none."""
        return self.kind.parse(super().convert(value, param, ctx), "")


class GroupedOption(click.Option):
    """Option with the heading under which the help has it."""

    group = "Reporting"


class GroupedCommand(click.Command):
    """Command whose help has the options in groups.

    declared  its options and arguments
    """

    declared: list[Declared]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments before click sorts them."""
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in GROUPS:
            records = [
                record
                for each in self.get_params(ctx)
                if isinstance(each, click.Option)
                and getattr(each, "group", "Reporting") == group
                and (record := each.get_help_record(ctx))
            ]
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)


def command_of(
    *, example: str, without: tuple[type, ...] = ()
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command of a function of option objects.

    example  a command line, at the end of the help
    without  classes whose own options the command does not have

    Each parameter of the function is annotated with a class of options. The docstring is the help.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        kinds = [hint for name, hint in get_type_hints(function).items() if name != "return"]
        has = {kind: [x for x in declared(kind) if _is_offered(x, without)] for kind in kinds}

        def callback(**values: Any) -> Any:
            context = click.get_current_context()
            for each in [] if values["dry_run"] else context.command.params:
                if each.name in outputs and values[each.name] is None:
                    raise click.MissingParameter(ctx=context, param=each)
            return function(*(_options(kind, has[kind], values) for kind in kinds))

        outputs = [x.name for kind in kinds for x in has[kind] if _is_output(x)]
        with options_spelled(flag):
            params = [_parameter(each) for kind in kinds for each in has[kind]]
        command = GroupedCommand(
            name=None,
            params=params,
            callback=callback,
            help=function.__doc__,
            epilog=f"Example: {example}",
        )
        command.declared = [each for kind in kinds for each in has[kind]]
        return command

    return decorate


def arguments() -> tuple[str, ...]:
    """Return the arguments of the command that runs, in their order."""
    found: tuple[str, ...] = click.get_current_context().meta[ARGUMENTS]
    return found


def _is_offered(each: Declared, without: tuple[type, ...]) -> bool:
    return each.option.only != "Python" and each.owner not in without


def _is_output(each: Declared) -> bool:
    """Return whether a run needs an option that `--dry-run` does without."""
    return each.option.required and each.group == "Output"


def _options(kind: type[Options], has: list[Declared], values: Mapping[str, Any]) -> Options:
    """Return the options of a class; click has None, or no values, for what was not given."""
    given = {}
    for each in has:
        value = values[each.name]
        if value not in (None, ()) or each.default is MISSING:
            given[each.name] = value
    return kind.from_given(given)


def _parameter(each: Declared) -> click.Parameter:
    """Return a declared option as click has it; its value is None where it is not given."""
    this = each.option
    if this.argument:
        return click.Argument(
            [each.name], nargs=-1, type=FILE, required=this.required, metavar=this.metavar or None
        )
    settings: dict[str, Any] = {"type": Typed(each.kind, f"{each.flag} {this.example}")}
    if isinstance(each.kind, Switch):
        settings = {"is_flag": True}
    elif isinstance(each.kind, Choice):
        settings = {"type": TypedChoice(each.kind)}
    elif isinstance(each.kind, File | Anything):
        settings = {"type": FILE}
    elif type(each.kind) in (Whole, Number):
        settings = {"type": int if isinstance(each.kind, Whole) else float}
    if not isinstance(each.kind, Choice):
        settings["metavar"] = each.metavar
    both = isinstance(each.kind, Switch) and each.default is not False
    names = [each.name, *([f"-{this.short}"] if this.short else [])]
    found = GroupedOption(
        [*names, f"{each.flag}/--no-{each.flag[2:]}" if both else each.flag],
        default=None,
        multiple=this.many,
        required=this.required and not _is_output(each),
        help=spelled(each.description),
        **settings,
    )
    found.group = each.group
    return found


# ---- around a run -----------------------------------------------------------------------------


@contextmanager
def start_workers(
    run: RunOptions,
    reporting: Reporting,
    lanes: Lanes,
    *,
    prepare: Callable[[str | None], object] = start_device,
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
            logger.warning("multigpu: %s", spelled(problem))
        yield stack.enter_context(start.start_workers(where, prepare))


def _without_effect(run: RunOptions, where: Deployment) -> Iterator[str]:
    """Yield a sentence for each option that changes nothing where the job runs."""
    if run.dashboard and (where.remote or where.in_process):
        cure = f"give {option('workers')} 1 or more"
        cure = "the scheduler serves its own" if where.remote else cure
        why = "only worker processes of this machine have one"
        yield f"{option('dashboard')} has no effect: {why}; {cure}"
    if run.mixed and not where.remote:
        either = f"{option('scheduler')} or {option('scheduler_file')}"
        yield f"{option('mixed')} has no effect without {either}"
    if run.workers and where.remote:
        yield f"{option('workers')} has no effect: the scheduler has its own workers"


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
            "multigpu: %s has no effect: a run that reads a pipe or writes to standard output"
            " cannot be continued",
            flag("resume"),
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
