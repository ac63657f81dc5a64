"""What runs on a worker: jobs, a session for each, and the life of a chunk."""

import atexit
import contextlib
import os
import platform
import resource
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic

from multigpu.cluster.devices import context
from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.engine.workload import P, Session, Workload
from multigpu.cluster.errors import DeviceFailed, Failure, first_line

OWN = "own"  # the GPU of this thread or else of this worker, if it has one, in place of a UUID
OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY
DEVICE_ERRORS = ("CUDARuntimeError", "CUDADriverError")  # CuPy's, which need not be installed
TURN_SECONDS = 0.0001  # that a thread which launches kernels waits for one that finishes a chunk


@dataclass(frozen=True)
class Here:
    """A place of this process."""

    worker: str
    gpu: int | None
    free_bytes: int


@dataclass(frozen=True)
class Step:
    """When a step of a chunk ran: seconds since 1970; the thread it ran in."""

    name: str
    begin: float
    end: float
    thread: int


@dataclass(frozen=True)
class Outcome(Generic[P]):
    """A part with the history of its chunk. device: cpu, gpu0, …; empty for one of a journal."""

    part: P
    worker: str = ""
    device: str = ""
    steps: tuple[Step, ...] = ()
    events: tuple[Event, ...] = ()


class _Ended(Failure):
    """Nobody waits for the chunk any more."""

    def __str__(self) -> str:
        return "the job has ended"


@dataclass
class _History(threading.local):
    """Of the chunk that a thread is at."""

    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


_name = f"{platform.node()}:{os.getpid()}"
_jobs: dict[str, Workload[Any, Any]] = {}
_sessions: dict[tuple[str, int | None], Session[Any, Any]] = {}
_at_hand: Counter[str] = Counter()  # chunks of each job
_opening: dict[tuple[str, int | None], threading.Lock] = {}
_lock = threading.RLock()
_history = _History()
_thread = threading.local()
_usual_turn: float | None = None  # of this process's threads, while there are jobs


# ---- jobs -------------------------------------------------------------------------------------


def called(name: str) -> None:
    """Give this worker a name; without, it is the machine's and the process's number."""
    global _name
    _name = name


def name() -> str:
    return _name


def end_at_once() -> None:
    """For a process that only is a worker: to take apart what it has loaded takes a while.

    Its exit status is 0 then, whatever it ends for; nobody asks for it.
    """
    atexit.register(_end)


def _end() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def admit(workload: Workload[Any, Any]) -> None:
    """Chunks of this job may come."""
    with _lock:
        _jobs[workload.key] = workload
        _set_turns()


def dismiss(key: str) -> None:
    """Forget a job: its memory is given back, and chunks that come late find nothing.

    Where a chunk is still at hand it goes no further than to the end of its step, and takes the
    session with it.
    """
    with _lock:
        _jobs.pop(key, None)
        _set_turns()
    _close_ended(key)


def _set_turns() -> None:
    """Threads take the interpreter from each other sooner as long as there are jobs."""
    global _usual_turn
    if _jobs and _usual_turn is None:
        _usual_turn = sys.getswitchinterval()
        sys.setswitchinterval(min(TURN_SECONDS, _usual_turn))
    elif not _jobs and _usual_turn is not None:
        sys.setswitchinterval(_usual_turn)
        _usual_turn = None


def _close_ended(key: str) -> None:
    """The sessions of a job, if it has ended and none of its chunks is at hand."""
    with _lock:
        if key in _jobs or _at_hand[key]:
            return
        del _at_hand[key]
        places = [place for place in _sessions if place[0] == key]
        ended = [(_sessions.pop(place), place[1]) for place in places]
        for place in [place for place in _opening if place[0] == key]:
            del _opening[place]
    if ended:
        _apart(lambda: _close(ended))


def _close(ended: list[tuple[Session[Any, Any], int | None]]) -> None:
    """Empties the list of sessions and their devices. Raises the first error when all are closed.

    A device that has failed keeps what it has.
    """
    errors = []
    while ended:
        session, device = ended.pop()
        try:
            with contextlib.suppress(DeviceFailed, MemoryError), _device_errors():
                _use(device)
                session.close()
        except Exception as error:  # noqa: BLE001 - the others are closed first
            errors.append(error)
        del session  # what it held is given back to the pool, and the pool's to the device
        with contextlib.suppress(DeviceFailed, MemoryError), _device_errors():
            _release_pool(device)
    if errors:
        raise errors[0]


def _apart(function: Callable[[], None]) -> None:
    """In a thread of its own, as the caller's CUDA device may be another one. Waits for it."""
    with ThreadPoolExecutor(1, "closing") as pool:
        try:
            done = pool.submit(function)
        except RuntimeError:  # there are no more threads: at the end of the interpreter, say
            function()
        else:
            done.result()


@contextlib.contextmanager
def _handling(key: str) -> Iterator[None]:
    """Around a chunk of a job."""
    with _lock:
        _at_hand[key] += 1
    try:
        yield
    finally:
        with _lock:
            _at_hand[key] -= 1
        _close_ended(key)


def _job(key: str) -> Workload[Any, Any]:
    if (job := _jobs.get(key)) is None:
        raise _Ended
    return job


def _session(key: str, device: int | None) -> Session[Any, Any]:
    """That of a job on a device. The first chunk sets it up, the others there wait for it."""
    place = (key, device)
    with _lock:
        opening = _opening.setdefault(place, threading.Lock())
    with opening:
        job = _job(key)
        session = _sessions.get(place)
        if session is None:
            session = job.open(Here(_name, device, free(device)))
            with _lock:
                _sessions[place] = session
        return session


# ---- a chunk ----------------------------------------------------------------------------------


def run_chunk(key: str, gpu: str | None, span: Any, cpu_fallback: bool = True) -> Outcome[Any]:
    """Load, compute and finish one span.

    gpu: the UUID of the device to use, None for the CPU, OWN for that of the thread or the worker.
    Raises what the steps raise; DeviceFailed when the device is of no more use; Failure where the
    memory does not suffice for the smallest piece, or the job has ended.
    """
    with _handling(key), contextlib.suppress(_Ended):  # with it goes all that the chunk held
        return _outcome(key, device_of(gpu), span, cpu_fallback)
    raise _Ended


def _outcome(key: str, device: int | None, span: Any, cpu_fallback: bool) -> Outcome[Any]:
    _history.steps, _history.events = [], []
    reason = ""
    for place in (device, None) if device is not None and cpu_fallback else (device,):
        if reason:
            _tell("on_cpu", reason=reason)
        try:
            with _device_errors():
                part = _part(key, place, span)
            kind = "cpu" if place is None else f"gpu{place}"
            return Outcome(part, _name, kind, tuple(_history.steps), tuple(_history.events))
        except MemoryError as error:
            reason = str(error) or "the memory does not suffice"
        _release_pool(place)
    raise Failure(f"{_job(key).name(span)}: {reason}")


def _part(key: str, device: int | None, span: Any) -> Any:
    """The part of a span. Raises MemoryError where the smallest piece of it does not fit."""
    _use(device)
    session = _session(key, device)
    with step("load"):
        loaded = session.load(span)
    _job(key)
    with step("compute"):
        computed = _computed(session, device, loaded)
    _job(key)  # another one may write to the same place by now
    with step("finish"):
        return session.finish(loaded, computed)


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Time a step of the chunk that this thread is at; sessions may time parts of theirs."""
    begin = now()
    yield
    stepped(name, begin, now())


def stepped(name: str, begin: float, end: float) -> None:
    """A step that was timed elsewhere, as on the device."""
    _history.steps.append(Step(name, begin, end, threading.get_native_id()))


def stepped_on_device(seconds: dict[str, float]) -> None:
    """Steps that ran on the device one after the other, the last of them until now."""
    end = now()
    for name, spent in reversed(seconds.items()):
        stepped(name, end - spent, end)
        end -= spent


def _tell(name: str, **facts: Any) -> None:
    _history.events.append(Event(name, facts=facts))


def _computed(session: Session[Any, Any], device: int | None, loaded: Any) -> Any:
    """Compute; what does not fit is halved. Raises MemoryError for what cannot be halved.

    Nothing of the failed attempt may stay alive while the halves are computed, an exception's
    traceback included; so they are computed outside of its block.
    """
    fits = device is None or session.need(loaded) <= free(device) + _pooled(device)
    halves = () if fits else session.halves(loaded)
    if not halves:
        with contextlib.suppress(MemoryError), _device_errors():
            return session.compute(loaded)
        _release_pool(device)
        halves = session.halves(loaded)
    if not halves:
        raise MemoryError(
            f"about {session.need(loaded):,} bytes of memory are needed and {free(device):,} are"
            " free, and it cannot be divided further"
        )
    _tell("split", bytes=session.need(loaded), free=free(device))
    computed = [_computed(session, device, half) for half in halves]
    return session.joined(loaded, halves, computed)


@contextlib.contextmanager
def _device_errors() -> Iterator[None]:
    """Errors of CUDA as what they mean: no memory, or a device that is lost for this process."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ not in DEVICE_ERRORS:
            raise
        reason = first_line(error)
        if getattr(error, "status", None) == OUT_OF_MEMORY:
            raise MemoryError(reason) from error
        raise DeviceFailed(_name, reason) from error


# ---- devices and memory -----------------------------------------------------------------------


def takes(gpu: str) -> None:
    """The GPU of this thread, by its UUID."""
    _thread.gpu = gpu


def device_of(gpu: str | None) -> int | None:
    """CUDA's number in this process for what `run_chunk` calls `gpu`."""
    if gpu is None:
        return None
    gpu = getattr(_thread, "gpu", OWN) if gpu == OWN else gpu
    if gpu != OWN:
        return context.ordinal(gpu)
    with contextlib.suppress(ImportError):
        import cupy

        if cupy.is_available():
            return 0
    return None


def _use(device: int | None) -> None:
    """What CUDA does for this thread is on this device from now on.

    There is no way back, as it would end on GPU 0, where CUDA would make a context for it.
    """
    if device is not None:
        import cupy

        cupy.cuda.Device(device).use()


def free_bytes(gpu: str | None) -> int:
    """Memory that is free on a device, or available on the host."""
    return free(device_of(gpu))


def free(device: int | None) -> int:
    """The same for CUDA's number of a device; None for the host."""
    if device is None:
        import psutil

        return min(int(psutil.virtual_memory().available), _address_space())
    import cupy

    _use(device)
    return int(cupy.cuda.runtime.memGetInfo()[0])


def _address_space() -> int:
    """What `ulimit -v` leaves to this process."""
    import psutil

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(0, limit - int(psutil.Process().memory_info().vms))


def _pooled(device: int) -> int:
    """Bytes that this process holds on a device; a chunk's buffers are used again for the next."""
    import cupy

    _use(device)
    return int(cupy.get_default_memory_pool().total_bytes())


def _release_pool(device: int | None) -> None:
    """Give back what CuPy keeps for later, on the device and page-locked on the host."""
    if device is None:
        return
    import cupy

    _use(device)
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
