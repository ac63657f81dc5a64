"""Threads that run tasks: of this process, and what those of a cluster have in common with them."""

import contextlib
import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from multigpu.cluster.devices.context import Contexts
from multigpu.cluster.engine.workload import Workload
from multigpu.cluster.errors import Failure
from multigpu.cluster.workers import worker

WORKER_NICENESS = 5

Report = Callable[[Any, Exception | None], None]  # what a task gave, or what it raised


class Task(Protocol):
    """A task under way."""

    def cancel(self) -> Any:
        """It is not wanted any more; it may still report."""


class Inbox(Protocol):
    """Where reports arrive, in the order in which they do."""

    def put(self, news: Any) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Raises queue.Empty after `timeout` seconds without any."""


class Workers(Protocol):
    """Threads that run tasks, here or elsewhere.

    gpu  what tasks get as their device: a UUID, None for the CPU, or `worker.OWN`
    """

    gpu: str | None

    @property
    def threads(self) -> int:
        """Of all workers together; it changes as they come and go."""

    @property
    def lanes(self) -> int:
        """Threads of the worker that has most."""

    def admit(self, workload: Workload[Any, Any]) -> None:
        """Make a job known to every worker, those that join later included."""

    def dismiss(self, key: str) -> None:
        """Forget it everywhere."""

    def submit(
        self,
        report: Report,
        function: Callable[..., Any],
        *arguments: Any,
        apart_from: Task | None = None,
    ) -> Task:
        """Run it on some worker, if possible not the one that has another task; report once."""

    def idle(self) -> int:
        """Threads without a task, of workers that do not seem to hang."""

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Run it on every worker now; what each gave, by its name."""

    def present(self) -> set[str]:
        """The names of the workers. Raises Failure where there have been none for too long."""

    def retire(self, name: str) -> None:
        """Give a worker no more tasks. Raises Failure where none is left."""

    def inbox(self) -> Inbox:
        """A new one."""

    def clock(self) -> float:
        """Seconds; only differences mean something."""


class LocalWorkers:
    """The threads of this process: no start, no import of Dask, no copy of anything.

    lanes     threads of each GPU, or all where there is none
    contexts  those of the GPUs, which may still be coming up
    """

    def __init__(
        self,
        lanes: int,
        gpus: Sequence[str] = (),
        cpu_fallback: bool = True,
        contexts: Contexts | None = None,
    ) -> None:
        self.lanes, self.threads = lanes, lanes * max(1, len(gpus))
        self.gpu = worker.OWN if gpus else None
        self._gpus, self._contexts, self._cpu_fallback = gpus, contexts, cpu_fallback
        self._numbers = itertools.count()
        self._pool = ThreadPoolExecutor(self.threads, "worker", self._begin)

    def _begin(self) -> None:
        """In each thread. Those of the first GPU take what comes, and may wait for it in CUDA."""
        _step_back()
        number = next(self._numbers)
        if self._gpus:
            gpu = self._gpus[number // self.lanes]
            worker.takes(gpu)
            if self._contexts and number >= self.lanes:
                self._contexts.wait(gpu)

    def admit(self, workload: Workload[Any, Any]) -> None:
        worker.admit(workload)

    def dismiss(self, key: str) -> None:
        worker.dismiss(key)

    def submit(
        self,
        report: Report,
        function: Callable[..., Any],
        *arguments: Any,
        apart_from: Task | None = None,
    ) -> "Future[Any]":
        def done(future: "Future[Any]") -> None:
            if not future.cancelled():
                error = future.exception()
                report(None if error else future.result(), _as_exception(error))

        future = self._pool.submit(function, *arguments)
        future.add_done_callback(done)
        return future

    def idle(self) -> int:
        """None that a late task could be moved to: this process is one worker."""
        return 0

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        return {worker.name(): self._pool.submit(function, *arguments).result()}

    def present(self) -> set[str]:
        return {worker.name()}

    def retire(self, name: str) -> None:
        """The GPU failed: the CPU of this process goes on."""
        if self.gpu is None or not self._cpu_fallback:
            raise Failure("there is no other device")
        self.gpu = None

    def inbox(self) -> Inbox:
        return queue.SimpleQueue()

    def clock(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        """Forget what has not begun; what has ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._contexts:
            self._contexts.close()


def within(seconds: float, make: Callable[[], Any]) -> Any:
    """What `make` gives. Raises TimeoutError where it is late; then it goes on behind our back."""
    given: queue.Queue[tuple[Any, Exception | None]] = queue.Queue()

    def run() -> None:
        try:
            given.put((make(), None))
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            given.put((None, error))

    threading.Thread(target=run, name="within", daemon=True).start()
    try:
        result, error = given.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result


def _as_exception(error: BaseException | None) -> Exception | None:
    if error is None or isinstance(error, Exception):
        return error
    return Failure(f"a task ended with {type(error).__name__}")


def _step_back() -> None:
    """Lets the thread that reads and decompresses go first where there are more threads than cores.

    What it does cannot be divided, and the workers wait for it.
    """
    if sys.platform == "linux":  # where every thread has a priority of its own
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), WORKER_NICENESS)
