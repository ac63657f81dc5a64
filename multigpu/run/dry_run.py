"""`--dry-run`: how a job would be cut into chunks, shown without running it."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from multigpu.formats.storage.sources import Source

Shown = tuple[dict[str, Any], Iterable[str]]  # a plan's entries as JSON, and its lines


def plan_job(job: Any, files: Sequence[str]) -> tuple[Any, Shown]:
    """Return the plan of a job, and what every plan shows; nothing is started on this machine.

    files: inputs that workers of a scheduler must see; these are asked whether they are fit
    """
    with ExitStack() as stack:
        crew = job.crew(stack, files) if job.remote else None
        plan, fitness = job.plan(crew), crew.fitness if crew else {}
        gpus = ", ".join(f"GPU {each.index} ({each.name})" for each in job.devices)
        places = [
            f"worker        {name}: {'GPU' if fit.gpu else 'CPU'}, {fit.free_bytes:,} bytes free"
            for name, fit in fitness.items()
        ]
        return plan, (
            {
                "devices": [asdict(device) for device in job.devices],
                "chunk_bytes": plan.chunk_bytes,
                "device_bytes": plan.device_bytes,
                "budget_bytes": plan.budget,
                "lanes": plan.lanes,
                "host_bytes": plan.host_bytes,
                "workers": [{"worker": name, **asdict(fit)} for name, fit in fitness.items()],
            },
            places or [f"where         {gpus or 'CPU'}"],
        )


def memory_of(plan: Any, but: str = "") -> list[str]:
    """Return lines about the memory on the device that has least, and of a process."""
    return [
        f"memory        {plan.device_bytes:,} of {plan.budget:,} bytes",
        f"host memory   at most {plan.host_bytes:,} bytes in a process{but}",
    ]


def describe_source(source: Source) -> str:
    """Return a line about a file of the input."""
    size = "unknown size" if source.size is None else f"{source.size:,} bytes"
    return f"{source.path}: {source.layout or 'unreadable'}, {source.compression}, {size}"
