"""The place where work is to run: threads of this process, or worker processes.

Threads begin at once, but share one Python interpreter, which keeps a few GPUs busy. Worker
processes, one for each GPU, have an interpreter each and take seconds to start. So a job gets them
where the user asks for them, and where they end it sooner although they start later.
"""

from dataclasses import dataclass

from multigpu.cluster.devices.gpus import Device

START_SECONDS = 8.0  # for eight worker processes; two take 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The place where work is to run.

    devices         GPUs of this machine to use; none means its CPU
    threads         CPU threads, or chunks in progress on each GPU
    processes       worker processes on this machine; 0: threads of this process do the work
    scheduler       address of a running scheduler, whose workers do the work, or
    scheduler_file  the file of one
    worker_timeout  seconds without any worker, or without an answer, after which a run fails
    cpu_fallback    whether the CPU may take over from a device that fails
    """

    devices: tuple[Device, ...] = ()
    threads: int = 1
    processes: int = 0
    scheduler: str | None = None
    scheduler_file: str | None = None
    connect_timeout: float = 30.0
    worker_timeout: float = 60.0
    cpu_fallback: bool = True

    @property
    def remote(self) -> bool:
        """Whether the workers of a running scheduler do the work."""
        return bool(self.scheduler or self.scheduler_file)

    @property
    def in_process(self) -> bool:
        """Whether threads of this process do the work."""
        return not (self.remote or self.processes)

    @property
    def gpus(self) -> list[str]:
        """The UUIDs of the devices."""
        return [device.uuid for device in self.devices]

    @property
    def workers(self) -> int:
        """Number of GPUs, else of processes; unknown of a running scheduler."""
        return len(self.devices) or max(1, self.processes)

    @property
    def lanes(self) -> int:
        """Threads of each worker: a GPU has all of `threads`, processes on CPUs share them."""
        return self.threads if self.devices else max(1, self.threads // self.workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEstimate:
    """An estimate of what a job needs, from the bytes of its input or the poses that it tries.

    seconds         of computing on one GPU
    gpus_kept_busy  GPUs that threads of one process keep busy
    reading         seconds of reading before anything is computed
    """

    seconds: float = 0.0
    gpus_kept_busy: int = 1
    reading: float = 0.0


def threads_or_processes(
    devices: tuple[Device, ...], asked: int, estimate: WorkEstimate
) -> tuple[tuple[Device, ...], int]:
    """Return the GPUs that a job uses, and its number of worker processes: 0 means threads.

    devices  GPUs of this machine that the job may use; none means its CPU
    asked    worker processes that the user asked for; 0: none
    """
    if asked:
        return devices, len(devices) or asked
    if len(devices) < 2:
        return devices, 0
    if any(device.mig for device in devices):  # CUDA shows a process one MIG instance
        return devices, len(devices)
    busy = min(len(devices), estimate.gpus_kept_busy)
    saved = estimate.seconds / busy - estimate.seconds / len(devices)
    if saved > max(0.0, START_SECONDS - estimate.reading):  # processes start meanwhile
        return devices, len(devices)
    return devices[:busy], 0
