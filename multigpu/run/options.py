"""Options of every run: where and how a job is carried out."""

import logging
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import inf
from typing import Any

from multigpu.cluster.deploy.threads_or_processes import WorkEstimate
from multigpu.cluster.devices.gpus import Device, select, survey
from multigpu.cluster.devices.memory import CONTEXT_BYTES
from multigpu.cluster.engine.plan import MEMORY_FRACTION
from multigpu.errors import UsageError
from multigpu.kernels.compiled.caches import secure_cupy
from multigpu.run.values import convert_fields, number, path_of, text_of, whole

logger = logging.getLogger(__name__)

DEFAULT_CHUNK_BYTES = 64 << 20
MOST = 4096  # threads, or processes, of one machine


@dataclass(frozen=True)
class GpuLanes:
    """Number of chunks in progress on each GPU: some load, some compute, some finish.

    most      the most on one GPU
    together  the most on all GPUs of a machine, unless each had fewer than `least`
    least     the fewest on one GPU
    estimate  estimate of the job's work, by which threads or worker processes are chosen
    alone     their number on the only GPU; None: as on others
    """

    most: int
    together: int = MOST
    least: int = 1
    estimate: WorkEstimate = field(default_factory=WorkEstimate)
    alone: int | None = None

    def each(self, gpus: int) -> int:
        """Return the number on each of `gpus` GPUs."""
        if gpus == 1 and self.alone is not None:
            return self.alone
        return min(self.most, max(self.least, self.together // gpus))


NO_LANES = GpuLanes(0)  # for jobs that run on CPUs only


@dataclass(frozen=True)
class RunOptions:
    """Options of a run; none of them changes a result.

    gpus             GPUs to use: "auto", "all", "none", or numbers and UUIDs: 0, "0,1" or "0-3"
    scheduler        address of a running Dask scheduler
    scheduler_file   file of a running Dask scheduler
    connect_timeout  seconds to wait for the scheduler, or its file, to be there
    memory_fraction  share of a device's free memory to use
    max_chunk_bytes  maximum chunk size in bytes; None: automatic, 48 to 256 MiB
    threads          CPU threads, or chunks in progress on each GPU; 0: automatic
    processes        worker processes on this machine; 0: automatic
    mixed            whether workers without a GPU are used beside those with one
    resume           whether to continue an interrupted run
    cpu_fallback     whether the CPU computes what does not fit on a GPU, or a failed GPU leaves
    chunk_timeout    seconds after which a chunk is also started on another worker; None: by the
                     time that other chunks took
    worker_timeout   seconds to wait for a worker when none is left
    dashboard        whether local clusters serve Dask's status page
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
        convert_fields(self, _gpus_of, "gpus")
        convert_fields(self, text_of, "scheduler")
        convert_fields(self, path_of, "scheduler_file")
        timeouts = ("connect_timeout", "worker_timeout", "chunk_timeout")
        convert_fields(self, number, "memory_fraction", *timeouts)
        convert_fields(self, whole, "max_chunk_bytes", "threads", "processes")
        if not 0 < self.memory_fraction <= 1:
            raise UsageError(
                f"memory_fraction is {self.memory_fraction:g}; it must be above 0, at most 1"
            )
        if self.max_chunk_bytes is not None and self.max_chunk_bytes < 1:
            raise UsageError(f"--max-chunk-bytes {self.max_chunk_bytes}: it must be 1 or more")
        for name in timeouts:
            seconds = getattr(self, name)
            if seconds is not None and not 0 < seconds < inf:
                raise UsageError(f"{name} is {seconds:g}; it must be positive")
        for option, count in (("--threads", self.threads), ("--workers", self.processes)):
            if count < 0:
                raise UsageError(f"{option} {count}: it must be 0 or more")
        if max(self.threads, self.processes) > MOST:
            raise UsageError(f"--threads and --workers are at most {MOST:,}")
        if "" in (self.scheduler, self.scheduler_file):
            raise UsageError("--scheduler and --scheduler-file must not be empty")
        if self.scheduler and self.scheduler_file:
            raise UsageError("give a scheduler's address or its file, not both")

    def chunk_bytes(self, default: int = DEFAULT_CHUNK_BYTES) -> int:
        """Return the maximum size of a chunk in bytes; `default` unless the user gave one."""
        return default if self.max_chunk_bytes is None else self.max_chunk_bytes

    @property
    def remote(self) -> bool:
        """Return whether the workers of a running scheduler do the work."""
        return bool(self.scheduler or self.scheduler_file)

    def devices(self) -> tuple[Device, ...]:
        """Return the GPUs of this machine to use. Raises UsageError for one that cannot be used.

        With --gpus auto and without CuPy the CPU is used, with a warning.
        """
        if self.remote and self.gpus not in ("auto", "all", "none"):
            raise UsageError(
                f"--gpus {self.gpus}: the workers of a scheduler have their own GPUs;"
                " give --gpus none for their CPUs, or nothing"
            )
        chosen = () if self.remote else self._with_room(select(self.gpus, survey()))
        if not chosen:
            return ()
        secure_cupy()  # before anybody imports it
        needed = ("cupy",) if len(chosen) == 1 else ("cupy", "dask_cuda")
        missing = [name for name in needed if find_spec(name) is None]
        if not missing:
            return chosen
        problem = f"{missing[0]} is not installed: pip install 'multigpu[cu13]' or [cu12]"
        if self.gpus != "auto":
            raise UsageError(f"GPUs cannot be used: {problem}")
        logger.warning("multigpu: using the CPU, because %s", problem)
        return ()

    def _with_room(self, devices: tuple[Device, ...]) -> tuple[Device, ...]:
        """Return the devices with room for CUDA; the others are left out, with a warning."""
        full = [each for each in devices if each.total_bytes and each.free_bytes < CONTEXT_BYTES]
        for device in full:
            free = f"{device.free_bytes:,} bytes of its memory are free"
            problem = f"GPU {device.index} is left out: {free}, CUDA needs about {CONTEXT_BYTES:,}"
            if len(full) == len(devices) and not self.cpu_fallback:
                raise UsageError(problem)
            logger.warning("multigpu: %s", problem)
        return tuple(each for each in devices if each not in full)


def _gpus_of(name: str, value: Any) -> str:
    """Return devices as `--gpus` takes them; from Python they may be numbers, too, or a list."""
    if isinstance(value, list | tuple):
        return ",".join(_gpus_of(name, each) for each in value) or "none"
    return str(value) if type(value) is int else text_of(name, value)
