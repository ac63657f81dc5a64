"""The jobs of a worker, each with a session on every device that it is computed on."""

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from multigpu.cluster.devices import memory
from multigpu.cluster.engine.workload import Place, Session, Workload
from multigpu.cluster.errors import DeviceFailed, Failure, TooLittleMemory, first_line

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
        """Return the session of this job on this device; the first caller opens it, others wait.

        Raises JobEnded, and TooLittleMemory where a device has no room for it.
        """
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
    """Empty the list of devices and sessions. Raises the first error when all are closed.

    A device that has failed keeps what it has.
    """
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
    """The jobs of a worker, by their keys.

    Threads take the interpreter from each other sooner as long as there are any.
    """

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
