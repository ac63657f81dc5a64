"""What runs on a worker: sessions, one for each job, and the life of a chunk."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from cluster import context
from cluster.errors import Failure
from cluster.workload import P, S, Session, Workload


@dataclass(frozen=True)
class Here:
    """A place of this process."""

    gpu: int | None
    free_bytes: int


@dataclass(frozen=True)
class Step:
    """When a step of a chunk ran: seconds of the clock that all processes of a machine share."""

    name: str
    begin: float
    end: float


@dataclass(frozen=True)
class Outcome(Generic[P]):
    """A part with the history of its chunk."""

    part: P
    worker: str
    steps: tuple[Step, ...]


_sessions: dict[str, Session[Any, Any]] = {}
_ended: set[str] = set()  # keys of jobs, so that a late chunk of one does not open it again
_lock = threading.Lock()


FIRST = "first"


def run_chunk(workload: Workload[S, P], gpu: str | None, span: S) -> Outcome[P]:
    """Load, compute and finish one span.

    gpu: the UUID of the device to use, None for the CPU, FIRST for the one of this worker, if any.
    """
    device = device_of(gpu)
    session = _session(workload, device)
    steps: list[Step] = []
    loaded = _timed(steps, "load", lambda: session.load(span))
    computed = _timed(steps, "compute", lambda: session.compute(loaded))
    part = _timed(steps, "finish", lambda: session.finish(loaded, computed))
    return Outcome(part, f"{os.getpid()}:{'cpu' if device is None else device}", tuple(steps))


def _timed(steps: list[Step], name: str, run: Callable[[], Any]) -> Any:
    begin = time.monotonic()
    result = run()
    steps.append(Step(name, begin, time.monotonic()))
    return result


def _session(workload: Workload[S, P], device: int | None) -> Session[S, P]:
    with _lock:  # the first chunk sets up, the others wait for it
        if workload.key in _ended:
            raise Failure("the job has ended")
        if workload.key not in _sessions:
            _sessions[workload.key] = workload.open(Here(device, _free_bytes(device)))
        return _sessions[workload.key]


def close(key: str) -> None:
    """Forget a job: its memory is given back."""
    with _lock:
        _ended.add(key)
        session = _sessions.pop(key, None)
    if session is not None:
        session.close()


def device_of(gpu: str | None) -> int | None:
    """CUDA's number in this process for what `run_chunk` calls `gpu`."""
    if gpu is None:
        return None
    if gpu != FIRST:
        return context.ordinal(gpu)
    with contextlib.suppress(ImportError):
        import cupy

        if cupy.is_available():
            return 0
    return None


def free_bytes(gpu: str | None) -> int:
    """Memory that is free on a device, or available on the host."""
    device = device_of(gpu)
    return _free_bytes(device)


def _free_bytes(device: int | None) -> int:
    if device is None:
        import psutil

        return int(psutil.virtual_memory().available)
    import cupy

    with cupy.cuda.Device(device):
        return int(cupy.cuda.runtime.memGetInfo()[0])
