"""How a scan goes, on a terminal."""

import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from multigpu.api import ScanJob

EVERY = 0.2  # seconds between two looks at the devices


class Progress:
    """A line on standard error with chunks, bases a second, matches and device memory."""

    def __init__(self, shown: bool, job: "ScanJob") -> None:
        self.job = job
        self._bar: Any = _bar() if shown else None
        self._looked = 0.0

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("scan", total=None, rate="", memory="", hits=0)
            self._begin = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self) -> None:
        """To be called after every part."""
        if self._bar is None:
            return
        facts, plan = self.job.facts, self.job.chunk_plan
        now = time.monotonic()
        chunks = plan.chunks if plan else (None,)
        known = [count for count in chunks if count is not None]
        total = sum(known) if len(known) == len(chunks) else None
        rate = facts.bases / max(now - self._begin, 1e-9)
        self._bar.update(
            self._task, completed=facts.chunks, total=total,
            rate=f"{rate / 1e6:,.0f} Mbases/s", hits=facts.hits,
        )  # fmt: skip
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
        TextColumn("{task.fields[hits]:,} matches"), TextColumn("{task.fields[memory]}"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
