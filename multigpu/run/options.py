"""Options of every run: where and how a job is carried out."""

import logging
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from multigpu.cluster.deploy.deployment import WorkEstimate
from multigpu.cluster.devices.gpus import Device, select, survey
from multigpu.cluster.devices.memory import CONTEXT_BYTES
from multigpu.cluster.engine.plan import MEMORY_FRACTION
from multigpu.errors import UsageError, option, spelled
from multigpu.kernels.compiled.caches import secure_cupy
from multigpu.run.declarations import Options, declare
from multigpu.run.values import Bytes, FilePath, Gpus

logger = logging.getLogger(__name__)

DEFAULT_CHUNK_BYTES = 64 << 20
GPUS_HELP = "GPUs to use: auto, all, none, or numbers and UUIDs (0,1 or 0-3 or GPU-5a1f…)."
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


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(Options, group="Devices"):
    """Workers that carry a job out, and its chunks; none of these options changes a result."""

    scheduler: str | None = declare(None, "Address of a running Dask scheduler.", "ADDRESS")
    scheduler_file: FilePath | None = declare(None, "File of a running Dask scheduler.")
    connect_timeout: float = declare(
        30.0, "Seconds to wait for the scheduler, or its file, to be there.", "SECONDS", above=0,
        group="Faults",
    )  # fmt: skip
    max_chunk_bytes: Bytes | None = declare(
        None, "Maximum chunk size in bytes, or as 64M.", at_least=1,
        default="automatic, 1 to 256 MiB",
    )  # fmt: skip
    threads: int = declare(
        0, "CPU threads, or chunks in progress on each GPU; 0: automatic.", at_least=0, at_most=MOST
    )
    workers: int = declare(
        0, "Worker processes on this machine; 0: automatic.", at_least=0, at_most=MOST,
        also=("processes",),
    )  # fmt: skip
    chunk_timeout: float | None = declare(
        None, "Seconds after which a chunk is also started on another worker.", "SECONDS", above=0,
        default="from the times of the other chunks", group="Faults",
    )  # fmt: skip
    worker_timeout: float = declare(
        60.0, "Seconds to wait for a worker when none is left.", "SECONDS", above=0, group="Faults"
    )

    def check(self) -> None:
        super().check()
        if "" in (self.scheduler, self.scheduler_file):
            both = f"{option('scheduler')} and {option('scheduler_file')}"
            raise UsageError(f"{both} must not be empty")
        if self.scheduler and self.scheduler_file:
            raise UsageError("give a scheduler's address or its file, not both")


@dataclass(frozen=True, kw_only=True)
class RunOptions(WorkerOptions, group="Devices"):
    """Place and manner of a run; none of these options changes a result."""

    gpus: Gpus = declare("auto", GPUS_HELP)
    memory_fraction: float = declare(
        MEMORY_FRACTION, "Share of a device's free memory to use.", above=0, at_most=1
    )
    cpu_fallback: bool = declare(
        True, "Use the CPU for chunks that do not fit on a GPU, and when a GPU fails.",
        group="Faults",
    )  # fmt: skip
    resume: bool = declare(
        False, "Continue an interrupted run.", default="start over", group="Faults"
    )

    def chunk_bytes(self, default: int = DEFAULT_CHUNK_BYTES) -> int:
        """Return the maximum size of a chunk in bytes; `default` unless the user gave one."""
        return default if self.max_chunk_bytes is None else self.max_chunk_bytes

    @property
    def remote(self) -> bool:
        """Return whether the workers of a running scheduler do the work."""
        return bool(self.scheduler or self.scheduler_file)

    def devices(self) -> tuple[Device, ...]:
        """Return the GPUs to use; auto takes none without CuPy, and warns. Raises UsageError."""
        if self.remote and self.gpus not in ("auto", "all", "none"):
            raise UsageError(
                f"{option('gpus')} {self.gpus}: the workers of a scheduler have their own GPUs;"
                f" give {option('gpus')} none for their CPUs, or nothing"
            )
        chosen = () if self.remote else self._with_room(select(str(self.gpus), survey()))
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
        logger.warning("multigpu: using the CPU, because %s", spelled(problem))
        return ()

    def _with_room(self, devices: tuple[Device, ...]) -> tuple[Device, ...]:
        """Return the devices with room for CUDA; the others are left out, with a warning."""
        full = [each for each in devices if each.total_bytes and each.free_bytes < CONTEXT_BYTES]
        for device in full:
            free = f"{device.free_bytes:,} bytes of its memory are free"
            problem = f"GPU {device.index} is left out: {free}, CUDA needs about {CONTEXT_BYTES:,}"
            if len(full) == len(devices) and not self.cpu_fallback:
                raise UsageError(problem)
            logger.warning("multigpu: %s", spelled(problem))
        return tuple(each for each in devices if each not in full)


@dataclass(frozen=True, kw_only=True)
class Request(RunOptions, group="Devices"):
    """Base of the requests of all commands and functions."""

    client: Any = declare(
        None, "A `dask.distributed.Client` to use instead of this machine.", only="Python"
    )

    @property
    def run(self) -> RunOptions:
        """Place and manner of the run."""
        return self.part(RunOptions)


@dataclass(frozen=True, kw_only=True)
class Resumable(Options, group="Faults"):
    """Base of requests whose result is computed as it is taken in Python."""

    journal: FilePath | None = declare(
        None, "A file that keeps what is finished, until all results were taken; with"
        " `resume=True` a run that was stopped continues from it.", only="Python",
    )  # fmt: skip

    @property
    def journal_path(self) -> Path | None:
        """Path of the journal; None where there is to be none."""
        return Path(self.journal) if self.journal else None
