"""The command line: commands are imported when they are called, errors become exit statuses."""

import importlib
import logging
import os
import sys
import traceback
from contextlib import suppress
from difflib import get_close_matches
from errno import ENOSPC
from os import environ
from typing import NoReturn

import click

from multigpu import __version__, citation
from multigpu.errors import Failure, UsageError, options_spelled, printable
from multigpu.run.declarations import flag
from multigpu.run.signals import ENDED_BY, describe, signal_of, stop_listening

WORKLOADS = {
    "scan": "Find signatures in samples.",
    "cnv": "Call copy-number variants.",
    "count": "Count reads of alignment files in regions.",
    "cohort": "Keep the counts of a cohort, to compare new samples with.",
    "dock": "Find the best poses of rigid ligands in a pocket.",
    "pocket": "Make the maps of a receptor, in which dock scores ligands.",
}
TOOLS = {
    "plan": "The same as COMMAND --dry-run: show how a job would be cut into chunks.",
    "doctor": "Show what would be used, and why.",
    "simulate": "Make data to try and to measure with.",
    "demo": "Run scan, cnv and dock on small generated data.",
    "tls": "Make credentials for a Dask cluster of your own.",
}
COMMANDS = WORKLOADS | TOOLS
PLANNED = ("scan", "cnv", "count", "dock")  # commands with --dry-run
PLACES = {  # modules of the commands, but for those called like their folders
    "pocket": "workloads.dock.pocket_command",
    **{name: f"tools.{name}" for name in TOOLS},
}
PLAN = click.Command(
    "plan",
    callback=lambda: click.echo(click.get_current_context().get_help()),
    help=f"{TOOLS['plan']} COMMAND is one of {', '.join(PLANNED)}, with its options.",
    options_metavar="COMMAND …",
)
REMOVED = {  # options of earlier versions, and what to do instead
    "--trace": "--log-json has the same steps",
    "--mixed": "--gpus none lets the CPUs of a scheduler's workers compute",
    "--plots": "the camera above a figure of the report saves it",
    "--colors": "gains are red and losses blue",
    "--counts-cache": "`multigpu cohort` keeps counts",
    "--dashboard": "--progress shows what a run does",
}
FULL = "standard output: cannot be written: the disk is full (no space left on device)"
VERSION = click.version_option(__version__, "-V", "--version", prog_name="multigpu")
CITATION = f"""\
{citation.PROGRAM}

Please cite the program with its version, and for copy numbers the model:
{citation.CN_MOPS}"""


class LazyGroup(click.Group):
    """Group of commands, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context | None, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        place = PLACES.get(name, f"workloads.{name}.command")
        command = PLAN
        if name != PLAN.name:
            command = importlib.import_module(f"multigpu.{place}").command
        if all(each.name != "version" for each in command.params):
            VERSION(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; for a misspelt one the error names the most similar."""
        if args[0] == "plan" and args[1:] and not args[1].startswith("-"):
            if args[1] in COMMANDS and args[1] not in PLANNED:
                problem = f"{args[1]} has no plan; these have one: {', '.join(PLANNED)}"
                raise click.UsageError(problem, ctx)
            args = [args[1], "--dry-run", *args[2:]]
        ctx.obj = tuple(args[1:])  # what a command that asks for them finds
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if not (alike := get_close_matches(args[0], COMMANDS, n=1)):
                raise
            message = f"{error.format_message()} Did you mean {alike[0]!r}?"
            raise click.UsageError(message, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _cite(context: click.Context, _: click.Parameter, given: bool) -> None:
    if given:
        click.echo(CITATION)
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@VERSION
@click.option(
    "--citation",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_cite,
    help="Show how to cite the program and exit.",
)
def cli() -> None:
    """Sequences in reads and genomes, copy numbers, rigid docking; on CPUs, GPUs and clusters."""


@options_spelled(flag)
def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and exit: 0; 1 failed; 2 the user's mistake; 3 in part; 128 + n by signal n.

    Messages name options as the command line has them.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    debug = "--debug" in arguments
    if logging.lastResort:
        logging.lastResort.setFormatter(_PrintableNotes())
    try:
        if environ.get("NUMBA_NUM_THREADS", "").strip() == "0":
            raise UsageError("NUMBA_NUM_THREADS is 0, with which nothing can be compiled: unset it")
        status = cli.main(arguments, prog_name="multigpu", standalone_mode=False)
        _leave(status if isinstance(status, int) else 0)
    except (KeyboardInterrupt, click.Abort) as error:
        cause = error.__cause__ if isinstance(error, click.Abort) else error
        _complain(describe(cause), debug)
        _leave(ENDED_BY + signal_of(cause))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        _leave(error.exit_code)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        text = error.format_message()
        if isinstance(error, click.NoSuchOption) and (cure := REMOVED.get(error.option_name)):
            text = f"{error.option_name} was removed: {cure}"
        _complain(text + hint, debug=False)
        _leave(error.exit_code)
    except Failure as error:
        _complain(error.text, debug)
        _leave(error.exit_status)
    except MemoryError:
        _complain("there is not enough memory: try a smaller --max-chunk-bytes", debug)
        _leave(1)
    except Exception as error:  # noqa: BLE001 - a bug of ours: one line, unless --debug
        if isinstance(error, OSError) and error.errno == ENOSPC:  # of help, which click writes
            _complain(FULL, debug)
            _leave(2)
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
        _complain(
            f"{problem} (an internal error: please report it, with the output of --debug)", debug
        )
        _leave(1)


def _complain(text: str, debug: bool) -> None:
    with suppress(OSError):  # standard error is closed or full
        if debug:
            traceback.print_exc()
        if text:
            click.echo(f"multigpu: error: {printable(text)}", err=True)


class _PrintableNotes(logging.Formatter):
    """Formatter of notes, which repeat paths and names."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _leave(status: int) -> NoReturn:
    """End the process at once: threads that still read or wait have nothing more to give."""
    stop_listening()
    for file in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # AttributeError: it is closed, and so is None
            file.flush()
    os._exit(status)
