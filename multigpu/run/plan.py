"""Plan of a run: sizes of chunks that fit the memory, and how `--dry-run` shows them."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from multigpu.cluster.engine.plan import (
    CHUNKS_PER_THREAD,
    SMALLEST_CHUNK,
    Capacity,
    Cost,
    balanced,
    chunk_units,
)
from multigpu.formats.storage.sources import Source
from multigpu.run.options import DEFAULT_CHUNK_BYTES, RunOptions

Shown = tuple[dict[str, Any], Iterable[str]]  # a plan's entries as JSON, and its lines


@dataclass(frozen=True, kw_only=True)
class ChunkPlan:
    """Sizes of the chunks of a run.

    chunk_bytes     most bytes of input in a chunk
    budget          bytes that chunks may take on the device with least memory
    cost            memory that chunks take there
    lanes           chunks at a time on each device, as many as its memory has room for
    process_chunks  chunks in progress at a time in the process that has most
    """

    chunk_bytes: int
    budget: int
    cost: Cost
    lanes: int
    process_chunks: int = 1

    @property
    def device_bytes(self) -> int:
        """Bytes that the chunks in progress take on a device."""
        chunk = self.cost.lane_bytes + int(self.chunk_bytes * self.cost.unit_bytes)
        return self.cost.fixed_bytes + self.lanes * chunk

    @property
    def host_bytes(self) -> int:
        """Most bytes of host memory that a process takes."""
        raise NotImplementedError


def memory_budget(capacity: Capacity, run: RunOptions) -> int:
    """Return the bytes that a run may take on the device with least memory."""
    return int(capacity.free * run.memory_fraction)


def largest_chunk(
    sources: Iterable[Source],
    cost: Cost,
    capacity: Capacity,
    run: RunOptions,
    *,
    default: int = DEFAULT_CHUNK_BYTES,
    chunks_per_thread: int = CHUNKS_PER_THREAD,
) -> tuple[int, int]:
    """Return most bytes of a chunk, and chunks on a device at a time. Raises TooLittleMemory.

    Chunks are smaller where there is little input. On GPUs there are fewer before they are small.
    default: bytes where memory allows it and the user gave no maximum
    """
    budget, least = memory_budget(capacity, run), SMALLEST_CHUNK if capacity.gpu else 1
    fits, lanes = chunk_units(cost, budget, capacity.lanes, run.chunk_bytes(default), least)
    known = [source.size or 0 for source in sources if source.cuttable]
    if known:
        fits = balanced(sum(known), fits, capacity.threads, chunks_per_thread)
    return fits, lanes


def plan_job(job: Any, files: Sequence[str]) -> tuple[Any, Shown]:
    """Return a job's plan, and what is shown of it; files: that a scheduler's workers need."""
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
