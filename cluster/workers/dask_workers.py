"""The workers of a Dask scheduler. Imported only where there is one, as that takes a while."""

import contextlib
import logging
import pickle
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import cloudpickle
import dask
from distributed import Client, Future, KilledWorker, Worker, WorkerPlugin
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.utils_comm import gather_from_workers

from multigpu.cluster.engine.workload import Workload
from multigpu.cluster.errors import Failure, Lost, WorkerDied, option
from multigpu.cluster.workers.threads import Report, Task, Workers, call_within
from multigpu.cluster.workers.worker import WORKER, Outcome

logger = logging.getLogger(__name__)

# Seconds that the scheduler has to answer a question, which is asked again, …
ANSWER_TIMEOUT = 5.0
# … to forget a job at its end, …
FORGET_TIMEOUT = 1.0
# … and that every worker has to answer: it may have thousands of files to look at.
ANSWERS_TIMEOUT = 600.0
LOOK_EVERY = 0.2  # seconds, while a worker is waited for
ENDED = ("closing", "closed", "failed")  # status of a client or a cluster
CLOSED = "the client or its cluster was closed during the run: keep both open until it ends"
PAUSED = "Dask has paused all workers, by a limit of memory (`--memory-limit 0` of dask worker)"
# Tasks that no worker takes show an adaptive cluster what waits. Each seems to need a thread.
DEMAND, MOST_DEMAND = "multigpu_demand", 200
DEMAND_SETTINGS = {"distributed": {"scheduler": {"default-task-durations": {DEMAND: "1h"}}}}
# What a client raises that does not reach its scheduler. ValueError: the connection was lost after
# it was made and before TLS began.
NO_ANSWER = (OSError, TimeoutError, CancelledError, ValueError)


class JobPlugin(WorkerPlugin):
    """Plugin that makes a job known on every worker, those that join later included."""

    def __init__(self, key: str, workload: bytes) -> None:
        self.key, self.workload = key, workload
        self.name = f"multigpu-{key}"

    def setup(self, worker: Worker) -> None:
        """Dask calls this on the worker."""
        WORKER.name = worker.address
        WORKER.jobs.admit(pickle.loads(self.workload))

    def teardown(self, worker: Worker) -> None:
        """Dask calls this at the end of the job."""
        WORKER.jobs.dismiss(self.key)


SilentWorkers = dict[str, list[Future]]


@dataclass
class DaskTask:
    """A task of the scheduler; the result goes away with the future.

    silent  workers that seem to hang, each with futures that nobody wants any more
    holder  the worker that had the task when it was late, if any
    """

    future: Future
    silent: SilentWorkers
    holder: str = ""

    def cancel(self) -> None:
        """Withdraw the task, but not on a worker that hangs, where its thread stays occupied.

        The scheduler would take that worker for idle, and give it the next task.
        """
        kept = self.silent.get(self.holder)
        if kept is not None:
            kept.append(self.future)
            return
        self.future.client.loop.add_callback(_cancel, self.future)  # nobody waits for it


class DaskWorkers(Workers):
    """Workers of a Dask scheduler, which come and go.

    worker_timeout: seconds without any worker, or without an answer from the scheduler, until
    `present` raises Failure; from when it first finds none
    """

    def __init__(self, client: Client, gpu: str | None, worker_timeout: float = 60.0) -> None:
        self.gpu = gpu
        self._client, self._timeout = client, worker_timeout
        self._nthreads: dict[str, int] = {}
        self._admitted: set[str] = set()  # keys of jobs
        # A task was late there, and none has been returned since.
        self._silent: SilentWorkers = {}
        self._demand: list[Future] = []
        self._missing_since: float | None = None  # no worker, or no answer
        self._problem = "no worker has connected"
        if not self.present():  # a batch system may start them after this command
            logger.warning("multigpu: the scheduler has no workers yet: `dask worker` starts one")
        self._wait()
        self._problem = "no worker has been left"

    def _wait(self) -> None:
        """Wait until the scheduler answers and has workers. Raises Failure as `present`."""
        while not self.present() or self._missing_since is not None:
            self.want(1)
            time.sleep(LOOK_EVERY)

    @property
    def threads(self) -> int:
        return sum(self._nthreads.values())

    @property
    def lanes(self) -> int:
        return max(self._nthreads.values(), default=1)

    def admit(self, workload: Workload[Any, Any]) -> None:
        # Pickled here, and once: Dask tries three times, and reports it in its own way.
        try:
            job = JobPlugin(workload.key, cloudpickle.dumps(workload))
        except MemoryError as error:
            raise Failure(f"the job cannot be given to the workers: {error}") from error
        self._admitted.add(workload.key)
        self._answers(lambda client: client.register_plugin(job))

    def dismiss(self, key: str) -> None:
        for name in list(self._silent):
            _forget(self._silent, name)
        self.want(0)
        if key not in self._admitted or self._client.status != "running":
            return
        self._admitted.remove(key)
        with contextlib.suppress(*NO_ANSWER, Failure):  # then nothing is left to be forgotten
            self._ask("unregister_worker_plugin", FORGET_TIMEOUT, name=f"multigpu-{key}")

    def want(self, chunks: float) -> None:
        """Show an adaptive cluster chunks that wait; two tasks a thread would not make it grow."""
        self._demand = [future for future in self._demand if future.status == "pending"]
        more = int(min(chunks, MOST_DEMAND)) - len(self._demand)
        for _ in range(-more):
            self._demand.pop().release()
        if more <= 0:
            return
        with contextlib.suppress(*NO_ANSWER), self._open_client() as client:
            tell = partial(client.run_on_scheduler, dask.config.update_defaults, DEMAND_SETTINGS)
            call_within(ANSWER_TIMEOUT, tell)
            where = {"resources": {DEMAND: 1}}  # which no worker has
            self._demand += client.map(abs, range(more), key=DEMAND, pure=False, **where)

    def submit(
        self,
        report: Report,
        function: Callable[..., Any],
        *arguments: Any,
        avoid: Task | None = None,
        home: str = "",
    ) -> Task:
        where: dict[str, Any] = {}
        others = self._other_workers(avoid) if avoid is not None else []
        if chosen := [home] if home else others:
            where = {"workers": chosen, "allow_other_workers": True}
        with self._open_client() as client:
            future = client.submit(function, *arguments, pure=False, **where)
            # Not add_done_callback, whose one thread would fetch one result after the other.
            client.loop.add_callback(_report, report, future, self._silent)
        return DaskTask(future, self._silent)

    def home(self, series: Mapping[str, int], avoid: str = "") -> str:
        answering = [name for name in self._nthreads if name not in self._silent and name != avoid]
        return min(
            answering or list(self._nthreads),
            key=lambda name: ((series.get(name, 0) + 1) / self._nthreads[name], name),
            default="",
        )

    def _other_workers(self, late: Task) -> list[str]:
        """Return the workers to try a late task on; its own one counts as silent from now on."""
        assert isinstance(late, DaskTask)
        answering = [address for address in self._nthreads if address not in self._silent]
        late.holder = self._holder(late.future.key)
        if late.holder:
            self._silent.setdefault(late.holder, [])
        return [address for address in answering if address != late.holder]

    def _holder(self, key: str) -> str:
        """Return the worker that has a task, or its result; empty where none has."""
        with contextlib.suppress(*NO_ANSWER):
            for address, keys in self._ask("processing").items():
                if key in keys:
                    return str(address)
            for address in self._ask("who_has", keys=[key])[key]:
                return str(address)
        return ""

    def idle(self) -> int:
        with contextlib.suppress(*NO_ANSWER):
            return sum(
                max(0, self._nthreads.get(address, 0) - len(tasks))
                for address, tasks in self._ask("processing").items()
                if address not in self._silent
            )
        return 0

    @contextlib.contextmanager
    def _open_client(self) -> Iterator[Client]:
        """Yield the client. Raises Failure where it was closed before or in the block."""
        if self._client.status in ENDED:
            raise Failure(CLOSED)
        try:
            yield self._client
        except Exception as error:
            cluster = self._client.cluster
            if self._client.status in ENDED or (cluster and cluster.status.name in ENDED):
                raise Failure(CLOSED) from error
            raise

    def _ask(self, question: str, seconds: float = ANSWER_TIMEOUT, **what: Any) -> Any:
        """Return the scheduler's answer. Raises one of NO_ANSWER where it is late."""
        with self._open_client() as client:
            ask = getattr(client.scheduler, question)
            return client.sync(ask, **what, callback_timeout=seconds)

    def _answers(self, ask: Callable[[Client], Any]) -> dict[str, Any]:
        """Return the answers of all workers that stay. Raises Failure where one is late."""
        deadline = time.monotonic() + self._timeout
        while True:
            self._wait()
            try:
                with self._open_client() as client:
                    answers = call_within(ANSWERS_TIMEOUT, partial(ask, client))
            except TimeoutError as error:
                late = f"no answer from the scheduler or a worker within {ANSWERS_TIMEOUT:g} s"
                raise Failure(late) from error
            except (OSError, ValueError) as error:
                if time.monotonic() > deadline:
                    raise Failure(f"the connection to the scheduler was lost ({error})") from error
            else:
                left = CommClosedError
                if found := {k: v for k, v in answers.items() if not isinstance(v, left)}:
                    return found
            time.sleep(LOOK_EVERY)

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Run a function on every worker; one that cannot gives the exception."""
        return self._answers(lambda client: client.run(function, *arguments, on_error="return"))

    def present(self) -> set[str]:
        asked, limit = time.monotonic(), min(ANSWER_TIMEOUT, self._timeout)
        try:
            self._nthreads = self._ask("ncores_running", limit)
            for name in self._silent.keys() - self._nthreads.keys():
                _forget(self._silent, name)
            problem = "" if self._nthreads else self._why_none(limit)
        except NO_ANSWER:
            problem = "the scheduler has not answered"
        self._missing_since = (self._missing_since or asked) if problem else None
        if problem and time.monotonic() - (self._missing_since or asked) > self._timeout:
            raise Failure(f"{problem} for {self._timeout:g} s ({option('worker_timeout')})")
        return set(self._nthreads)

    def _why_none(self, seconds: float) -> str:
        """Return why no worker takes tasks; empty where some that are paused compute one."""
        paused = self._ask("identity", seconds)["workers"].values()
        if any(worker["metrics"].get("task_counts", {}).get("executing") for worker in paused):
            return ""
        return PAUSED if paused else self._problem

    def retire(self, name: str) -> None:
        """Shut the worker down.

        Dask continues to assign tasks to a paused worker, and a failed CUDA context needs a new
        process anyway. Raises Failure where none is left.
        """
        with contextlib.suppress(*NO_ANSWER):  # then `present` says so, sooner or later
            self._ask("retire_workers", workers=[name], close_workers=True)
        self._nthreads.pop(name, None)
        if not self._nthreads:
            raise Failure(f"no worker is left: {name} was the last one")


async def _cancel(future: Future) -> None:
    """Withdraw a task, unless the client was closed meanwhile."""
    with contextlib.suppress(Exception):
        await future.cancel(asynchronous=True)


async def _report(report: Report, future: Future, silent: SilentWorkers) -> None:
    """Report what a task gave, or what went wrong; on the client's loop."""
    try:
        result = await _fetch(future)
    except KilledWorker as error:
        report(None, WorkerDied(error.last_worker.address, error.allowed_failures + 1))
    except (FutureCancelledError, CommClosedError, CancelledError) as error:
        report(None, _lost(error))
    except Exception as error:  # noqa: BLE001 - whatever the task raised
        not_fetched = isinstance(error, NO_ANSWER) and future.status != "error"
        report(None, _lost(error) if not_fetched else error)
    else:
        if isinstance(result, Outcome):
            _forget(silent, result.worker)
        report(result, None)


async def _fetch(future: Future) -> Any:
    """Return what a task gave, fetched by itself. Raises what the task raised.

    Dask fetches results that come together in one piece, where those of a worker that hangs keep
    the others waiting.
    """
    client, key = future.client, future.key
    if await future.exception() is None and future.status == "finished":
        if client.direct_to_workers:
            holders = await client.scheduler.who_has(keys=[key])
            found, *_ = await gather_from_workers(holders, rpc=client.rpc)
        else:
            found = (await client.scheduler.gather(keys=[key])).get("data", {})
        if key in found:
            return found[key]
    return await future.result()  # raises, or waits until the task has run again


def _forget(silent: SilentWorkers, name: str) -> None:
    """Take a worker off the silent ones, as it works again, or is gone: its threads are free."""
    for future in silent.pop(name, ()):
        future.release()


def _lost(error: BaseException) -> Lost:
    return Lost(f"the connection to the scheduler was lost ({error})")
