"""Failures a user can act on, and the exit status each stands for.

A message names an option by `option("min_score")`, which marks it. Whoever shows the message spells
it, by `spelled`: `--min-score` on the command line, `min_score` in Python.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONGEST_LINE = 300  # characters: some libraries repeat what a damaged file holds
MARKED = re.compile("\ue000(no )?([a-z_]+)\ue001")  # private characters, which nobody types
Spelling = Callable[[str, bool], str]


def option(name: str, on: bool = True) -> str:
    """Return an option for a message; `on` is False for one that is switched off, as --no-index."""
    return f"\ue000{'' if on else 'no '}{name}\ue001"


def spelled(message: str) -> str:
    """Return a message with its options as the user writes them."""
    return MARKED.sub(lambda found: _spelling(found[2], not found[1]), message)


@contextmanager
def options_spelled(spelling: Spelling) -> Iterator[None]:
    """Spell options in this way meanwhile; else as keywords of Python."""
    global _spelling
    before, _spelling = _spelling, spelling
    try:
        yield
    finally:
        _spelling = before


def _keyword(name: str, on: bool) -> str:
    return name if on else f"{name}=False"


_spelling: Spelling = _keyword


class Failure(Exception):
    """The run failed for a reason outside the input: a device, a worker, a file system."""

    exit_status = 1

    @property
    def text(self) -> str:
        """Message with its options marked, for use in another message."""
        return super().__str__()

    def __str__(self) -> str:
        return spelled(self.text)

    def __format__(self, spec: str) -> str:
        # In another message, which another process may show, options stay marked.
        return format(self.text, spec)


class UsageError(Failure):
    """The user's mistake: an option, a file, a device that is not there. Exit status 2."""

    exit_status = 2


class TooLittleMemory(MemoryError, UsageError):
    """Not even the smallest piece fits in the memory that may be used."""


class DiskFull(UsageError):
    """Output that does not fit on its disk: the user can free some space, and resume."""


class Lost(Failure):
    """A task was lost for a reason that is not its own: it may be run again."""


class WorkerDied(Lost):
    """The process that ran a task ended: `deaths` of them, one after the other."""

    def __init__(self, worker: str, deaths: int = 1) -> None:
        super().__init__(worker, deaths)  # args equal the signature: it pickles
        self.worker, self.deaths = worker, deaths

    @property
    def text(self) -> str:
        return f"worker {self.worker} died"


class DeviceFailed(WorkerDied):
    """The GPU of a worker no longer works, and this process can do nothing more with it."""

    def __init__(self, worker: str, reason: str) -> None:
        Lost.__init__(self, worker, reason)
        self.worker, self.deaths, self.reason = worker, 1, reason

    @property
    def text(self) -> str:
        return f"the GPU of worker {self.worker} failed: {self.reason}"


class Unfit(Lost):
    """A worker may not take part: it has another version, or other files."""

    def __init__(self, worker: str, reason: str) -> None:
        super().__init__(worker, reason)
        self.worker, self.reason = worker, reason

    @property
    def text(self) -> str:
        return f"worker {self.worker}: {self.reason}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or the error's name where it has none."""
    line = next(filter(str.strip, f"{error}".splitlines()), type(error).__name__).strip()
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"
