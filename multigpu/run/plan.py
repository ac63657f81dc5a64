"""Plan of a run: sizes of chunks that fit the memory, the same for every workload."""

from collections.abc import Iterable
from dataclasses import dataclass

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
    """Return the most bytes of input that a chunk may have, and chunks at a time on a device.

    Chunks are smaller where there is little input. On GPUs there are fewer before they are small.

    default: bytes where memory allows it and the user gave no maximum

    Raises TooLittleMemory where not a byte fits.
    """
    budget, least = memory_budget(capacity, run), SMALLEST_CHUNK if capacity.gpu else 1
    fits, lanes = chunk_units(cost, budget, capacity.lanes, run.chunk_bytes(default), least)
    known = [source.size or 0 for source in sources if source.cuttable]
    if known:
        fits = balanced(sum(known), fits, capacity.threads, chunks_per_thread)
    return fits, lanes
