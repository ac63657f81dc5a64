"""The command line of every job: options that all share, and what is done around a run."""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import MISSING, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO, get_type_hints

import click
from click.shell_completion import CompletionItem

from multigpu.cluster.deploy import start
from multigpu.cluster.deploy.start import PendingWorkers
from multigpu.cluster.devices import memory
from multigpu.cluster.engine.events import Event, Listener, now
from multigpu.cluster.files import (
    STDOUT,
    atomic_output,
    check_output,
    failures_named,
    is_replaced,
    open_unbuffered,
)
from multigpu.errors import UsageError, option, options_spelled, printable, spelled
from multigpu.kernels.compiled import caches
from multigpu.run import values
from multigpu.run.declarations import Option, Options, declare, declared, flag
from multigpu.run.options import GpuLanes, RunOptions
from multigpu.run.values import TextPath

if TYPE_CHECKING:
    from multigpu.formats.storage.sources import FileKind
    from multigpu.run.job import Job

logger = logging.getLogger(__name__)

GROUPS = (
    "Data", "Input", "Pocket", "Search", "Model", "Regions", "Normalization", "Calling", "Counting",
    "Output", "Devices", "Faults", "Reporting",
)  # fmt: skip

# ---- options ----------------------------------------------------------------------------------

EVERY = 5.0  # seconds between two lines on functions that are compiled
# A file or folder, as text: completed by the shell, checked by whoever opens it.
FILE = click.Path(readable=False)


class Typed(click.ParamType):  # type: ignore[type-arg]  # not generic in old versions
    """Value of an option on the command line."""

    def __init__(self, each: Option) -> None:
        self.option, self.name = each, each.metavar

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a text. Fails for a text that has none."""
        this = self.option
        try:
            return this.kind.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            form = f"{this.kind.metavar}, e.g. {flag(this.name)} {this.example}"
            wanted = form if this.example else this.kind.must
            self.fail(str(error) or f"expected {wanted}; got {value!r}", param, ctx)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """Return the values that begin so, where there are only some."""
        texts = self.option.kind.texts or ()
        return [CompletionItem(text) for text in texts if text.startswith(incomplete)]


TYPES: tuple[tuple[values.Kind, Any], ...] = (
    (values.WHOLE, int), (values.NUMBER, float), (values.FILE, FILE), (values.ANYTHING, FILE),
    (values.POCKET, FILE),
)  # fmt: skip


class GroupedCommand(click.Command):
    """Command whose help has options in groups. declared: its options and arguments."""

    declared: list[Option]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the two words of a box, X,Y,Z SX,SY,SZ, for one."""
        boxes = {flag(each.name) for each in self.declared if each.kind is values.BOX}
        for i in reversed([i for i, word in enumerate(args) if word in boxes]):
            if all(map(values.TRIPLE.fullmatch, words := args[i + 1 : i + 3])):
                args = [*args[: i + 1], ",".join(words), *args[i + 3 :]]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        group_of = {each.name: each.group for each in self.declared}
        records: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for each in self.get_params(ctx):
            if isinstance(each, click.Option) and (record := each.get_help_record(ctx)):
                records[group_of.get(each.name or "", GROUPS[-1])].append(record)
        for group, found in records.items():
            if found:
                with formatter.section(group):
                    formatter.write_dl(found)


def command_of(
    *, example: str, without: tuple[type | str, ...] = ()
) -> Callable[[Callable[..., Any]], GroupedCommand]:
    """Return a decorator that makes a command of a function of option objects.

    example  a command line, at the end of the help
    without  options that the command does not have, by their names or their classes

    Each parameter of the function is annotated with a class of options. The docstring is the help.
    `--dry-run` shows the plan of the first object, by `dry_run.py` beside the function's module.
    """

    def decorate(function: Callable[..., Any]) -> GroupedCommand:
        kinds = [hint for name, hint in get_type_hints(function).items() if name != "return"]
        offered = [
            each
            for kind in kinds
            for each in declared(kind)
            if each.only != "Python" and not {each.owner, each.name} & {*without}
        ]
        package = function.__module__.rpartition(".")[0]

        def callback(**given: Any) -> Any:
            if not given.get("dry_run"):
                _require(offered)
                return function(*(_options(kind, given) for kind in kinds))
            plan_of = import_module(f"{package}.dry_run").plan_of
            entries, lines = plan_of(_options(kinds[0], given))
            text = json.dumps({"version": 1, **entries}, indent=2)
            return answer([text] if given["json"] else map(printable, lines))

        with options_spelled(flag):
            params = [_parameter(each) for each in offered]
        command = GroupedCommand(
            name=function.__name__,
            params=params,
            callback=callback,
            help=function.__doc__,
            epilog=f"Example: {example}",
        )
        command.declared = offered
        return command

    return decorate


def _require(offered: list[Option]) -> None:
    """Raise MissingParameter for an option that a run needs; `--dry-run` does without."""
    context = click.get_current_context()
    for each, param in zip(offered, context.command.params, strict=False):
        if each.required and context.params[each.name] is None:
            raise click.MissingParameter(ctx=context, param=param)


def _options(kind: type[Options], given: Mapping[str, Any]) -> Options:
    """Return the options of a class; click has None, or no values, for what was not given."""
    return kind.from_given({
        each.name: given[each.name]
        for each in declared(kind)
        if each.name in given and (given[each.name] not in (None, ()) or each.value is MISSING)
    })  # fmt: skip


def _parameter(each: Option) -> click.Parameter:
    """Return a declared option as click has it; its value is None where it is not given."""
    if each.argument:
        return click.Argument(
            [each.name], nargs=1 if each.kind is values.FILE else -1, type=FILE,
            required=each.required, metavar=each.metavar or None,
        )  # fmt: skip
    name = flag(each.name)
    settings: dict[str, Any] = {"is_flag": True}
    if each.kind is not values.SWITCH:
        kind = next((of for known, of in TYPES if each.kind is known), Typed(each))
        settings = {"type": kind, "metavar": each.metavar}
    elif each.value is not False:
        name = f"{name}/{flag(each.name, on=False)}"
    return click.Option(
        [each.name, *([f"-{each.short}"] if each.short else []), name],
        default=None,
        multiple=each.many,
        help=spelled(each.description),
        **settings,
    )


# ---- around a run -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Summary(Options, group="Reporting"):
    """Summary of a run, of commands that have one."""

    summary: TextPath | None = declare(None, "Write a summary of the run as JSON.")


@dataclass(frozen=True, kw_only=True)
class Reporting(Summary, group="Reporting"):
    """Files and lines of a run beside its output. started: when the command began."""

    log_json: TextPath | None = declare(None, "Write every event as a line of JSON.")
    progress: bool | None = declare(None, "Show the progress.", default="on a terminal")
    quiet: bool = declare(False, "Print errors only.", short="q")
    dry_run: bool = declare(False, "Show how the job would be cut into chunks, without running it.")
    json: bool = declare(False, f"With {option('dry_run')}: print JSON.")
    debug: bool = declare(False, "Print the traceback of an error.")
    started: float = field(default_factory=now)

    def check(self) -> None:
        super().check()
        if self.json and not self.dry_run:
            raise UsageError(f"{option('json')} has no effect without {option('dry_run')}")
        if self.log_json == "-":
            raise UsageError(f"{option('log_json')} -: events go to a file, e.g. /dev/stderr")

    def check_outputs(self, *own: str | None) -> list[str | None]:
        """Return the files that a run writes. Raises UsageError for one that cannot be written."""
        written = [*own, self.summary, self.log_json]
        for path in written:
            check_output(path)
        return written

    @contextmanager
    def notes(self) -> Iterator[None]:
        """Print errors only, or else a note while functions are compiled."""
        if self.quiet:
            logging.getLogger("multigpu").setLevel(logging.ERROR)
            yield
        else:
            with compilation_reported():
                yield

    @contextmanager
    def watch(
        self, job: "Job", name: str, results: Callable[[], str], rows_to: str | None = ""
    ) -> Iterator[None]:
        """Keep the journal of a job and its log, and show its progress, as asked for.

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
            if self.log_json is not None:
                job.listeners.append(stack.enter_context(log_events(self.log_json)))
            # Where rows go to a terminal the drawn progress would stand within their lines.
            rows_shown = rows_to in (None, *STDOUT) and _is_terminal(sys.stdout)
            drawn = _is_terminal(sys.stderr) and not rows_shown
            if not self.quiet and (drawn if self.progress is None else self.progress):
                from multigpu.run.progress import progress_shown

                stack.enter_context(progress_shown(job, name, results, drawn=drawn))
            stack.enter_context(job.keep_journal())
            yield

    def write_summary(self, job: "Job", output: str | None, fmt: str) -> None:
        """Write the summary of a finished job, where it is asked for."""
        if self.summary:
            from multigpu.run.summary import write_summary

            write_summary(self.summary, job, output, fmt, self.started)

    def say(self, *lines: str) -> None:
        """Print lines on standard error; not with --quiet."""
        for line in () if self.quiet else lines:
            click.echo(f"multigpu: {printable(line)}", err=True)

    def say_outcome(self, found: str, place: str | None) -> None:
        """Print one line on standard error: what a run found, and where it is."""
        where = "standard output" if place in (None, *STDOUT) else place
        with suppress(OSError):  # nobody reads it any more
            self.say(f"{found}; written to {where}")


@contextmanager
def compilation_reported() -> Iterator[None]:
    """Print lines while this process compiles functions: one at once, more from time to time."""
    lock = threading.Lock()
    count, reported = 0, float("-inf")

    def note() -> None:
        nonlocal count, reported
        with lock:
            count += 1
            if time.monotonic() - reported < EVERY:
                return
            reported = time.monotonic()
            text = f"compiling: {count - 1:,} functions so far"
            if count == 1:
                text = "compiling for this machine, once for each kind of run: up to a minute"
            with suppress(OSError, ValueError):  # nobody reads it any more
                sys.stderr.write(f"multigpu: {text}\n")
                sys.stderr.flush()

    caches.listeners.append(note)
    try:
        yield
    finally:
        caches.listeners.remove(note)


@contextmanager
def log_events(path: str) -> Iterator[Listener]:
    """Yield a listener that writes a line of JSON for every event to a file, which stays."""
    with open_unbuffered(path) as file:

        def log(event: Event) -> None:
            line = {"event": event.name, "at": round(event.at, 6), **event.details}
            file.write(json.dumps(line).encode() + b"\n")

        yield log


@contextmanager
def start_workers(
    run: RunOptions, reporting: Reporting, lanes: GpuLanes
) -> Iterator[PendingWorkers]:
    """Start the workers of a run, while the caller reads its input; see `cluster.deploy.start`."""
    from multigpu.run.job import deployment

    memory.spare_address_space()
    with reporting.notes():
        where = deployment(run, run.devices(), lanes)
        if run.workers and where.remote:
            why = "the scheduler has its own workers"
            logger.warning("multigpu: %s has no effect: %s", flag("workers"), why)
        with start.start_workers(where) as workers:
            yield workers


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream, which is None where it is closed, is a terminal."""
    return stream is not None and stream.isatty()


def number_of(number: int, noun: str) -> str:
    """Return a number with its noun: 1 match, 1,234 matches."""
    plural = f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def answer(lines: Iterable[str]) -> None:
    """Write lines to standard output, coloured on a terminal. Raises UsageError, PipeClosed."""
    with atomic_output(None) as out:
        text = "".join(f"{line}\n" for line in lines)
        shown = text if _is_terminal(sys.stdout) else click.unstyle(text)
        out.write(shown.encode(errors="surrogateescape"))


def keep_inputs(
    inputs: Iterable[str],
    *outputs: str | None,
    given: Iterable[str] = (),
    kind: "FileKind | None" = None,
) -> None:
    """Raise UsageError where an output would replace an input, or another output, or become one.

    inputs  taken only where an output is there before the run
    given   directories and patterns, among others, that stand for inputs of this kind
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
    if kind is not None:
        _refuse_new_inputs([path for path, _ in places], given, kind)


def _refuse_new_inputs(outputs: Sequence[str], given: Iterable[str], kind: "FileKind") -> None:
    """Raise UsageError for an output that the same command would read the next time."""
    from multigpu.formats.storage.input_paths import stands_for_others, would_read

    for each in filter(stands_for_others, given):
        for path in outputs:
            if would_read(each, path, kind):
                problem = f"the next run would read it as one of {each}"
                raise UsageError(f"{path}: {problem}: give an output elsewhere")


def _place(path: str) -> str:
    """Return the path without links; problems with it are reported by who reads or writes it."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # the folder that we are in is gone; a zero byte
        return path
