"""Workers that exist in a model only, on a clock of their own, for the real dispatcher.

The model is Dask's scheduler as it treats independent tasks: one queue in the order of submission,
from which a worker gets a few more tasks than it has threads; the worker with the fewest goes
first; a worker that would be idle steals what waits at another; the messages of a task take the
scheduler's one thread for a moment. The work itself is only time that passes, and what of it a
task takes does not depend on what else is on its device.
"""

import heapq
import itertools
import math
import queue
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from multigpu.cluster.errors import Failure, WorkerDied
from multigpu.cluster.workers.threads import Report
from multigpu.cluster.workers.worker import Outcome

STEALING = 0.1  # Dask's work-stealing-interval: seconds until an idle worker has stolen
WORKER_TIMEOUT = 60.0  # the program's --worker-timeout
HOUR = 3600.0

Work = Callable[[int, int], float]  # device-seconds of a chunk, by its number and its attempt


@dataclass(frozen=True)
class Cluster:
    """The machines of a model. Times are seconds, speeds device-seconds of work per second.

    threads    chunks on a device at a time; they share its speed
    speeds     of the devices, in turn
    failures   of each device in an hour
    noticed    until the scheduler knows of a failure: 0 for a process that ends, long for a node
    restart    from then until there is another worker in its place
    changes    times at which so many devices join (> 0) or are taken away (< 0)
    message    of the scheduler's time for each message about a task
    saturation tasks that a worker has for each of its threads, at most, rounded up: Dask's
               `distributed.scheduler.worker-saturation`
    """

    devices: int
    threads: int = 1
    speeds: tuple[float, ...] = (1.0,)
    failures: float = 0.0
    noticed: float = 0.0
    restart: float = 60.0
    changes: tuple[tuple[float, int], ...] = ()
    message: float = 0.0
    saturation: float = 1.1


@dataclass(eq=False)
class _Worker:
    """A worker, and the tasks that were sent to it."""

    name: str
    speed: float
    running: dict["SimulatedTask", None] = field(default_factory=dict)  # in order
    waiting: deque["SimulatedTask"] = field(default_factory=deque)
    alive: bool = True
    listed: int = 0  # its load as the scheduler knows it

    @property
    def load(self) -> int:
        return len(self.running) + len(self.waiting)


@dataclass(eq=False)
class SimulatedTask:
    """An attempt at a chunk."""

    workers: "SimulatedWorkers"
    report: Report
    chunk: int
    attempt: int
    apart_from: "SimulatedTask | None"
    worker: _Worker | None = None
    ended: bool = False

    def cancel(self) -> None:
        self.workers.cancel(self)

    def end(self, outcome: Any, error: Exception | None = None) -> None:
        """Report, once."""
        if not self.ended:
            self.ended = True
            self.report(outcome, error)


@dataclass
class Traffic:
    """What went through the scheduler, and what it was for."""

    submitted: int = 0
    cancelled: int = 0
    looks: int = 0
    stolen: int = 0
    failures: int = 0

    @property
    def messages(self) -> int:
        """Submitted, sent, done, reported; cancelled twice; stolen twice."""
        return 4 * self.submitted + 2 * self.cancelled + 2 * self.stolen + 2 * self.looks


class SimulatedWorkers:
    """Workers as in `cluster.workers.threads`. The clock moves only while the inbox is waited for.

    The span of a chunk must be its number. Everything random comes from `seed`.
    """

    gpu = None

    def __init__(self, cluster: Cluster, work: Work, seed: int = 0) -> None:
        self.now = 0.0
        self.threads = 0
        self.traffic = Traffic()
        self._cluster, self._work = cluster, work
        self._random = random.Random(seed)
        self._slots = math.ceil(cluster.saturation * cluster.threads)
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._names = itertools.count()
        self._attempts: dict[int, int] = {}
        self._queue: deque[SimulatedTask] = deque()
        self._workers: dict[_Worker, None] = {}  # those that the scheduler knows
        self._by_load: list[dict[_Worker, None]] = [{}]
        self._free_at = 0.0  # the scheduler's thread
        self._seen = 0.0  # any worker
        self.news: deque[Any] = deque()
        for number in range(cluster.devices):
            self._join(cluster.speeds[number % len(cluster.speeds)])
        for when, devices in cluster.changes:
            self._at(when, self._change, devices)

    # ---- what the dispatcher sees -------------------------------------------------------------

    @property
    def lanes(self) -> int:
        return self._cluster.threads

    def admit(self, workload: Any) -> None:
        """Every worker knows it."""

    def dismiss(self, key: str) -> None:
        """Nothing is kept."""

    def submit(
        self,
        report: Report,
        function: Callable[..., Any],
        *arguments: Any,
        apart_from: Any = None,
    ) -> SimulatedTask:
        chunk = arguments[2]
        attempt = self._attempts.get(chunk, 0)
        self._attempts[chunk] = attempt + 1
        self.traffic.submitted += 1
        task = SimulatedTask(self, report, chunk, attempt, apart_from)
        self._message(self._arrived, task)
        return task

    def cancel(self, task: SimulatedTask) -> None:
        """One that waits is dropped; one that runs keeps its thread until it ends."""
        if not task.ended:
            task.ended = True
            self.traffic.cancelled += 1
            if task.worker is not None and task in task.worker.waiting:
                task.worker.waiting.remove(task)
                self._moved(task.worker)
                self._fill()

    def idle(self) -> int:
        self.traffic.looks += 1
        threads = self._cluster.threads
        return sum((threads - k) * len(w) for k, w in enumerate(self._by_load[:threads]))

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        return {}

    def present(self) -> set[str]:
        self.traffic.looks += 1
        if self._workers:
            self._seen = self.now
        elif self.now - self._seen > WORKER_TIMEOUT:
            raise Failure("no worker is left")
        return {worker.name for worker in self._workers}

    def retire(self, name: str) -> None:
        raise Failure("no device of a model fails by itself")

    def inbox(self) -> "VirtualInbox":
        return VirtualInbox(self)

    def clock(self) -> float:
        return self.now

    # ---- time ---------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let time pass until there is news, or for so long."""
        end = self.now + seconds
        while not self.news and self._events and self._events[0][0] <= end:
            self.now, _, event, arguments = heapq.heappop(self._events)
            event(*arguments)
        if not self.news:
            self.now = end

    def _at(self, when: float, event: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (when, next(self._order), event, arguments))

    def _after(self, seconds: float, event: Callable[..., None], *arguments: Any) -> None:
        self._at(self.now + seconds, event, *arguments)

    def _message(self, event: Callable[..., None], *arguments: Any) -> None:
        """Something that the scheduler deals with, in its turn."""
        self._free_at = max(self.now, self._free_at) + self._cluster.message
        self._at(self._free_at, event, *arguments)

    # ---- the scheduler ------------------------------------------------------------------------

    def _arrived(self, task: SimulatedTask) -> None:
        avoided = task.apart_from.worker if task.apart_from else None
        if avoided is None:
            self._queue.append(task)
            self._fill()
        elif not task.ended:  # Dask does not queue what may not run everywhere
            others = (w for group in self._by_load for w in group if w is not avoided)
            self._send(task, next(others, avoided))

    def _fill(self) -> None:
        """Send what is in the queue to the workers that have least."""
        for group in self._by_load[: self._slots]:
            while group and self._queue:
                task = self._queue.popleft()
                if not task.ended:
                    self._send(task, next(iter(group)))

    def _send(self, task: SimulatedTask, worker: _Worker) -> None:
        task.worker = worker
        worker.waiting.append(task)
        self._moved(worker)
        self._begin(worker)

    def _moved(self, worker: _Worker) -> None:
        """Put it among those that have as much."""
        self._by_load[worker.listed].pop(worker, None)
        while len(self._by_load) <= worker.load:
            self._by_load.append({})
        if worker in self._workers:
            self._by_load[worker.load][worker] = None
            worker.listed = worker.load

    def _steal(self, thief: _Worker) -> None:
        if thief.waiting or len(thief.running) == self._cluster.threads or not thief.alive:
            return
        for group in reversed(self._by_load[self._cluster.threads + 1 :]):
            for victim in group:
                if victim.waiting:
                    self.traffic.stolen += 1
                    task = victim.waiting.pop()
                    self._moved(victim)
                    self._send(task, thief)
                    return

    # ---- the workers --------------------------------------------------------------------------

    def _begin(self, worker: _Worker) -> None:
        while worker.alive and worker.waiting and len(worker.running) < self._cluster.threads:
            task = worker.waiting.popleft()
            worker.running[task] = None
            work = self._work(task.chunk, task.attempt)
            self._after(work * self._cluster.threads / worker.speed, self._ended, task, worker)
        if worker.alive and len(worker.running) < self._cluster.threads:
            self._after(STEALING, self._steal, worker)

    def _ended(self, task: SimulatedTask, worker: _Worker) -> None:
        if worker.alive:
            del worker.running[task]
            self._begin(worker)
            self._message(self._freed, worker, task)

    def _freed(self, worker: _Worker, task: SimulatedTask) -> None:
        task.end(Outcome(task.chunk, worker.name, "model"))
        self._moved(worker)
        self._fill()

    def _join(self, speed: float) -> None:
        worker = _Worker(f"worker-{next(self._names)}", speed)
        self._workers[worker] = None
        self.threads += self._cluster.threads
        self._moved(worker)
        self._fill()
        if self._cluster.failures:
            life = self._random.expovariate(self._cluster.failures / HOUR)
            self._after(life, self._fail, worker)

    def _fail(self, worker: _Worker) -> None:
        if worker.alive:
            self.traffic.failures += 1
            worker.alive = False
            self._after(self._cluster.noticed, self._leave, worker)
            restart = self._cluster.noticed + self._cluster.restart
            self._after(restart, self._join, worker.speed)

    def _leave(self, worker: _Worker) -> None:
        """The scheduler takes note, and gives up what the worker had."""
        worker.alive = False
        if worker in self._workers:
            del self._workers[worker]
            self.threads -= self._cluster.threads
            self._moved(worker)
            for task in [*worker.running, *worker.waiting]:
                task.end(None, WorkerDied(worker.name))

    def _change(self, devices: int) -> None:
        for _ in range(devices):
            self._join(self._cluster.speeds[0])
        for worker in list(self._workers)[: max(0, -devices)]:
            self._leave(worker)


@dataclass(frozen=True)
class VirtualInbox:
    """Waiting at it is how time passes."""

    workers: SimulatedWorkers

    def put(self, news: Any) -> None:
        self.workers.news.append(news)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if block and not self.workers.news:
            self.workers.advance(math.inf if timeout is None else timeout)
        if not self.workers.news:
            raise queue.Empty
        return self.workers.news.popleft()
