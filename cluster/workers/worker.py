"""A worker: its jobs, each with a session on every device it is computed on; a chunk's life."""

import contextlib
import math
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic

from multigpu.cluster.devices import context, memory
from multigpu.cluster.engine.events import HISTORY, Event, TimedStep, step
from multigpu.cluster.engine.workload import P, Place, Session, Workload
from multigpu.cluster.errors import DeviceFailed, Failure, TooLittleMemory, Unfit, first_line

OWN = "own"  # the GPU of this lane or else of this worker, if it has one, in place of a UUID
# Pauses after which a session is opened again where memory ran out: others may give some back.
REOPEN_AFTER = (0.1, 0.3)  # seconds
TURN_SECONDS = 0.0001  # that a thread which launches kernels waits for one that finishes a chunk


class JobEnded(Failure):
    """Nobody waits for the chunk any more."""

    def __str__(self) -> str:
        return "the job has ended"


class Turns:
    """Turns of threads on a device: all may compute at once, fewer once memory has run out."""

    def __init__(self) -> None:
        self._most, self._now = math.inf, 0
        self._together = False  # whether several have computed at once since nobody did
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a turn, and have it for the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._now + 1 <= self._most)
            self._now += 1
            self._together |= self._now > 1
        try:
            yield
        finally:
            with self._changed:
                self._now -= 1
                self._together &= self._now > 0
                self._changed.notify_all()

    def allow_fewer(self) -> bool:
        """Halve the threads that compute at once; return False where only the caller did."""
        with self._changed:
            if self._together:
                self._most = max(1, min(self._most, self._now) // 2)
            return self._together

    def allow_more(self) -> None:
        """Allow one thread more after four chunks that fitted."""
        with self._changed:
            self._most += 0.25
            self._changed.notify_all()


class AdmittedJob:
    """A job that a worker computes chunks of.

    When it has ended, a chunk that is still in progress goes no further than to the end of its
    step, and closes the sessions.
    """

    def __init__(self, workload: Workload[Any, Any]) -> None:
        self.workload = workload
        self._ended = False
        self._chunks = 0  # in progress
        self._sessions: dict[int | None, Session[Any, Any]] = {}  # by device
        self._opening: dict[int | None, threading.Lock] = {}
        self.turns: dict[int | None, Turns] = {}  # by device
        self._full: dict[int | None, str] = {}  # devices without room for a session, and why
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def chunk_in_progress(self) -> Iterator[None]:
        """Keep the sessions open for the block."""
        with self._lock:
            self._chunks += 1
        try:
            yield
        finally:
            with self._lock:
                self._chunks -= 1
            self._close_unused()

    def session(self, device: int | None, worker: str) -> Session[Any, Any]:
        """Return the session on a device; others wait. Raises JobEnded, TooLittleMemory."""
        with self._lock:
            opening = self._opening.setdefault(device, threading.Lock())
        with opening:
            self.check()
            if device in self._full:
                raise TooLittleMemory(self._full[device])
            if device not in self._sessions:
                self._sessions[device] = self._open(device, worker)
                self.turns[device] = Turns()
            return self._sessions[device]

    def _open(self, device: int | None, worker: str) -> Session[Any, Any]:
        """Open a session, again where memory ran out. Raises TooLittleMemory, then and later."""
        for pause in (*REOPEN_AFTER, 0.0):
            try:
                memory.use(device)
                return self.workload.open(Place(worker, device, memory.free_bytes(device)))
            except Exception as error:
                if device is None or not memory.is_out_of_memory(error):
                    raise
                reason = first_line(error)
            memory.release_pool(device)
            time.sleep(pause)
        free = memory.free_bytes(device)
        self._full[device] = f"too little memory, {free:,} bytes are free there ({reason})"
        raise TooLittleMemory(self._full[device])

    def check(self) -> None:
        """Raise JobEnded where nobody waits for chunks any more."""
        if self._ended:
            raise JobEnded

    def end(self) -> None:
        """Close the sessions when no chunk is in progress any more."""
        with self._lock:
            self._ended = True
        self._close_unused()

    def _close_unused(self) -> None:
        with self._lock:
            if not self._ended or self._chunks:
                return
            sessions = list(self._sessions.items())
            self._sessions.clear()
        if sessions:
            _call_in_thread(lambda: _close_all(sessions))


def _close_all(sessions: list[tuple[int | None, Session[Any, Any]]]) -> None:
    """Close and drop all sessions, then raise the first error; a failed device keeps its own."""
    errors = []
    while sessions:
        device, session = sessions.pop()
        try:
            with contextlib.suppress(DeviceFailed, MemoryError), memory.device_errors(""):
                memory.use(device)
                session.close()
        except Exception as error:  # noqa: BLE001 - the others are closed first
            errors.append(error)
        # What the session held goes back to the pool, and then from the pool to the device.
        del session
        memory.release_pool(device)
    if errors:
        raise errors[0]


def _call_in_thread(function: Callable[[], None]) -> None:
    """Call it in a thread of its own, as the caller's CUDA device may be another one; wait."""
    with ThreadPoolExecutor(1, "closing") as pool:
        try:
            done = pool.submit(function)
        except RuntimeError:  # there are no more threads, as at the end of the interpreter
            function()
        else:
            done.result()


class AdmittedJobs:
    """The jobs of a worker, by key. While there are any, threads of Python take turns sooner."""

    def __init__(self) -> None:
        self._jobs: dict[str, AdmittedJob] = {}
        self._usual_turn = 0.0  # seconds
        self._lock = threading.Lock()

    def __getitem__(self, key: str) -> AdmittedJob:
        """Raises JobEnded."""
        if (job := self._jobs.get(key)) is None:
            raise JobEnded
        return job

    def admit(self, workload: Workload[Any, Any]) -> None:
        """Take chunks of this job from now on."""
        with self._lock:
            if not self._jobs:
                self._usual_turn = sys.getswitchinterval()
                sys.setswitchinterval(min(TURN_SECONDS, self._usual_turn))
            self._jobs.setdefault(workload.key, AdmittedJob(workload))

    def dismiss(self, key: str) -> None:
        """Forget a job: its memory is given back, and chunks that come late are refused."""
        with self._lock:
            job = self._jobs.pop(key, None)
            if job and not self._jobs:
                sys.setswitchinterval(self._usual_turn)
        if job:
            job.end()


@dataclass(frozen=True)
class Outcome(Generic[P]):
    """A part with the history of its chunk; device: cpu, gpu0, … ("", as worker, of a journal)."""

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
    """Return CUDA's number in this process for a `gpu` of `run_chunk`. Raises DeviceFailed."""
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
    """Compute on the device, or the CPU if it does not fit; raise Unfit if others shall do it."""
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
