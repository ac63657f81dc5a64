"""Progress of a job on standard error.

On a terminal it is drawn: one line for the job, and one for every device. In a file, such as the
log of a batch system, the line of the job is printed from time to time.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from multigpu.cluster.devices.gpus import survey
from multigpu.cluster.engine.events import Event
from multigpu.errors import printable

if TYPE_CHECKING:
    from multigpu.run.job import Job

DRAWN_PER_SECOND = 5
PRINTED_EVERY = 30.0  # seconds between two lines, in a file


def _print(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads it any more
        sys.stderr.write(f"{printable(line)}\n")
        sys.stderr.flush()


@contextmanager
def _printed(line: Callable[[], str]) -> Iterator[None]:
    """Print a line at the beginning, from time to time, and at the end.

    A thread prints it, also while nothing happens: a job that waits is seen to wait.
    """
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


@dataclass
class _DeviceProgress:
    """Work of one device.

    begin  when its first step began, by the clock of this process: clocks of machines differ
    busy   seconds in which it computed
    chunk  number of the last finished chunk
    """

    begin: float
    busy: float = 0.0
    chunks: int = 0
    chunk: int = 0


class Progress:
    """Listener that shows how far a job is.

    results  returns a few words on what was found so far
    drawn    whether lines are drawn on a terminal; else one is printed from time to time
    """

    def __init__(self, job: "Job", name: str, results: Callable[[], str], *, drawn: bool) -> None:
        self._job, self._name, self._results = job, name, results
        self._begin = time.monotonic()
        self._lanes: dict[str, _DeviceProgress] = {}
        self._shown: AbstractContextManager[object] = (
            Live(
                console=Console(stderr=True),
                get_renderable=lambda: Text("\n".join(map(printable, self._lines()))),
                refresh_per_second=DRAWN_PER_SECOND,
                transient=True,
            )
            if drawn
            else _printed(self._line)
        )

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.__exit__(None, None, None)

    def __call__(self, event: Event) -> None:
        if event.name != "finished":
            return
        steps = event.details["steps"]
        name = f"{event.details['worker']} {event.details['device']}"
        spent = max(end for _, _, end, _ in steps) - min(begin for _, begin, _, _ in steps)
        lane = self._lanes.setdefault(name, _DeviceProgress(time.monotonic() - spent))
        lane.busy += sum(end - begin for step, begin, end, _ in steps if step == "compute")
        lane.chunks += 1
        lane.chunk = event.details["chunk"]

    def _lines(self) -> list[str]:
        """Return a line for the job and one for each device."""
        lines = [self._line()]
        for name, lane in sorted(self._lanes.items()):
            spent = max(time.monotonic() - lane.begin, 1e-9)
            lines.append(
                f"{name}  {min(lane.busy / spent, 1):4.0%} computing  chunk {lane.chunk:,}"
                f"  {lane.chunks / spent:.1f} chunks/s"
            )
        return lines

    def _line(self) -> str:
        stats, total = self._job.stats, self._job.chunks
        spent = max(time.monotonic() - self._begin, 1e-9)
        done = f"{stats.chunks:,} of {total:,} chunks" if total else f"{stats.chunks:,} chunks"
        line = f"{self._name}  {done}  {self._results()}"
        here = stats.chunks - stats.resumed
        if total and here:
            left = (total - stats.chunks) * spent / here
            line += f"  {left // 60:.0f}:{left % 60:02.0f} left"
        return line + self._memory()

    def _memory(self) -> str:
        """Return the memory in use on the GPUs of this machine, in their order, as text."""
        if not self._job.devices:
            return ""
        ours = {device.uuid for device in self._job.devices}
        used = [
            f"{(device.total_bytes - device.free_bytes) / 2**30:.1f}"
            for device in survey().devices
            if device.uuid in ours
        ]
        return f"  {' '.join(used)} GiB on GPUs"
