"""Threads of this process that begin while other workers are on their way."""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.toy import Part, Toy

from multigpu.cluster.deploy import Deployment, starting
from multigpu.cluster.engine.dispatch import dispatch
from multigpu.cluster.errors import DeviceFailed, Failure, Lost, WorkerDied
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.head_start import HeadStart
from multigpu.cluster.workers.threads import LocalWorkers, Workers
from multigpu.cluster.workers.worker import Outcome

BEGUN = Deployment(threads=4, processes=2, head_start=1)


class Given:
    """Others that are started by somebody else."""

    def __init__(self, others: "Future[Workers]") -> None:
        self.made: Future[Workers] | None = None
        self._others = others

    def begin(self) -> "Future[Workers]":
        self.made = self._others
        return self.made


def unknown() -> None:
    """How many chunks are left."""


@pytest.fixture
def here() -> Iterator[LocalWorkers]:
    threads = LocalWorkers(2)
    yield threads
    threads.close()


def parts(outcomes: list[Outcome[Part]]) -> list[Part]:
    return [outcome.part for outcome in outcomes]


def squares(count: int) -> list[Part]:
    return [(number, number * number) for number in range(count)]


def asleep(seconds: float, count: int) -> dict[tuple[str, int], Callable[[], None]]:
    return {("compute", number): lambda: time.sleep(seconds) for number in range(count)}


def test_job__that_is_short_is_done_before_the_others_come(here: LocalWorkers) -> None:
    never: Future[Workers] = Future()
    outcomes = list(dispatch(HeadStart(here, Given(never), unknown), Toy("short"), range(40)))
    assert parts(outcomes) == squares(40)
    assert {outcome.worker for outcome in outcomes} == {worker.name()}


def test_job__that_is_long_is_gone_on_with_by_the_others() -> None:
    toy = Toy("long", asleep(0.02, 1500))
    begin = time.monotonic()
    with starting(BEGUN) as coming:
        coming.begin()
        workers = coming()
        assert time.monotonic() - begin < 1
        assert (workers.threads, workers.present()) == (2, set())
        outcomes = list(dispatch(workers, toy, range(1500)))
        assert len(workers.present()) == 2
    assert parts(outcomes) == squares(1500)
    by = {outcome.worker for outcome in outcomes}
    assert len(by) == 3
    assert worker.name() in by
    assert outcomes[0].worker == worker.name() != outcomes[-1].worker


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are started when the job begins."""
    monkeypatch.setattr("multigpu.cluster.workers.head_start.ALONE", 0.0)


def unheard(*_: object) -> None:
    pass


@pytest.mark.usefixtures("at_once")
def test_threads__go_on_until_the_others_have_finished_something(
    here: LocalWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And give their memory back, but not before all that they have been given is done."""
    dismissed: list[str] = []
    monkeypatch.setattr(here, "dismiss", dismissed.append)
    coming: Future[Workers] = Future()
    both = HeadStart(here, Given(coming), unknown)
    both.admit(Toy("memory"))
    both.present()
    first, loaded = threading.Event(), threading.Event()
    both.submit(unheard, first.wait, 30)
    others = LocalWorkers(1, ["a GPU"])
    coming.set_result(others)
    both.present()
    assert (both.threads, both.gpu) == (3, worker.OWN)  # half of theirs, rounded up
    tried = both.submit(unheard, loaded.wait, 30)
    assert (both.threads, both.gpu) == (3, None)  # here, until that is done
    loaded.set()
    wait([tried])  # type: ignore[list-item]
    both.present()
    assert (both.threads, both.gpu) == (1, worker.OWN)
    assert dismissed == []
    first.set()
    while not dismissed:
        time.sleep(0.01)
        both.present()
    assert dismissed == ["memory"]
    others.close()


@pytest.mark.usefixtures("at_once")
def test_others__that_cannot_come_are_done_without_which_is_said(
    here: LocalWorkers, caplog: pytest.LogCaptureFixture
) -> None:
    failed: Future[Workers] = Future()
    failed.set_exception(Failure("the workers could not be started: no memory"))
    toy = Toy("failed", asleep(0.02, 200))
    outcomes = dispatch(HeadStart(here, Given(failed), unknown), toy, range(200))
    assert parts(list(outcomes)) == squares(200)
    said = "multigpu: the workers could not be started: no memory; the program goes on alone"
    assert caplog.messages == [said]


def test_device__that_fails_where_no_others_can_come_ends_the_run(
    here: LocalWorkers, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise DeviceFailed(worker.name(), "an ECC error")

    failed: Future[Workers] = Future()
    failed.set_exception(Failure("no memory"))
    toy = Toy("lost", {("compute", 3): fail})
    with pytest.raises(Failure, match="an ECC error; no worker can take over: no memory"):
        list(dispatch(HeadStart(here, Given(failed), unknown), toy, range(30)))
    assert caplog.messages == []


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_others__that_cannot_be_told_of_the_job_get_nothing_of_it(
    here: LocalWorkers, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    class Others(LocalWorkers):
        def admit(self, workload: Any) -> None:
            raise Failure("the scheduler does not answer")

    coming: Future[Workers] = Future()
    (others := Others(1)).close()
    toy = Toy("untold", asleep(0.02, 100))
    if when == "meanwhile":
        toy.step["compute", 9] = lambda: coming.set_result(others)
        outcomes = list(dispatch(HeadStart(here, Given(coming), unknown), toy, range(100)))
        assert parts(outcomes) == squares(100)
        assert caplog.messages == [
            "multigpu: the scheduler does not answer; the program goes on alone"
        ]
    else:
        coming.set_result(others)
        begun = HeadStart(here, Given(coming), unknown)
        begun.present()
        begun.present()
        with pytest.raises(Failure, match="the scheduler does not answer"):
            list(dispatch(begun, toy, range(100)))
    assert toy.key not in worker._jobs


@pytest.mark.usefixtures("at_once")
def test_parts__that_were_made_here_are_not_kept(here: LocalWorkers) -> None:
    made: list[weakref.ref[Any]] = []

    class Large:
        pass

    def make() -> Large:
        large = Large()
        made.append(weakref.ref(large))
        return large

    begun = HeadStart(here, Given(Future()), unknown)
    begun.present()
    for _ in range(9):
        reported = threading.Event()
        begun.submit(lambda *_, reported=reported: reported.set(), make)
        assert reported.wait(9)
    assert sum(reference() is not None for reference in made) <= 3


@pytest.mark.usefixtures("at_once")
def test_others__whose_task_was_cancelled_are_not_at_work(here: LocalWorkers) -> None:
    reports: list[Any] = []

    class Others(LocalWorkers):
        def submit(
            self, report: Any, function: Any, *arguments: Any, apart_from: Any = None
        ) -> Any:
            reports.append(report)
            return None

    coming: Future[Workers] = Future()
    both = HeadStart(here, Given(coming), unknown)
    both.present()
    coming.set_result(Others(2))
    both.present()
    both.submit(unheard, int)
    both.submit(unheard, int)
    assert both.threads == 3
    reports[0](None, Lost("cancelled"))
    assert both.threads == 3
    reports[1](None, WorkerDied("one", 1))
    assert both.threads == 2


@pytest.mark.usefixtures("at_once")
def test_others__that_come_for_the_last_chunks_are_not_given_them(here: LocalWorkers) -> None:
    left = 99
    coming: Future[Workers] = Future()
    both = HeadStart(here, Given(coming), lambda: left)
    both.present()
    for _ in range(3):
        reported = threading.Event()
        both.submit(lambda *_, reported=reported: reported.set(), time.sleep, 0.01)
        assert reported.wait(9)
    coming.set_result(LocalWorkers(5, ["a GPU"]))
    left = 1
    both.present()
    assert (both.threads, both.gpu) == (2, None)


def test_device__that_fails_here_is_left_to_the_others() -> None:
    here = os.getpid()

    def fail_here() -> None:
        if os.getpid() == here:
            raise DeviceFailed(worker.name(), "an ECC error")

    told: list[str] = []
    with starting(BEGUN) as coming:
        toy = Toy("device", {("compute", 3): fail_here})
        outcomes = list(dispatch(coming(), toy, range(30), tell=lambda e: told.append(e.name)))
    assert parts(outcomes) == squares(30)
    assert told.count("retired") == 1
    assert outcomes[3].worker != worker.name()


@pytest.mark.usefixtures("at_once")
def test_chunk__that_is_late_here_is_begun_by_the_others(here: LocalWorkers) -> None:
    given: list[Any] = []

    class Others(LocalWorkers):
        def submit(
            self, report: Any, function: Any, *arguments: Any, apart_from: Any = None
        ) -> Any:
            given.append(apart_from)
            return f"task {len(given)}"

    coming: Future[Workers] = Future()
    both = HeadStart(here, Given(coming), unknown)
    both.present()
    late = both.submit(unheard, time.sleep, 0)
    coming.set_result(Others(2))
    both.present()
    again = both.submit(unheard, time.sleep, 0, apart_from=late)
    both.submit(unheard, time.sleep, 0, apart_from=again)
    assert given == [None, again] == [None, "task 1"]


@pytest.mark.parametrize(
    ("seconds", "left", "busy", "started"),
    [
        (1.9, 999, False, False),
        (2.1, None, False, True),
        (2.1, 39, False, False),
        (9.9, 39, False, False),  # threads that are idle wait for something else
        (2.1, 41, False, True),
        (2.1, 14, True, False),
        (2.1, 15, True, True),
    ],
)
def test_others__are_started_where_there_is_enough_left(
    here: LocalWorkers,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    left: int | None,
    busy: bool,
    started: bool,
) -> None:
    now, over = 0.0, threading.Event()
    monkeypatch.setattr(here, "clock", lambda: now)
    others = Given(Future())
    begun = HeadStart(here, others, lambda: left)
    begun.present()
    for time_now in (0.7, 1.0, 1.2):
        now = time_now
        reported = threading.Event()
        begun.submit(lambda *_, reported=reported: reported.set(), int)
        assert reported.wait(9)
    now = seconds
    if busy:
        begun.submit(lambda *_: None, over.wait)
    begun.present()
    over.set()
    assert (others.made is not None) == started


def test_others__that_are_there_before_the_job_do_it() -> None:
    with starting(BEGUN) as coming:
        coming.begin().result()
        outcomes = list(dispatch(coming(), Toy("there"), range(9)))
    assert parts(outcomes) == squares(9)
    assert worker.name() not in {outcome.worker for outcome in outcomes}


@pytest.mark.usefixtures("at_once")
def test_workers__that_are_still_coming_are_not_waited_for(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path))
        before = set(psutil.Process().children(recursive=True))
        begin = time.monotonic()
        with starting(BEGUN) as coming:
            assert parts(list(dispatch(coming(), Toy("quick"), range(9)))) == squares(9)
        assert time.monotonic() - begin < 1
        while any(thread.name.startswith("workers") for thread in threading.enumerate()):
            time.sleep(0.05)  # what was started ends by itself
        started = set(psutil.Process().children(recursive=True)) - before
        workers = [process for process in started if "spawn_main" in str(process.cmdline())]
        assert psutil.wait_procs(workers, timeout=10)[1] == []
        assert list(tmp_path.iterdir()) == []
