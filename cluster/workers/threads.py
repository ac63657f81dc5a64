"""The protocol of workers, and the threads of this process as workers."""

import itertools
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from multigpu.cluster.engine.workload import Workload
from multigpu.cluster.errors import DeviceFailed, Failure, Unfit
from multigpu.cluster.workers.worker import OWN, WORKER

Report = Callable[[Any, Exception | None], None]  # what a task gave, or what it raised


class Task(Protocol):
    """A task that was submitted."""

    def cancel(self) -> Any:
        """Withdraw it: nobody wants its result any more. It may still report."""


class Workers(Protocol):
    """Threads that run tasks, here or elsewhere; gpu: their device, a UUID, None (CPU) or OWN."""

    gpu: str | None

    @property
    def threads(self) -> int:
        """Threads of all workers together; the number changes as workers come and go."""

    @property
    def lanes(self) -> int:
        """Threads of the worker that has most."""

    def admit(self, workload: Workload[Any, Any]) -> None:
        """Make a job known to every worker, those that join later included."""

    def dismiss(self, key: str) -> None:
        """Have every worker forget a job."""

    def submit(
        self,
        report: Report,
        function: Callable[..., Any],
        *arguments: Any,
        avoid: Task | None = None,
        home: str = "",
    ) -> Task:
        """Run a function on some worker; report once.

        avoid: a task; if possible, not on the worker that has it
        home: the worker to run it on, as long as it is there; empty: any
        """

    def home(self, series: Mapping[str, int], avoid: str = "") -> str:
        """Return the worker that is to take the next series; empty where all share what is open.

        series: how many series each worker has
        avoid: a worker that is not to take it, if there are others
        """
        del series, avoid  # threads of one process share their files
        return ""

    def idle(self) -> int:
        """Return the number of threads without a task, of workers that do not seem to hang."""

    def want(self, chunks: float) -> None:
        """Show that so many more chunks wait for a thread, where workers come by demand."""
        del chunks  # else nobody comes

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Run a function on every worker now; return what each gave, by its name."""

    def present(self) -> set[str]:
        """Return the names of the workers. Raises Failure after too long without any."""

    def retire(self, name: str) -> None:
        """Give a worker no more tasks. Raises Failure where none is left."""

    def inbox(self) -> Any:
        """Return a new queue of reports, with `put` and `get` as of `queue.SimpleQueue`."""
        return queue.SimpleQueue()

    def clock(self) -> float:
        """Return seconds of which only differences mean something."""
        return time.monotonic()


class LocalWorkers(Workers):
    """The threads of this process: no start, no import of Dask, no copy of anything.

    A GPU that fails, or has no room for a job, is a worker that retires. The lanes of the others
    continue; after the last one the CPU takes over.

    lanes         threads of each GPU, or all where there is none
    gpus          UUIDs
    cpu_fallback  whether the CPU may take over when the last GPU has failed
    """

    lanes = threads = 1

    def __init__(self, lanes: int, gpus: Sequence[str] = (), *, cpu_fallback: bool = True) -> None:
        self.lanes, self.threads = lanes, lanes * max(1, len(gpus))
        self.gpu = OWN if gpus else None
        self._gpus, self._cpu_fallback = gpus, cpu_fallback
        self._failed: set[str] = set()  # workers: a name for each GPU
        self._lanes_may_continue = threading.Event()
        self._numbers = itertools.count()
        self._pool = ThreadPoolExecutor(self.threads, "worker", self._begin_lane)

    def _begin_lane(self) -> None:
        number = next(self._numbers)
        if self._gpus:
            WORKER.lane.gpu = self._gpus[number // self.lanes]

    def admit(self, workload: Workload[Any, Any]) -> None:
        WORKER.jobs.admit(workload)

    def dismiss(self, key: str) -> None:
        WORKER.jobs.dismiss(key)

    def submit(
        self,
        report: Report,
        function: Callable[..., Any],
        *arguments: Any,
        avoid: Task | None = None,
        home: str = "",
    ) -> "Future[None]":
        return self._pool.submit(self._run, report, function, arguments)

    def _run(
        self, report: Report, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        """Run a task in its lane. A lane whose GPU failed takes no other one until all have."""
        device_failed = False
        try:
            result = function(*arguments)
        except Exception as error:  # noqa: BLE001 - whatever a task raises is reported
            report(None, error)
            device_failed = isinstance(error, DeviceFailed | Unfit)
        except BaseException as error:  # noqa: BLE001
            report(None, Failure(f"a task ended with {type(error).__name__}"))
        else:
            report(result, None)
        if device_failed:
            self._lanes_may_continue.wait()

    def idle(self) -> int:
        """Return 0: a late task cannot be moved, as this process is one worker."""
        return 0

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        return {WORKER.name: self._pool.submit(function, *arguments).result()}

    def present(self) -> set[str]:
        return {WORKER.name}

    def retire(self, name: str) -> None:
        """Do without a GPU that has failed; after the last one the CPU takes over, else Failure."""
        self._failed.add(name)
        if len(self._failed) < len(self._gpus):
            return
        if self.gpu is None or not self._cpu_fallback:
            raise Failure("there is no other device")
        self.gpu = None
        self._lanes_may_continue.set()

    def close(self) -> None:
        """Forget the tasks that have not begun; those that have end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._lanes_may_continue.set()


def call_within(seconds: float, function: Callable[[], Any]) -> Any:
    """Return what `function` returns, in a thread of its own. Raises TimeoutError."""
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(function())
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            done.set_exception(error)

    threading.Thread(target=run, name="call_within", daemon=True).start()
    return done.result(timeout=seconds)
