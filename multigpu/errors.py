"""Errors about the user's files. They pickle, so they survive the way back from a worker."""

from collections.abc import Sequence

from multigpu.cluster.errors import (
    Failure,
    TooLittleMemory,
    UsageError,
    first_line,
    option,
    options_spelled,
    spelled,
)

__all__ = [
    "Failure", "InputError", "TooLittleMemory", "Unreadable", "UsageError", "first_line",
    "option", "options_spelled", "printable", "printable_name", "quoted", "several", "spelled",
]  # fmt: skip

NAMED = 5  # names that a message lists
QUOTED = 60  # characters of the user's data that a message may repeat


class InputError(UsageError):
    """A file is wrong; the text names the file, the place in it where known, and the problem."""

    def __init__(self, path: str, problem: str, where: str = "") -> None:
        super().__init__(path, problem, where)  # args equal the signature: it pickles
        self.path, self.problem, self.where = path, problem, where

    @property
    def text(self) -> str:
        place = f"{self.path}: {self.where}" if self.where else self.path
        return f"{place}: {self.problem}"


class Unreadable(InputError):
    """A file cannot be read: a server or a network may be away, and the file the same later."""


def quoted(text: bytes | str) -> str:
    """Return a text for a message: printable, in quotes, cut when long."""
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return repr(shown if len(shown) <= QUOTED else shown[: QUOTED - 1] + "…")


def several(names: Sequence[str]) -> str:
    """Return the first names for a message, and the number of the others."""
    listed = ", ".join(map(printable_name, names[:NAMED]))
    more = len(names) - NAMED
    return listed if more <= 0 else f"{listed} and {more:,} {'other' if more == 1 else 'others'}"


def printable(text: str) -> str:
    """Return what a terminal or a report shows of a text: escapes for what moves a cursor.

    Paths and names of other programs may hold it. Lines that are set in are lines of ours. Options
    that are marked are spelled.
    """
    text = spelled(text)
    if text.isprintable():
        return text
    lines = text.split("\n  ")
    return "\n  ".join("".join(c if c.isprintable() else repr(c)[1:-1] for c in x) for x in lines)


def printable_name(name: str) -> str:
    """Return a name for a message: printable, cut when long."""
    return name if 0 < len(name) <= QUOTED and name.isprintable() else quoted(name)
