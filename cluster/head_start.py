"""Threads of this process that begin with the work while others are still on their way.

Eight worker processes with a GPU each take seven seconds to come up. Until then the first GPU works
for the program itself; a job that is short is done by then, and a long one has lost nothing.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from cluster.workers import Inbox, LocalWorkers, Report, Task, Workers
from cluster.workload import Workload


class HeadStart:
    """Threads of this process until other workers have come, then those.

    What the threads have been given they finish. `present`, which is asked again and again, looks
    whether the others are there; it raises what went wrong with them.
    """

    def __init__(self, here: LocalWorkers, coming: "Future[Workers]") -> None:
        self.gpu = here.gpu
        self._here, self._coming = here, coming
        self._now: Workers = here
        self._workload: Workload[Any, Any] | None = None
        self._given: list[Future[Any]] = []  # to the threads of this process

    @property
    def threads(self) -> int:
        return self._now.threads

    @property
    def lanes(self) -> int:
        return self._now.lanes

    def admit(self, workload: Workload[Any, Any]) -> None:
        self._workload = workload
        self._now.admit(workload)

    def dismiss(self, key: str) -> None:
        self._here.dismiss(key)
        if self._now is not self._here:
            self._now.dismiss(key)

    def submit(
        self,
        report: Report,
        function: Callable[..., Any],
        *arguments: Any,
        apart_from: Task | None = None,
    ) -> Task:
        if self._now is self._here:
            task = self._here.submit(report, function, *arguments)
            self._given.append(task)
            return task
        if apart_from in self._given:  # every one of the others is apart from it
            apart_from = None
        return self._now.submit(report, function, *arguments, apart_from=apart_from)

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        return self._now.everywhere(function, *arguments)

    def present(self) -> set[str]:
        if self._now is self._here:
            if self._coming.done():
                self._take_over()
        elif self._workload and self._given and all(task.done() for task in self._given):
            self._given.clear()
            self._here.dismiss(self._workload.key)  # and the device's memory is free for its worker
        return self._here.present() | self._now.present()

    def retire(self, name: str) -> None:
        """The device of this process, too, has a worker of its own, for which it may be good."""
        if name not in self._here.present():
            self._now.retire(name)
        elif self._now is self._here:
            self._take_over()

    def _take_over(self) -> None:
        """Waits for the others."""
        self._now = self._coming.result()
        self.gpu = self._now.gpu
        if self._workload is not None:
            self._now.admit(self._workload)

    def inbox(self) -> Inbox:
        return self._here.inbox()

    def clock(self) -> float:
        return self._here.clock()
