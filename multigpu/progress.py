"""How a job goes, on a terminal."""

import time
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from cluster.devices import Device

EVERY = 0.2  # seconds between two looks at the devices


class Running(Protocol):
    """A job that tells how far it is."""

    devices: "tuple[Device, ...]"
    facts: Any

    def progress(self, seconds: float) -> tuple[int | None, str, str]:
        """How many chunks there are, if that is known; speed; results so far."""


class Progress:
    """A line on standard error with chunks, speed, results and device memory."""

    def __init__(self, shown: bool, job: Running) -> None:
        self.job = job
        self._bar: Any = _bar() if shown else None
        self._looked = 0.0

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=None, rate="", memory="", found="")
            self._begin = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self) -> None:
        """To be called after every part."""
        if self._bar is None:
            return
        now = time.monotonic()
        total, rate, found = self.job.progress(now - self._begin)
        self._bar.update(
            self._task, completed=self.job.facts.chunks, total=total, rate=rate, found=found
        )
        if self.job.devices and now - self._looked > EVERY:
            self._looked = now
            self._bar.update(self._task, memory=self._memory())

    def _memory(self) -> str:
        from cluster.devices import survey

        ours = {device.uuid for device in self.job.devices}
        used = [
            f"{device.index}: {(device.total_bytes - device.free_bytes) / 2**30:.1f} GiB"
            for device in survey().devices
            if device.uuid in ours
        ]
        return "GPU " + ", ".join(used)


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        BarColumn(bar_width=12), MofNCompleteColumn(), TextColumn("chunks"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[found]}"), TextColumn("{task.fields[memory]}"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
