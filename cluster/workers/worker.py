"""A worker: its state, and the life of a chunk."""

import contextlib
import os
import platform
import threading
from dataclasses import dataclass, field
from typing import Any, Generic

from multigpu.cluster.devices import context, memory
from multigpu.cluster.engine.events import Event
from multigpu.cluster.engine.workload import P, Place, Session
from multigpu.cluster.errors import DeviceFailed, Failure, TooLittleMemory, Unfit
from multigpu.cluster.workers.history import HISTORY, TimedStep, step
from multigpu.cluster.workers.jobs import AdmittedJob, AdmittedJobs, JobEnded, Turns

OWN = "own"  # the GPU of this lane or else of this worker, if it has one, in place of a UUID


@dataclass(frozen=True)
class Outcome(Generic[P]):
    """A part with the history of its chunk.

    device: cpu, gpu0, …; it and the worker are empty for a part of a journal
    """

    part: P
    worker: str = ""
    device: str = ""
    steps: tuple[TimedStep, ...] = ()
    events: tuple[Event, ...] = ()


@dataclass
class LaneDevice(threading.local):
    """A thread that feeds a device. gpu: the UUID of the device, or OWN for that of the worker."""

    gpu: str = OWN


@dataclass
class Worker:
    """State of this process as a worker.

    name  by default that of the machine and the number of the process
    jobs  of which chunks may come
    lane  of the calling thread
    """

    name: str = field(default_factory=lambda: f"{platform.node()}:{os.getpid()}")
    jobs: AdmittedJobs = field(default_factory=AdmittedJobs)
    lane: LaneDevice = field(default_factory=LaneDevice)

    @property
    def device_name(self) -> str:
        """Name of this worker, with the GPU of this lane where each has its own."""
        return self.name if self.lane.gpu == OWN else f"{self.name}:{self.lane.gpu}"


# A task of Dask is a function and values: it finds the worker here.
WORKER = Worker()


def place_of(gpu: str | None) -> Place:
    """Return where this worker computes, and the memory that is free there; see `device_of`."""
    device = device_of(gpu)
    return Place(WORKER.name, device, memory.free_bytes(device))


def device_of(gpu: str | None) -> int | None:
    """Return CUDA's number in this process for what `run_chunk` calls `gpu`.

    Raises DeviceFailed where CUDA does not see the GPU, or does not start.
    """
    if gpu is None:
        return None
    gpu = WORKER.lane.gpu if gpu == OWN else gpu
    if gpu != OWN:
        try:
            return context.ordinal(gpu)
        except Failure as error:
            raise DeviceFailed(WORKER.device_name, f"{error}") from error
    if not memory.cupy_problem():
        import cupy

        if cupy.is_available():
            return 0
    return None


def start_device(gpu: str | None) -> None:
    """Start CUDA on a GPU, so that the first chunk need not wait for it; see `device_of`."""
    memory.free_bytes(device_of(gpu))


def run_chunk(key: str, gpu: str | None, span: Any, cpu_fallback: bool = True) -> Outcome[Any]:
    """Load, compute and finish one span.

    gpu: the UUID of the device to use, None for the CPU, OWN for that of the lane or the worker.
    Raises what the steps raise; DeviceFailed when the device is of no more use; Failure where the
    memory does not suffice for the smallest piece; JobEnded.
    """
    job = WORKER.jobs[key]
    HISTORY.start()
    with job.chunk_in_progress(), contextlib.suppress(JobEnded):
        return _outcome(job, device_of(gpu), span, cpu_fallback)
    raise JobEnded  # again, without the traceback, which would hold all that the chunk held


def _outcome(job: AdmittedJob, device: int | None, span: Any, cpu_fallback: bool) -> Outcome[Any]:
    """Compute the part on the device or, where it does not fit, on the CPU.

    Raises Unfit where nothing of the job fits on the device, and others are to do it.
    """
    try:
        return _outcome_on(job, device, span)
    except MemoryError as error:
        reason = f"{error}" or "there is not enough memory"
        if isinstance(error, TooLittleMemory):
            if device is None:
                raise
            if not cpu_fallback or WORKER.lane.gpu != OWN:
                raise Unfit(WORKER.device_name, reason) from error
    memory.release_pool(device)
    if device is not None and cpu_fallback:
        HISTORY.add_event("on_cpu", reason=reason)
        return _outcome(job, None, span, cpu_fallback)
    raise Failure(f"{job.workload.name(span)}: {reason}")


def _outcome_on(job: AdmittedJob, device: int | None, span: Any) -> Outcome[Any]:
    """Compute the part on a device. Raises MemoryError where the smallest piece does not fit."""
    with memory.device_errors(WORKER.device_name):
        session = job.session(device, WORKER.name)
        memory.use(device)
        with step("load"):
            loaded = session.load(span)
        job.check()
        with step("compute"):
            computed = _compute_or_halve(session, job.turns[device], device, loaded)
        job.check()  # another job may write to the same place by now
        with step("finish"):
            part = session.finish(loaded, computed)
    kind = "cpu" if device is None else f"gpu{device}"
    return Outcome(part, WORKER.name, kind, tuple(HISTORY.steps), tuple(HISTORY.events))


def _compute_or_halve(
    session: Session[Any, Any], turns: Turns, device: int | None, loaded: Any
) -> Any:
    """Compute; what does not fit beside others waits for them, what does not fit alone is halved.

    Nothing of the failed attempt may stay alive while it is tried again, an exception's traceback
    included; so that is done outside of its block. Raises MemoryError for what cannot be halved.
    """
    while True:
        with turns.take():
            with contextlib.suppress(MemoryError), memory.device_errors(WORKER.device_name):
                computed = session.compute(loaded)
                turns.allow_more()
                return computed
            is_alone = not turns.allow_fewer()
        memory.release_pool(device)
        free = memory.free_bytes(device)
        if is_alone:
            break
        HISTORY.add_event("fewer", bytes=session.need(loaded), free=free)
    halves = session.halves(loaded)
    if not halves:
        raise MemoryError(
            f"about {session.need(loaded):,} bytes of memory are needed and {free:,} are"
            " free, and it cannot be divided further"
        )
    HISTORY.add_event("split", bytes=session.need(loaded), free=free)
    parts = [_compute_or_halve(session, turns, device, half) for half in halves]
    return session.joined(loaded, halves, parts)
