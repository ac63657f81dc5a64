"""Where work is to run."""

from dataclasses import dataclass

from multigpu.cluster.devices.gpus import Device


@dataclass(frozen=True)
class Deployment:
    """Where the work is to run.

    devices    the GPUs of this machine to use; none means its CPU
    threads    CPU threads, or chunks in hand per GPU
    processes  workers as processes of their own even without several GPUs (0: as few as possible)
    head_start      the first devices, on which threads of this process begin before worker
                    processes are started; 0: none
    worker_timeout  seconds without any worker, or without an answer, after which a run fails
    cpu_fallback    whether the CPU may take over from a device that fails
    dashboard       whether Dask's status page is served, on the loopback
    """

    devices: tuple[Device, ...] = ()
    threads: int = 1
    processes: int = 0
    head_start: int = 0
    scheduler: str | None = None
    scheduler_file: str | None = None
    connect_timeout: float = 30.0
    worker_timeout: float = 60.0
    cpu_fallback: bool = True
    dashboard: bool = False

    @property
    def remote(self) -> bool:
        """Whether a running cluster does the work."""
        return bool(self.scheduler or self.scheduler_file)

    @property
    def workers(self) -> int:
        """How many there are, this process included, unless a running cluster has them."""
        return len(self.devices) or max(1, self.processes)

    @property
    def lanes(self) -> int:
        """Threads of each: a GPU has all of `threads`, the CPU's are divided."""
        return self.threads if self.devices else max(1, self.threads // self.workers)

    @property
    def in_process(self) -> bool:
        """Whether threads of this process do it."""
        return not self.remote and len(self.devices) < 2 and not self.processes

    @property
    def local_cluster(self) -> bool:
        """Whether processes of this machine do it, which are started for that."""
        return not (self.remote or self.in_process)

    @property
    def own_threads(self) -> int:
        """Threads of this process that work."""
        return self.lanes * max(len(self.own_gpus), int(self.in_process))

    @property
    def own_gpus(self) -> list[str]:
        """The UUIDs of the devices that this process works with."""
        count = 1 if self.in_process else self.head_start
        return [device.uuid for device in self.devices[:count]]
