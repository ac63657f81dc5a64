"""Progress of a job on standard error.

On a terminal it is drawn: one line for the job, and one for every device. In a file, such as the
log of a batch system, the line of the job is printed from time to time.
"""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from multigpu.cluster.engine.events import Event

if TYPE_CHECKING:
    from multigpu.run.job import Job

EVERY = 0.2  # seconds between two looks, on a terminal
PRINTED_EVERY = 30.0  # seconds between two lines, in a file


class Display(Protocol):
    """Place where progress is shown."""

    def begin(self) -> None: ...

    def update(self) -> None: ...

    def end(self) -> None: ...


class TerminalDisplay:
    """Lines on a terminal, drawn again and again, and removed at the end."""

    def __init__(self, lines: Callable[[], list[str]]) -> None:
        self._lines, self._drawn = lines, 0.0

    def begin(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
        self._live.start()

    def update(self) -> None:
        if time.monotonic() - self._drawn > EVERY:
            self._drawn = time.monotonic()
            from rich.text import Text

            self._live.update(Text("\n".join(self._lines())), refresh=True)

    def end(self) -> None:
        self._live.stop()


class LogDisplay:
    """Line in a file, printed at the beginning, from time to time, and at the end.

    A thread prints it, also while nothing happens: a job that waits is seen to wait.
    """

    def __init__(self, line: Callable[[], str]) -> None:
        self._line, self._ended = line, threading.Event()

    def begin(self) -> None:
        self._print()
        self._thread = threading.Thread(target=self._keep_printing, name="progress", daemon=True)
        self._thread.start()

    def update(self) -> None:
        """Do nothing: the thread has its own time."""

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        self._print()

    def _keep_printing(self) -> None:
        while not self._ended.wait(PRINTED_EVERY):
            self._print()

    def _print(self) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more
            sys.stderr.write(f"{self._line()}\n")
            sys.stderr.flush()


@dataclass
class _Lane:
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
        self._lanes: dict[str, _Lane] = {}
        self._display: Display
        self._display = TerminalDisplay(self._lines) if drawn else LogDisplay(self._line)

    def __enter__(self) -> Self:
        self._begin = time.monotonic()
        self._display.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.end()

    def __call__(self, event: Event) -> None:
        if event.name == "finished":
            self._count(event)
        self._display.update()

    def _count(self, event: Event) -> None:
        steps = event.facts["steps"]
        name = f"{event.facts['worker']} {event.facts['device']}"
        spent = max(end for _, _, end, _ in steps) - min(begin for _, begin, _, _ in steps)
        lane = self._lanes.setdefault(name, _Lane(time.monotonic() - spent))
        lane.busy += sum(end - begin for step, begin, end, _ in steps if step == "compute")
        lane.chunks += 1
        lane.chunk = event.facts["chunk"]

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
        facts, total = self._job.facts, self._job.chunks
        spent = max(time.monotonic() - self._begin, 1e-9)
        done = f"{facts.chunks:,} of {total:,} chunks" if total else f"{facts.chunks:,} chunks"
        line = f"{self._name}  {done}  {self._results()}"
        here = facts.chunks - facts.resumed
        if total and here:
            left = (total - facts.chunks) * spent / here
            line += f"  {left // 60:.0f}:{left % 60:02.0f} left"
        return line + self._memory()

    def _memory(self) -> str:
        """Return the memory in use on the GPUs of this machine, in their order, as text."""
        if not self._job.devices:
            return ""
        from multigpu.cluster.devices.gpus import survey

        ours = {device.uuid for device in self._job.devices}
        used = [
            f"{(device.total_bytes - device.free_bytes) / 2**30:.1f}"
            for device in survey().devices
            if device.uuid in ours
        ]
        return f"  {' '.join(used)} GiB on GPUs"
