"""Workers of one thread each, on a clock that moves only while the dispatcher waits for reports.

The span of a chunk is its number, and so is the part.
"""

import heapq
import itertools
import queue
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from multigpu.cluster.errors import WorkerDied
from multigpu.cluster.workers.threads import Report
from multigpu.cluster.workers.worker import Outcome
from support.toy import Toy

Seconds = Callable[[int, int], float]  # of a chunk, by its number and its attempt


class Numbers(Toy):
    """A workload of which nothing is run."""

    def __init__(self) -> None:
        super().__init__("numbers")

    def correct(self, span: int | None, part: object) -> None:
        """Return None: every span is cut where it should be."""


@dataclass(eq=False)
class FakeTask:
    """An attempt at a chunk. avoid: the task whose worker it should not run on."""

    report: Report
    chunk: int
    attempt: int
    avoid: "FakeTask | None"
    home: str = ""
    worker: str = ""
    ended: bool = False

    def cancel(self) -> None:
        self.ended = True


class FakeWorkers:
    """Workers as in `cluster.workers.threads`: the first that is free takes the first task."""

    gpu = None
    lanes = 1

    def __init__(self, count: int, seconds: Seconds) -> None:
        self.now = 0.0
        self._seconds = seconds
        self._running: dict[str, FakeTask | None] = {f"worker-{k}": None for k in range(count)}
        self._waiting: deque[FakeTask] = deque()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._attempts: Counter[int] = Counter()
        self._news: deque[Any] = deque()

    @property
    def threads(self) -> int:
        return len(self._running)

    def at(self, when: float, happen: Callable[[], None]) -> None:
        """Make something happen at a time."""
        heapq.heappush(self._later, (when, next(self._order), happen))

    def join(self, name: str) -> None:
        self._running[name] = None
        self._assign()

    def die(self, name: str) -> None:
        task = self._running.pop(name)
        if task and not task.ended:
            task.ended = True
            task.report(None, WorkerDied(name))

    def _nothing(self, _: object) -> None:
        """Do nothing: workers come when a test has them come, and nothing runs."""

    want = admit = dismiss = _nothing

    def submit(
        self, report: Report, function: Any, *arguments: Any, avoid: Any = None, home: str = ""
    ) -> FakeTask:
        chunk = arguments[2]
        task = FakeTask(report, chunk, self._attempts[chunk], avoid, home)
        self._attempts[chunk] += 1
        self._waiting.append(task)
        self._assign()
        return task

    def _assign(self) -> None:
        for name in [name for name, task in self._running.items() if task is None]:
            for task in self._waiting:
                is_elsewhere = task.home in self._running and task.home != name
                if task.ended or is_elsewhere or (task.avoid and task.avoid.worker == name):
                    continue
                self._start(name, task)
                break

    def _start(self, name: str, task: FakeTask) -> None:
        self._waiting.remove(task)
        task.worker, self._running[name] = name, task
        self.at(self.now + self._seconds(task.chunk, task.attempt), lambda: self._end(name, task))

    def _end(self, name: str, task: FakeTask) -> None:
        if name in self._running:
            self._running[name] = None
            if not task.ended:
                task.ended = True
                task.report(Outcome(task.chunk, name, "fake"), None)
            self._assign()

    def home(self, series: Mapping[str, int], avoid: str = "") -> str:
        names = [name for name in self._running if name != avoid]
        return min(names, key=lambda name: series.get(name, 0), default="")

    def idle(self) -> int:
        return sum(task is None for task in self._running.values())

    def present(self) -> set[str]:
        return set(self._running)

    def inbox(self) -> "FakeWorkers":
        return self

    def clock(self) -> float:
        return self.now

    def put(self, news: Any) -> None:
        self._news.append(news)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Let time pass until there is a report."""
        limit = self.now + (timeout or 0.0) if block else self.now
        while not self._news and self._later and self._later[0][0] <= limit:
            self.now, _, happen = heapq.heappop(self._later)
            happen()
        if not self._news:
            self.now = limit
            raise queue.Empty
        return self._news.popleft()


def steady(late: Iterable[tuple[int, int]] = (), seconds: float = 10.0) -> Seconds:
    """Return how long chunks take; those of `late`, by number and attempt, never end."""
    hanging = {*late}
    return lambda chunk, attempt: 1e9 if (chunk, attempt) in hanging else seconds
