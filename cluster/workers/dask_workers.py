"""The workers of a Dask scheduler. Imported where there is one: it takes its time."""

import contextlib
import logging
import pickle
import queue
import time
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import cloudpickle
from distributed import Client, Future, KilledWorker, Worker, WorkerPlugin
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError

from multigpu.cluster.engine.workload import Workload
from multigpu.cluster.errors import Failure, Lost, WorkerDied
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import Inbox, Report, Task, within

logger = logging.getLogger(__name__)

ANSWER_TIMEOUT = 5.0  # seconds for a question to the scheduler, which is asked again,
END_TIMEOUT = 1.0  # and for what it is told at the end of a job
ANSWERS_TIMEOUT = 600.0  # for what every worker does at once: it may have thousands of files to see
LOOK_EVERY = 0.2  # seconds, while the first worker is awaited
NO_ANSWER = (OSError, TimeoutError, CancelledError)


_here = worker  # Dask gives its own object that name in the methods below


class Job(WorkerPlugin):
    """Makes a job known on every worker, those that join later included."""

    def __init__(self, key: str, workload: bytes) -> None:
        self.key, self.workload = key, workload
        self.name = f"multigpu-{key}"

    def setup(self, worker: Worker) -> None:
        """Called by Dask on the worker."""
        _here.called(worker.address)
        _here.admit(pickle.loads(self.workload))

    def teardown(self, worker: Worker) -> None:
        """Called by Dask at the end of the job."""
        _here.dismiss(self.key)


Silent = dict[str, list[Future]]


@dataclass
class DaskTask:
    """A task of the scheduler; the result goes away with the future.

    silent  workers that seem to hang, each with futures that nobody wants any more
    where   the one that had the task when it was late, if any
    """

    future: Future
    silent: Silent
    where: str = ""

    def cancel(self) -> None:
        """On a worker that hangs its thread stays occupied, which the scheduler must not forget.

        It would take the worker for idle, and give it the next task.
        """
        kept = self.silent.get(self.where)
        if kept is not None:
            kept.append(self.future)
            return
        cancel = partial(self.future.cancel, asynchronous=True)
        self.future.client.loop.add_callback(cancel)  # nobody waits for the scheduler


class DaskWorkers:
    """Workers that come and go. A task whose worker dies is reported as such.

    worker_timeout: seconds without any worker, or without an answer from the scheduler, after
    which it is given up.
    """

    def __init__(self, client: Client, gpu: str | None, worker_timeout: float = 60.0) -> None:
        self.gpu = gpu
        self._client, self._timeout = client, worker_timeout
        self._nthreads: dict[str, int] = {}
        self._admitted: set[str] = set()  # keys of jobs
        self._silent: Silent = {}  # a task was late there, and none has been returned since
        self._seen = time.monotonic()  # the scheduler, with workers
        self._nobody = "no worker has come"
        self._wait_for_workers()
        self._nobody = "no worker is left"

    def _wait_for_workers(self) -> None:
        """A batch system may start them after the command that wants them."""
        if not self.present():
            logger.warning("multigpu: the scheduler has no workers yet: `dask worker` starts one")
        while not self.present():
            time.sleep(LOOK_EVERY)

    @property
    def threads(self) -> int:
        return sum(self._nthreads.values())

    @property
    def lanes(self) -> int:
        return max(self._nthreads.values(), default=1)

    def admit(self, workload: Workload[Any, Any]) -> None:
        """It is pickled here, and once: Dask tries three times, and tells of it in its own way."""
        try:
            job = Job(workload.key, cloudpickle.dumps(workload))
        except MemoryError as error:
            raise Failure(f"the job cannot be given to the workers: {error}") from error
        self._admitted.add(workload.key)
        self._answers(lambda: self._client.register_plugin(job))

    def dismiss(self, key: str) -> None:
        """Where nobody answers, nothing is left to be forgotten."""
        for name in list(self._silent):
            _forget(self._silent, name)
        if key not in self._admitted or self._client.status != "running":
            return
        self._admitted.remove(key)
        with contextlib.suppress(*NO_ANSWER):
            self._client.sync(
                self._client.scheduler.unregister_worker_plugin,
                name=f"multigpu-{key}",
                callback_timeout=END_TIMEOUT,
            )

    def submit(
        self,
        report: Report,
        function: Callable[..., Any],
        *arguments: Any,
        apart_from: Task | None = None,
    ) -> Task:
        where: dict[str, Any] = {}
        if apart_from is not None and (others := self._others(apart_from)):
            where = {"workers": others, "allow_other_workers": True}
        future = self._client.submit(function, *arguments, pure=False, **where)
        # Not add_done_callback, whose one thread would fetch one result after the other.
        self._client.loop.add_callback(_told, report, future, self._silent)
        return DaskTask(future, self._silent)

    def _others(self, task: Task) -> list[str]:
        """The workers to try a late task on: not its own, which is silent from now on."""
        assert isinstance(task, DaskTask)
        well = [address for address in self._nthreads if address not in self._silent]
        task.where = self._holder(task.future.key)
        if task.where:
            self._silent.setdefault(task.where, [])
        return [address for address in well if address != task.where]

    def _holder(self, key: str) -> str:
        """The worker that has a task, or its result; empty where none has."""
        with contextlib.suppress(*NO_ANSWER):
            for address, keys in self._processing().items():
                if key in keys:
                    return address
            for address in self._ask(self._client.scheduler.who_has, keys=[key])[key]:
                return str(address)
        return ""

    def _processing(self) -> dict[str, list[str]]:
        """The tasks of each worker. Raises one of NO_ANSWER."""
        found: dict[str, list[str]] = self._ask(self._client.scheduler.processing, workers=None)
        return found

    def idle(self) -> int:
        processing: dict[str, list[str]] = {}
        with contextlib.suppress(*NO_ANSWER):
            processing = self._processing()
        return sum(
            max(0, self._nthreads.get(address, 0) - len(tasks))
            for address, tasks in processing.items()
            if address not in self._silent
        )

    def _ask(self, question: Callable[..., Any], **what: Any) -> Any:
        """The scheduler's answer. Raises one of NO_ANSWER where it is late."""
        return self._client.sync(question, **what, callback_timeout=ANSWER_TIMEOUT)

    def _answers(self, ask: Callable[[], Any]) -> Any:
        """Those of all workers. Raises Failure where one is late."""
        try:
            return within(ANSWERS_TIMEOUT, ask)
        except TimeoutError as error:
            late = f"some worker, or the scheduler, gave no answer within {ANSWERS_TIMEOUT:g} s"
            raise Failure(late) from error
        except OSError as error:
            raise Failure(f"the connection to the scheduler was lost ({error})") from error

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """A worker that cannot run it gives the exception."""
        given: dict[str, Any] = self._answers(
            lambda: self._client.run(function, *arguments, on_error="return")
        )
        return given

    def present(self) -> set[str]:
        problem = self._nobody
        try:
            answer = min(ANSWER_TIMEOUT, self._timeout)
            self._nthreads = self._client.nthreads(callback_timeout=answer)
        except NO_ANSWER:
            problem = "the scheduler does not answer"
        else:
            if self._nthreads:
                self._seen = time.monotonic()
            for name in self._silent.keys() - self._nthreads.keys():
                _forget(self._silent, name)
        if self._client.status == "closed":
            raise Failure("the connection to the scheduler was lost")
        if time.monotonic() - self._seen > self._timeout:
            raise Failure(f"{problem}, for {self._timeout:g} s now")
        return set(self._nthreads)

    def retire(self, name: str) -> None:
        """Its process ends: only so Dask sends it nothing, and a GPU that failed needs another."""
        with contextlib.suppress(*NO_ANSWER):  # then it is given up as one of the next looks says
            retire = self._client.scheduler.retire_workers
            self._ask(retire, workers=[name], close_workers=True)
        self._nthreads.pop(name, None)
        if not self._nthreads:
            raise Failure(f"{name} was the last worker")

    def inbox(self) -> Inbox:
        return queue.SimpleQueue()

    def clock(self) -> float:
        return time.monotonic()


async def _told(report: Report, future: Future, silent: Silent) -> None:
    result, error = await _result(future)
    if isinstance(result, worker.Outcome):
        _forget(silent, result.worker)
    report(result, error)


def _forget(silent: Silent, name: str) -> None:
    """A worker works again, or is gone: nothing needs to occupy its threads."""
    for future in silent.pop(name, ()):
        future.release()


async def _result(future: Future) -> tuple[Any, Exception | None]:
    """What a task gave, or what went wrong; on the client's loop."""
    try:
        return await future.result(), None
    except KilledWorker as error:
        return None, WorkerDied(error.last_worker.address, error.allowed_failures + 1)
    except (FutureCancelledError, CommClosedError, CancelledError) as error:
        return None, Lost(f"the connection to the scheduler was lost ({error})")
    except Exception as error:  # noqa: BLE001 - whatever the task raised
        return None, error
