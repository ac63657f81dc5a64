"""Where and how a job runs, as one frozen object that is handed on whole."""

import logging
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import inf

from multigpu.cluster.deploy.threads_or_processes import WorkEstimate
from multigpu.cluster.devices.gpus import Device, select, survey
from multigpu.cluster.engine.plan import MEMORY_FRACTION
from multigpu.errors import UsageError
from multigpu.run.values import convert_fields, number, path_of, text_of, whole

logger = logging.getLogger(__name__)

DEFAULT_CHUNK_BYTES = 64 << 20
MOST = 4096  # threads, or processes, of one machine


@dataclass(frozen=True)
class Lanes:
    """How many chunks are in hand on each GPU: some load, some compute, some finish.

    most      where that is useful
    alone     on the only GPU; None: as many as on others
    together  on all GPUs of a machine, unless each had fewer than `least`
    estimate  of the job's work, by which threads or worker processes are chosen
    """

    most: int
    together: int = MOST
    least: int = 1
    estimate: WorkEstimate = field(default_factory=WorkEstimate)
    alone: int | None = None

    def each(self, gpus: int) -> int:
        """How many there are on one of so many GPUs."""
        if gpus == 1 and self.alone is not None:
            return self.alone
        return min(self.most, max(self.least, self.together // gpus))


NO_LANES = Lanes(0)  # of what CPUs alone do


@dataclass(frozen=True)
class RunOptions:
    """Where and how a job runs; none of it changes a result.

    max_chunk_bytes no chunk is larger; None: as serves the job, 32 MB to 256 MiB
    threads         CPU threads, or chunks in hand per GPU; 0: as many as serve
    processes       worker processes on this machine; 0: as few as possible
    mixed           whether workers without a GPU may help those that have one
    resume          whether to go on with what a run that was stopped has left
    cpu_fallback    whether the CPU does what does not fit on a GPU, or what a broken one leaves
    chunk_timeout   seconds after which a chunk is begun on another worker, too; None: by the others
    worker_timeout  seconds without any worker after which the run fails
    dashboard       whether local clusters serve Dask's status page
    """

    gpus: str = "auto"
    scheduler: str | None = None
    scheduler_file: str | None = None
    connect_timeout: float = 30.0
    memory_fraction: float = MEMORY_FRACTION
    max_chunk_bytes: int | None = None
    threads: int = 0
    processes: int = 0
    mixed: bool = False
    resume: bool = False
    cpu_fallback: bool = True
    chunk_timeout: float | None = None
    worker_timeout: float = 60.0
    dashboard: bool = False

    def __post_init__(self) -> None:
        convert_fields(self, text_of, "gpus", "scheduler")
        convert_fields(self, path_of, "scheduler_file")
        convert_fields(self, number, "memory_fraction", "connect_timeout", "chunk_timeout")
        convert_fields(self, number, "worker_timeout")
        convert_fields(self, whole, "max_chunk_bytes", "threads", "processes")
        if not 0 < self.memory_fraction <= 1:
            raise UsageError(f"memory fraction {self.memory_fraction:g}: it lies between 0 and 1")
        if self.max_chunk_bytes is not None and self.max_chunk_bytes < 1:
            raise UsageError(f"chunks of {self.max_chunk_bytes} bytes are not possible")
        for name in ("connect_timeout", "worker_timeout", "chunk_timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not 0 < seconds < inf:
                raise UsageError(f"{name.replace('_', ' ')} {seconds:g}: it must be positive")
        for option, count in (("--threads", self.threads), ("--workers", self.processes)):
            if count < 0:
                raise UsageError(f"{option} {count}: it must be 0 or more")
        if max(self.threads, self.processes) > MOST:
            raise UsageError(f"one machine has no use for more than {MOST:,} threads or processes")
        if "" in (self.scheduler, self.scheduler_file):
            raise UsageError("the scheduler's address, or its file, has no name")
        if self.scheduler and self.scheduler_file:
            raise UsageError("give a scheduler's address or its file, not both")

    def chunk_bytes(self, serves: int = DEFAULT_CHUNK_BYTES) -> int:
        """The most bytes of a chunk, where `serves` is what serves the job."""
        return serves if self.max_chunk_bytes is None else self.max_chunk_bytes

    @property
    def elsewhere(self) -> bool:
        """Whether a running cluster does the work."""
        return bool(self.scheduler or self.scheduler_file)

    def devices(self) -> tuple[Device, ...]:
        """The GPUs of this machine to use. Raises UsageError for one that cannot be used.

        Where the choice is free and CuPy is missing it is the CPU, and that is said.
        """
        if self.elsewhere and self.gpus not in ("auto", "all", "none"):
            raise UsageError(
                f"--gpus {self.gpus}: the workers of a scheduler have their own GPUs;"
                " give --gpus none for their CPUs, or nothing"
            )
        chosen = () if self.elsewhere else select(self.gpus, survey())
        if not chosen:
            return ()
        missing = [name for name in _needed(len(chosen)) if find_spec(name) is None]
        if not missing:
            return chosen
        problem = f"{missing[0]} is not installed: pip install 'multigpu[cu13]' or [cu12]"
        if self.gpus != "auto":
            raise UsageError(f"GPUs cannot be used: {problem}")
        logger.warning("multigpu: using the CPU, because %s", problem)
        return ()


def _needed(devices: int) -> tuple[str, ...]:
    return ("cupy",) if devices == 1 else ("cupy", "dask_cuda")
