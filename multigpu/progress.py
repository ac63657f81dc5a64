"""How a job goes, on a terminal: one line for it, and one for every device."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from cluster.events import Event

if TYPE_CHECKING:
    from multigpu.job import Job

EVERY = 0.2  # seconds between two looks


@dataclass
class _Lane:
    """What a device has done. begin: of its first step; busy: seconds in which it computed."""

    begin: float
    busy: float = 0.0
    chunks: int = 0
    chunk: int = 0  # the last one


class Progress:
    """A listener that draws on standard error. results: a few words on what was found so far."""

    def __init__(self, job: "Job", name: str, results: Callable[["Job"], str]) -> None:
        self._job, self._name, self._results = job, name, results
        self._lanes: dict[str, _Lane] = {}
        self._drawn = 0.0

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live

        self._begin = time.time()
        self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        if event.name == "finished":
            self._count(event)
        if time.monotonic() - self._drawn > EVERY:
            self._drawn = time.monotonic()
            from rich.text import Text

            self._live.update(Text("\n".join(self._lines())), refresh=True)

    def _count(self, event: Event) -> None:
        steps = event.facts["steps"]
        name = f"{event.facts['worker']} {event.facts['device']}"
        lane = self._lanes.setdefault(name, _Lane(min(begin for _, begin, _, _ in steps)))
        lane.busy += sum(end - begin for step, begin, end, _ in steps if step == "compute")
        lane.chunks += 1
        lane.chunk = event.facts["chunk"]

    def _lines(self) -> list[str]:
        """One for the run, one for each device."""
        lines = [self._line() + self._memory()]
        for name, lane in sorted(self._lanes.items()):
            spent = max(time.time() - lane.begin, 1e-9)
            lines.append(
                f"{name}  {min(lane.busy / spent, 1):4.0%} computing  chunk {lane.chunk:,}"
                f"  {lane.chunks / spent:.1f} chunks/s"
            )
        return lines

    def _line(self) -> str:
        facts, total = self._job.facts, self._job.chunks
        spent = max(time.time() - self._begin, 1e-9)
        done = f"{facts.chunks:,} of {total:,} chunks" if total else f"{facts.chunks:,} chunks"
        line = f"{self._name}  {done}  {self._results(self._job)}"
        here = facts.chunks - facts.resumed
        if total and here:
            left = (total - facts.chunks) * spent / here
            line += f"  {left // 60:.0f}:{left % 60:02.0f} left"
        return line

    def _memory(self) -> str:
        """What is used of the GPUs of this machine, in their order."""
        if not self._job.devices:
            return ""
        from cluster.devices import survey

        ours = {device.uuid for device in self._job.devices}
        used = [
            f"{(device.total_bytes - device.free_bytes) / 2**30:.1f}"
            for device in survey().devices
            if device.uuid in ours
        ]
        return f"  {' '.join(used)} GiB on GPUs"
