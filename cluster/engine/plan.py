"""Sizes of chunks that fit the memory. Pure: no device, no Dask."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from multigpu.cluster.errors import TooLittleMemory, option

MEMORY_FRACTION = 0.8  # of what is free on a device
FULL = 1 / 16  # of the free memory of the device that has most: less is hardly of use
CHUNKS_PER_THREAD = 4  # so that the last chunks finish together
SMALLEST_CHUNK = 1 << 20  # bytes; below it the overhead of a task shows


@dataclass(frozen=True)
class Cost:
    """Memory that a job takes where it computes: for each unit of input, once, for each chunk."""

    unit_bytes: float
    fixed_bytes: int
    lane_bytes: int = 0


@dataclass(frozen=True)
class Capacity:
    """Memory and threads to compute with.

    free        bytes on the device that has least, see `least_free`
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


def least_free(free: Sequence[int]) -> int:
    """Return the free bytes to make chunks for; devices with far less than others do not count."""
    return min(each for each in free if each >= max(free) * FULL)


def chunk_units(
    cost: Cost, budget: int, lanes: int, largest: int, least: int = 1
) -> tuple[int, int]:
    """Return units of a chunk, and chunks on a device at a time. Raises TooLittleMemory.

    budget   bytes that all of them may take
    lanes    the most chunks at a time; fewer come before chunks of less than `least` units
    largest  units
    """
    for fewest in (min(least, largest), 1):
        for at_once in range(lanes, 0, -1):
            share = (budget - cost.fixed_bytes) / at_once - cost.lane_bytes
            if (fits := int(share / cost.unit_bytes)) >= fewest:
                return min(fits, largest), at_once
    needed = cost.fixed_bytes + cost.lane_bytes + int(cost.unit_bytes)
    raise TooLittleMemory(
        f"the smallest chunk needs {needed:,} bytes of memory where {budget:,} are free:"
        f" free some, or give a larger {option('memory_fraction')}"
    )


def balanced(units: int, most: int, threads: int, each: int = CHUNKS_PER_THREAD) -> int:
    """Return a chunk size of at most `most` that gives every thread about `each` chunks."""
    return max(1, min(most, max(SMALLEST_CHUNK, -(-units // (threads * each)))))


def spans(units: int, size: int) -> Iterator[range]:
    """Yield consecutive ranges of at most `size` units."""
    for begin in range(0, units, size):
        yield range(begin, min(begin + size, units))
