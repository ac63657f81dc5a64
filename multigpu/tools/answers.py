"""Standard output of commands that write no file."""

import sys
from collections.abc import Iterable

import click

from multigpu.cluster.engine.output import atomic_output


def answer(lines: Iterable[str]) -> None:
    """Write lines to standard output, with their colours on a terminal only.

    Raises UsageError where standard output is closed or full, PipeClosed where nobody reads it.
    """
    with atomic_output(None) as out:
        text = "".join(f"{line}\n" for line in lines)
        shown = text if sys.stdout.isatty() else click.unstyle(text)
        out.write(shown.encode(errors="surrogateescape"))
