"""Threads of this process that begin with the work while others are still on their way.

Eight worker processes with a GPU each take seven seconds to come up. Until then the GPUs, or the
first of them, work for the program itself. Where that is soon done no processes are started, unless
they were before.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from multigpu.cluster.engine.workload import Workload
from multigpu.cluster.errors import Failure, Lost, UsageError
from multigpu.cluster.workers.threads import Inbox, LocalWorkers, Report, Task, Workers

logger = logging.getLogger(__name__)

ALONE = 2.0  # seconds of a job before others are thought of: its first chunks say little
WORTH = 10.0  # seconds that a job must seem to take beyond these: others slow it while they come up
LOADING = 2.0  # seconds that others need for their first chunks, as for all that these need
FEW = 2  # finished tasks tell how long one takes

Left = Callable[[], int | None]


class Startable(Protocol):
    """Others that can be started."""

    @property
    def made(self) -> "Future[Workers] | None":
        """They, once they are on their way."""

    def begin(self) -> "Future[Workers]":
        """Have them started, if they are not on their way."""


class HeadStart:
    """Threads of this process until other workers have come, then those.

    `present`, which is asked again and again, has the others started where there is enough left for
    them, and looks whether they are there. Until they have finished something the threads go on,
    and what these have been given they finish. Where the others cannot be started, the threads go
    on alone, which is said. Only the others count as present: the threads do not come and go.

    left: about how many chunks are not finished, if that is known
    """

    def __init__(self, here: LocalWorkers, startable: Startable, left: Left) -> None:
        self.gpu = here.gpu  # for the next task, as all that is chosen
        self._here, self._startable, self._left = here, startable, left
        self._next: Workers = here
        self._others: Workers | None = None
        self._possible = True  # that there will be others
        self._at_work = threading.Event()  # they have finished something
        self._workload: Workload[Any, Any] | None = None
        self._begun: float | None = None  # the job, by the clock
        self._first: float | None = None  # task of the threads that was finished,
        self._last = 0.0  # and the last so far
        self._given_here = self._given_there = 0  # tasks
        self._under_way: list[Future[Any]] = []  # of the threads
        self._in_use = True  # the device, by the threads

    @property
    def threads(self) -> int:
        if self._others is None:
            return self._here.threads
        if self._at_work.is_set():
            return self._others.threads
        # The dispatcher gives each thread two tasks, and they get one until they have finished it.
        return self._here.threads + -(-self._others.threads // 2)

    @property
    def lanes(self) -> int:
        return self._next.lanes

    def admit(self, workload: Workload[Any, Any]) -> None:
        self._workload = workload
        self._here.admit(workload)
        if self._others:
            self._others.admit(workload)

    def dismiss(self, key: str) -> None:
        self._workload = None  # it may hold gigabytes
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
            self._last = self.clock()
            if self._first is None:
                self._first = self._last
            report(outcome, error)

        def finished_there(outcome: Any, error: Exception | None) -> None:
            if type(error) is not Lost:  # as one is that was cancelled
                self._at_work.set()
            report(outcome, error)

        task: Task
        if self._next is self._here:
            self._given_here += 1
            task = self._here.submit(finished_here, function, *arguments)
            self._under_way = [*self._not_finished(), task]
        else:
            self._given_there += 1
            if isinstance(apart_from, Future):  # one of the threads': all others are apart from it
                apart_from = None
            task = self._next.submit(finished_there, function, *arguments, apart_from=apart_from)
        self._choose()
        return task

    def _not_finished(self) -> "list[Future[Any]]":
        return [task for task in self._under_way if not task.done()]

    def _choose(self) -> None:
        """Who gets the next task."""
        others = self._others
        if others and (self._at_work.is_set() or self._given_there < others.threads):
            self._next = others
        else:
            self._next = self._here
        self.gpu = self._next.gpu

    def idle(self) -> int:
        return self._others.idle() if self._others else 0

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        return self._next.everywhere(function, *arguments)

    def present(self) -> set[str]:
        if self._others is None and self._possible:
            self._look_for_others()
        if self._others and self._at_work.is_set():
            self._rest()
        self._choose()
        return self._others.present() if self._others else set()

    def _look_for_others(self) -> None:
        before_the_job = self._begun is None
        if self._begun is None:
            self._begun = self.clock()
        made = self._startable.made
        if made is None:
            if self.clock() - self._begun >= ALONE and self._takes_longer_than(WORTH):
                self._startable.begin()
        elif made.done() and (before_the_job or self._takes_longer_than(LOADING)):
            try:
                self._take(made)
            except UsageError:
                raise
            except Failure as error:
                self._possible = False
                logger.warning("multigpu: %s; the program goes on alone", error)
            else:
                if before_the_job:  # they need no help
                    self._at_work.set()

    def _takes_longer_than(self, seconds: float) -> bool:
        """Whether the job goes on for so long, as far as one can tell."""
        under_way = len(self._not_finished())
        left, finished = self._left(), self._given_here - under_way
        if left is None or self._first is None or finished < FEW:
            return True
        # The first task had much to load. Idle threads wait for what is replayed, or written.
        until = self.clock() if under_way else self._last
        return left * (until - self._first) / (finished - 1) > seconds

    def _take(self, made: "Future[Workers]") -> None:
        """Waits for the others. Raises what went wrong with them."""
        others = made.result()
        if self._workload is not None:
            others.admit(self._workload)
        self._others = others

    def _rest(self) -> None:
        """Give the devices' memory back to their workers when the threads are done."""
        if self._in_use and self._workload and not self._not_finished():
            self._in_use = False
            self._here.dismiss(self._workload.key)

    def retire(self, name: str) -> None:
        """A device of this process, too, has a worker of its own, for which it may be good."""
        if name not in self._here.present():
            assert self._others
            self._others.retire(name)
            return
        self._in_use = False  # nothing can be given back
        if self._others is None:
            try:
                self._take(self._startable.begin())
            except Failure as error:
                raise Failure(f"no worker can take over: {error}") from error
        self._at_work.set()
        self._choose()

    def inbox(self) -> Inbox:
        return self._here.inbox()

    def clock(self) -> float:
        return self._here.clock()
