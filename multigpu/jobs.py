"""What all jobs share: where they run, and what they have done so far."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic

from cluster import deploy, dispatch, worker
from cluster.deploy import GPU_LANES, DaskWorkers, Deployment, Workers
from cluster.devices import Device
from cluster.workload import P, S, Workload
from multigpu.config import RunOptions

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def path_list(paths: Paths) -> list[str]:
    """One path or several, as texts."""
    if isinstance(paths, str | os.PathLike):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


@dataclass
class Facts(Generic[P]):
    """What a run has done so far."""

    chunks: int = 0
    seconds: dict[str, float] = field(default_factory=dict)  # of each step, over all threads
    spans: list[tuple[str, str, float, float]] = field(default_factory=list)

    def add(self, outcome: worker.Outcome[P]) -> None:
        self.chunks += 1
        for step in outcome.steps:
            spent = self.seconds.get(step.name, 0.0)
            self.seconds[step.name] = spent + step.end - step.begin
            self.spans.append((outcome.worker, step.name, step.begin, step.end))


@dataclass(frozen=True)
class Capacity:
    """What there is to compute with, for a plan.

    free     bytes on the device that has least
    threads  of all workers together
    lanes    of the worker that has most: chunks in hand at a time
    """

    free: int
    threads: int
    lanes: int


class Job:
    """Runs a workload's spans where the options say, or on the workers of a client."""

    def __init__(
        self, run: RunOptions, client: Any = None, devices: tuple[Device, ...] | None = None
    ) -> None:
        self.run, self.client = run, client
        if devices is None:
            devices = () if client else run.devices()
        self.devices = devices

    @property
    def threads(self) -> int:
        """Chunks in hand at a time on each local worker."""
        if self.devices:
            return self.run.threads or min(GPU_LANES, max(2, len(os.sched_getaffinity(0))))
        return self.run.threads or len(os.sched_getaffinity(0))

    @property
    def remote(self) -> bool:
        """Whether the workers may not see this machine's files."""
        return bool(self.client) or self.run.elsewhere

    def capacity(self, workers: Workers | None = None) -> Capacity:
        """Of the workers; without any, of this machine."""
        if workers is not None and self.remote:
            free = min(workers.everywhere(worker.free_bytes, workers.gpu).values())
        elif self.devices:
            free = min(device.free_bytes for device in self.devices)
        else:
            free = worker.free_bytes(None)
        if workers is None:
            return Capacity(free, self.threads * max(1, len(self.devices)), self.threads)
        return Capacity(free, workers.threads, workers.lanes)

    @contextmanager
    def workers(self) -> Iterator[Workers]:
        """The workers; what was started for them ends with the block."""
        with ExitStack() as stack:
            if self.client is not None:
                found: Workers = DaskWorkers(self.client, worker.FIRST)
            else:
                found = stack.enter_context(deploy.workers(self._deployment()))
            if self.run.gpus == "none":
                found.gpu = None
            yield found

    def _deployment(self) -> Deployment:
        return Deployment(
            self.devices,
            self.threads,
            self.run.processes,
            self.run.scheduler,
            self.run.scheduler_file,
            self.run.connect_timeout,
        )

    def dispatched(
        self, workers: Workers, workload: Workload[S, P], spans: Iterable[S], facts: Facts[P]
    ) -> Iterator[worker.Outcome[P]]:
        """The outcomes in order, counted. Raises what stopped the job."""
        for outcome in dispatch.dispatch(workers, workload, spans):
            facts.add(outcome)
            yield outcome
