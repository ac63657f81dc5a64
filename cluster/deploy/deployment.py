"""The place where work is to run."""

from dataclasses import dataclass

from multigpu.cluster.devices.gpus import Device


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
