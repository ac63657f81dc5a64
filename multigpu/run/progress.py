"""Progress of a job on standard error, as one line.

On a terminal it is drawn. In a file, such as the log of a batch system, it is printed from time to
time.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from multigpu.errors import printable

if TYPE_CHECKING:
    from multigpu.run.job import Job

DRAWN_PER_SECOND = 5
PRINTED_EVERY = 30.0  # seconds between two lines, in a file


def progress_shown(
    job: "Job", name: str, results: Callable[[], str], *, drawn: bool
) -> AbstractContextManager[object]:
    """Show how far a job is while the block runs.

    results  returns a few words on what was found so far
    drawn    whether the line is drawn on a terminal; else it is printed from time to time
    """
    begin = time.monotonic()

    def line() -> str:
        return printable(progress_line(job, name, results(), time.monotonic() - begin))

    if not drawn:
        return _printed(line)
    return Live(
        console=Console(stderr=True),
        get_renderable=lambda: Text(line()),
        refresh_per_second=DRAWN_PER_SECOND,
        transient=True,
    )


def progress_line(job: "Job", name: str, results: str, seconds: float) -> str:
    """Return the line about a job that began some seconds ago."""
    stats, total = job.stats, job.chunks
    done = f"{stats.chunks:,} of {total:,} chunks" if total else f"{stats.chunks:,} chunks"
    line = f"{name}  {done}  {results}"
    here = stats.chunks - stats.resumed
    if total and here:
        left = (total - stats.chunks) * seconds / here
        line += f"  {left // 60:.0f}:{left % 60:02.0f} left"
    return line


@contextmanager
def _printed(line: Callable[[], str]) -> Iterator[None]:
    """Print a line at the beginning, from time to time (by a thread), and at the end."""
    ended = threading.Event()

    def keep_printing() -> None:
        while not ended.wait(PRINTED_EVERY):
            _print(line())

    _print(line())
    thread = threading.Thread(target=keep_printing, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _print(line())


def _print(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads it any more
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
