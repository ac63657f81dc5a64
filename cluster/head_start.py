"""Threads of this process that begin with the work while others are still on their way.

Eight worker processes with a GPU each take seven seconds to come up. Until then the first GPU works
for the program itself. A job of a few seconds never has them started.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from cluster.workers import Inbox, LocalWorkers, Report, Task, Workers
from cluster.workload import Workload

ALONE = 2.0  # seconds of a job before others are thought of: its first chunks say little
WORTH = 10.0  # seconds that a job must seem to take beyond these: others slow it while they come up
FEW = 2  # finished tasks tell how long one takes

Left = Callable[[], int | None]


class Coming(Protocol):
    """Others that can be started."""

    @property
    def made(self) -> "Future[Workers] | None":
        """They, once they are on their way."""

    def begin(self) -> "Future[Workers]":
        """Have them started, if they are not on their way."""


class HeadStart:
    """Threads of this process until other workers have come, then those.

    `present`, which is asked again and again, has the others started where there is enough left for
    them, and looks whether they are there; it raises what went wrong with them. Their first tasks
    take long, as all that these need is loaded; meanwhile the threads go on. What they have been
    given they finish.

    left: about how many chunks are not finished, if that is known
    """

    def __init__(self, here: LocalWorkers, coming: Coming, left: Left) -> None:
        self.gpu = here.gpu  # for the next task, as all that is chosen
        self._here, self._coming, self._left = here, coming, left
        self._next: Workers = here
        self._others: Workers | None = None
        self._workload: Workload[Any, Any] | None = None
        self._given: list[Future[Any]] = []  # to the threads of this process
        self._begun: float | None = None  # the job,
        self._finished: list[float] = []  # and the tasks of the threads: by the clock
        self._tried = 0  # tasks that the others have been given
        self._at_work = threading.Event()  # they have finished one

    @property
    def threads(self) -> int:
        others = self._others.threads if self._others else 0
        return others if self._at_work.is_set() else others + self._here.threads

    @property
    def lanes(self) -> int:
        return self._next.lanes

    def admit(self, workload: Workload[Any, Any]) -> None:
        self._workload = workload
        self._here.admit(workload)
        if self._others:
            self._others.admit(workload)

    def dismiss(self, key: str) -> None:
        self._here.dismiss(key)
        if self._others:
            self._others.dismiss(key)

    def submit(
        self,
        report: Report,
        function: Callable[..., Any],
        *arguments: Any,
        apart_from: Task | None = None,
    ) -> Task:
        def finished_here(outcome: Any, error: Exception | None) -> None:
            self._finished.append(self.clock())
            report(outcome, error)

        def finished_there(outcome: Any, error: Exception | None) -> None:
            self._at_work.set()
            report(outcome, error)

        task: Task
        if self._next is self._here:
            task = self._here.submit(finished_here, function, *arguments)
            self._given.append(task)
        else:
            if apart_from in self._given:  # every one of the others is apart from it
                apart_from = None
            self._tried += 1
            task = self._next.submit(finished_there, function, *arguments, apart_from=apart_from)
        self._choose()
        return task

    def _choose(self) -> None:
        """Who gets the next task."""
        others = self._others
        if others and (self._at_work.is_set() or self._tried < others.threads):
            self._next = others
        else:
            self._next = self._here
        self.gpu = self._next.gpu

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        return self._next.everywhere(function, *arguments)

    def present(self) -> set[str]:
        here = self._here.present()
        if self._others is None:
            self._look_for_others()
        elif self._at_work.is_set():
            self._rest()
        self._choose()
        return here | self._others.present() if self._others else here

    def _look_for_others(self) -> None:
        first = self._begun is None
        if first:
            self._begun = self.clock()
        if self._coming.made is None and self._worth_it():
            self._coming.begin()
        if self._coming.made and self._coming.made.done():
            self._take(self._coming.made)
            if first:  # they were there before the job, and need no help
                self._at_work.set()

    def _worth_it(self) -> bool:
        """Whether others would come in time, as far as one can tell."""
        assert self._begun is not None
        now, left, finished = self.clock(), self._left(), self._finished
        if now - self._begun < ALONE:
            return False
        if left is None or len(finished) < FEW:
            return True
        each = (now - finished[0]) / (
            len(finished) - 1
        )  # the first one waited for much to be loaded
        return left * each > WORTH

    def _rest(self) -> None:
        """Give the device's memory back to its worker when the threads are done."""
        if self._workload and self._given and all(task.done() for task in self._given):
            self._given.clear()
            self._here.dismiss(self._workload.key)

    def retire(self, name: str) -> None:
        """The device of this process, too, has a worker of its own, for which it may be good."""
        if name not in self._here.present():
            assert self._others
            self._others.retire(name)
            return
        if self._others is None:
            self._take(self._coming.begin())
        self._at_work.set()
        self._choose()

    def _take(self, others: "Future[Workers]") -> None:
        """Waits for them."""
        self._others = others.result()
        if self._workload is not None:
            self._others.admit(self._workload)

    def inbox(self) -> Inbox:
        return self._here.inbox()

    def clock(self) -> float:
        return self._here.clock()
