"""`--dry-run`: how a job would be cut into chunks, shown without running it."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from multigpu.errors import printable
from multigpu.formats.storage.sources import Source
from multigpu.run.command import answer

if TYPE_CHECKING:
    from multigpu.run.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """Plan of a job, and the fitness of the workers of a scheduler.

    workers  of each worker its name, problems, GPU and free bytes; empty on this machine
    """

    job: "Job"
    plan: Any
    workers: list[dict[str, Any]]

    def show(self, as_json: bool, entries: dict[str, Any], lines: Sequence[str]) -> None:
        """Print what every plan has, then entries of this kind as JSON, or else lines."""
        plan = self.plan
        facts = {
            "devices": [asdict(device) for device in self.job.devices],
            "chunk_bytes": plan.chunk_bytes,
            "device_bytes": plan.device_bytes,
            "budget_bytes": plan.budget,
            "lanes": plan.lanes,
            "host_bytes": plan.host_bytes,
            "workers": self.workers,
        }
        show(as_json, {**facts, **entries}, [*self.places(), *lines])

    def places(self) -> list[str]:
        """Return a line for each worker of a scheduler, else one with the devices used here."""
        if not self.workers:
            gpus = ", ".join(f"GPU {each.index} ({each.name})" for each in self.job.devices)
            return [f"where         {gpus or 'CPU'}"]
        return [
            f"worker        {each['worker']}: {'GPU' if each['gpu'] else 'CPU'},"
            f" {each['free_bytes']:,} bytes free"
            for each in self.workers
        ]

    @property
    def memory(self) -> str:
        """Return a line with the memory on the device with least, and how much may be used."""
        return f"memory        {self.plan.device_bytes:,} of {self.plan.budget:,} bytes"

    @property
    def host_memory(self) -> str:
        return f"host memory   at most {self.plan.host_bytes:,} bytes in a process"


def plan_job(job: Any, files: Sequence[str]) -> PlannedJob:
    """Plan a job and ask the workers of a scheduler; nothing is started on this machine.

    files: inputs that workers must see
    """
    if not job.remote:
        return PlannedJob(job=job, plan=job.plan(), workers=[])
    with ExitStack() as stack:
        crew = job.crew(stack, files)
        workers = [{"worker": name, **asdict(fit)} for name, fit in crew.fitness.items()]
        return PlannedJob(job=job, plan=job.plan(crew), workers=workers)


def show(as_json: bool, entries: dict[str, Any], lines: Sequence[str]) -> None:
    """Print a plan: its entries as JSON, or else its lines."""
    answer([json.dumps({"version": 1, **entries}, indent=2)] if as_json else map(printable, lines))


def describe_source(source: Source) -> str:
    """Return a line about a file of the input."""
    size = "unknown size" if source.size is None else f"{source.size:,} bytes"
    return f"{source.path}: {source.layout or 'unreadable'}, {source.compression}, {size}"
