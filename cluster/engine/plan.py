"""Sizes of chunks that fit the memory. Pure: no device, no Dask."""

from collections.abc import Iterator
from dataclasses import dataclass

from multigpu.cluster.errors import UsageError

MEMORY_FRACTION = 0.8  # of what is free on a device
CHUNKS_PER_THREAD = 4  # so that the last chunks finish together
SMALLEST_CHUNK = 1 << 20  # bytes; below it the overhead of a task shows


@dataclass(frozen=True)
class Cost:
    """Memory that a job takes where it computes: for each unit of input, and once."""

    unit_bytes: float
    fixed_bytes: int


@dataclass(frozen=True)
class Capacity:
    """Memory and threads to compute with.

    free        bytes on the device that has least
    threads     of all workers together
    lanes       of the worker that has most
    gpu         whether the workers have GPUs
    in_process  whether the threads are those of this process
    """

    free: int
    threads: int
    lanes: int
    gpu: bool
    in_process: bool = False

    @property
    def chunks_in_process(self) -> int:
        """Chunks that are in progress at a time in the process that has most."""
        return self.threads if self.in_process else self.lanes


def chunk_units(cost: Cost, budget: int, lanes: int, largest: int) -> int:
    """Return how many units a chunk may have when `lanes` chunks are on a device at a time.

    budget   bytes that all of them may take
    largest  units

    Raises UsageError where not one unit fits.
    """
    fits = int((budget - cost.fixed_bytes) / lanes / cost.unit_bytes)
    if fits < 1:
        needed = cost.fixed_bytes + int(lanes * cost.unit_bytes)
        raise UsageError(
            f"the smallest chunk needs {needed:,} bytes of memory where {budget:,} are free:"
            " free some, or give a larger --memory-fraction"
        )
    return min(fits, largest)


def balanced(units: int, most: int, threads: int, each: int = CHUNKS_PER_THREAD) -> int:
    """Return a chunk size of at most `most` that gives every thread about `each` chunks."""
    return max(1, min(most, max(SMALLEST_CHUNK, -(-units // (threads * each)))))


def spans(units: int, size: int) -> Iterator[range]:
    """Yield consecutive ranges of at most `size` units."""
    for begin in range(0, units, size):
        yield range(begin, min(begin + size, units))
