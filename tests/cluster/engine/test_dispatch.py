"""The engine with a toy workload: order, back-pressure, errors, corrections, lost workers."""

import contextlib
import os
import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.fake_workers import FakeWorkers, Numbers, Seconds, steady
from support.toy import Broken, Bulky, Part, Toy, ToySession, squares, workers

from multigpu.cluster.deploy.dask_clients import LOGGED_MESSAGES, LOOPBACK
from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.engine.dispatch import LINE_PER_THREAD, dispatch
from multigpu.cluster.engine.events import Event
from multigpu.cluster.engine.journal import Codec, Journal
from multigpu.cluster.errors import DeviceFailed, Failure, Unfit, UsageError, WorkerDied
from multigpu.cluster.files import PipeClosed
from multigpu.cluster.workers.dask_workers import DaskWorkers
from multigpu.cluster.workers.threads import LocalWorkers, Workers
from multigpu.cluster.workers.worker import JobEnded, Outcome


@pytest.fixture
def local() -> Iterator[LocalWorkers]:
    """Three threads of this process."""
    pool = LocalWorkers(3)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def two_processes() -> Iterator[Workers]:
    with workers(Deployment(threads=2, processes=2)) as found:
        yield found


@pytest.fixture(params=["threads", pytest.param("processes", marks=pytest.mark.process)])
def any_workers(request: pytest.FixtureRequest) -> Workers:
    names = {"threads": "local", "processes": "two_processes"}
    found: Workers = request.getfixturevalue(names[request.param])
    return found


def parts(outcomes: Iterator[Outcome[Part]]) -> list[Part]:
    return [outcome.part for outcome in outcomes]


@pytest.mark.parametrize("count", [0, 40])
def test_dispatch__gives_the_parts_in_order(any_workers: Workers, count: int) -> None:
    slow = {("compute", number): sleep(0.03) for number in range(0, count, 7)}
    assert parts(dispatch(any_workers, Toy("order", slow), range(count))) == squares(count)


def sleep(seconds: float) -> Callable[[], None]:
    return lambda: time.sleep(seconds)


def test_dispatch__takes_no_more_spans_than_its_window_holds(any_workers: Workers) -> None:
    taken = 0

    def spans() -> Iterator[int]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield number

    window = any_workers.threads * LINE_PER_THREAD
    outcomes = dispatch(any_workers, Toy("window"), spans())
    assert taken == 0
    for done in range(1, 101):
        next(outcomes)
        assert done <= taken <= done + window
        if done == 50:
            time.sleep(0.2)  # nothing runs on while nobody takes
            assert taken <= done + window
    assert next(outcomes, None) is None
    assert taken == 100


def test_dispatch__keeps_all_threads_busy(local: LocalWorkers) -> None:
    """Three chunks can only meet where three run at a time."""
    meeting = threading.Barrier(3)
    step = {("compute", number): lambda: meeting.wait(30) for number in range(9)}
    assert parts(dispatch(local, Toy("busy", step), range(9))) == squares(9)


def test_dispatch__left_early_cancels_what_waits(local: LocalWorkers) -> None:
    computed: list[int] = []
    step = {("load", n): lambda n=n: (computed.append(n), time.sleep(0.01)) for n in range(100)}
    outcomes: Any = dispatch(local, Toy("early", step), range(100))
    assert next(outcomes).part == (0, 0)
    outcomes.close()
    most = 1 + local.threads * (LINE_PER_THREAD + 1)
    time.sleep(0.2)
    assert len(computed) <= most


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with contextlib.closing(Journal(tmp_path / "j", {}, {}, codec=Codec(), resume=False)) as made:
        yield made


def test_journal__reaches_the_disk_while_the_next_chunk_is_computed(
    local: LocalWorkers, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that one takes: without the sync it waits in vain."""
    synced = threading.Event()
    monkeypatch.setattr(os, "fsync", lambda _: synced.set())
    monkeypatch.setattr("multigpu.cluster.engine.dispatch.SYNC_EVERY", 0.1)
    monkeypatch.setattr("multigpu.cluster.engine.dispatch.LOOK_EVERY", 0.05)
    seen: list[bool] = []
    step = {("compute", 1): lambda: seen.append(synced.wait(10))}
    assert parts(dispatch(local, Toy("long", step), range(2), journal=journal)) == squares(2)
    assert seen == [True]


def test_journal__has_reached_the_disk_when_all_is_computed(
    local: LocalWorkers, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made of the parts may take long."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr("multigpu.cluster.engine.journal.SYNC_EVERY", 1e9)
    monkeypatch.setattr("multigpu.cluster.engine.dispatch.SYNC_EVERY", 1e9)
    assert parts(dispatch(local, Toy("last"), range(9), journal=journal)) == squares(9)
    assert len(synced) == 1


def test_outcome__tells_the_worker_and_when_each_step_ran(any_workers: Workers) -> None:
    begin = time.time()
    slow = {("load", 3): sleep(0.05), **{("compute", n): sleep(0.02) for n in range(20)}}
    outcomes = list(dispatch(any_workers, Toy("steps", slow), range(20)))
    end = time.time()
    assert {outcome.worker for outcome in outcomes} == any_workers.present()
    for outcome in outcomes:
        assert outcome.device == "cpu"
        assert [step.name for step in outcome.steps] == ["load", "compute", "finish"]
        times = [time for step in outcome.steps for time in (step.begin, step.end)]
        assert times == sorted(times)
        assert begin <= times[0] <= times[-1] <= end
    assert outcomes[3].steps[0].end - outcomes[3].steps[0].begin >= 0.05


class Counting(Toy):
    """A toy that knows its sessions."""

    def open(self, place: Any) -> ToySession:
        self.opened = [*getattr(self, "opened", ()), super().open(place)]
        return self.opened[-1]


def test_session__is_opened_once_and_closed_at_the_end(local: LocalWorkers) -> None:
    """And sessions of two jobs at once do not mix."""
    toy = Counting("counted")
    one, two = (dispatch(local, job, range(30)) for job in (toy, Toy("other")))
    mixed = [outcome.part for pair in zip(one, two, strict=True) for outcome in pair]
    assert mixed == [part for part in squares(30) for _ in range(2)]
    assert [session.closed for session in toy.opened] == [True]
    assert toy.opened[0].place.gpu is None
    assert toy.opened[0].place.free_bytes > 0


def raising(error: Exception) -> Callable[[], None]:
    def go() -> None:
        raise error

    return go


@pytest.mark.parametrize("step", ["load", "compute", "finish"])
def test_error__of_a_step_is_raised_in_its_place(any_workers: Workers, step: str) -> None:
    toy = Toy(f"error in {step}", {(step, 5): raising(UsageError("span 5 is bad"))})
    outcomes = dispatch(any_workers, toy, range(20))
    assert [next(outcomes).part for _ in range(5)] == squares(5)
    with pytest.raises(UsageError, match=r"^span 5 is bad$"):
        next(outcomes)
    assert next(outcomes, None) is None


def test_error__that_comes_first_in_the_input_is_raised(any_workers: Workers) -> None:
    """Though a later one is quicker; and that of the spans themselves."""

    def late() -> None:
        time.sleep(0.2)
        raise Broken("first")

    def spans() -> Iterator[int]:
        yield from range(3)
        raise Broken("no more spans")

    toy = Toy("two errors", {("load", 2): late, ("load", 4): raising(Broken("second"))})
    for job, given, problem in ((toy, range(20), "first"), (Toy("s"), spans(), "no more spans")):
        with pytest.raises(Broken, match=rf"^{problem}$"):
            parts(dispatch(any_workers, job, given))


@pytest.mark.process
def test_correct__is_asked_for_every_part_and_may_give_a_span(any_workers: Workers) -> None:
    toy = Toy("corrected", {("compute", 2): sleep(0.05)}, wrong={1, 3, 4, 9})
    expected = [(-n if n in toy.wrong else n, n * n) for n in range(10)]
    assert parts(dispatch(any_workers, toy, range(10))) == expected
    assert toy.asked == [0, 1, -1, 2, 3, -3, 4, -4, 5, 6, 7, 8, 9, -9]


def test_correct__asks_again_until_the_part_is_right(local: LocalWorkers) -> None:
    class Halving(Toy):
        def correct(self, span: int | None, part: Part) -> int | None:
            assert part[0] == span
            return span // 2 if span > 1 else None

    assert parts(dispatch(local, Halving("halved"), [8, 1, 5])) == [(1, 1)] * 3


def test_spans__that_carry_data_are_not_kept_when_they_are_done(two_processes: Workers) -> None:
    """Dask would keep the last thousand messages of each connection."""
    spans = [Bulky(number) for number in range(3 * LOGGED_MESSAGES)]
    assert parts(dispatch(two_processes, Toy("bulky"), iter(spans))) == squares(len(spans))
    client = two_processes._client  # type: ignore[attr-defined]
    assert len(client.scheduler_comm.recent_message_log) <= LOGGED_MESSAGES


def test_deployment__in_one_process_starts_none_and_does_not_load_dask() -> None:
    before = set(psutil.Process().children(recursive=True))
    with workers(Deployment(threads=2)) as local:
        assert isinstance(local, LocalWorkers)
        assert set(psutil.Process().children(recursive=True)) == before


def test_remote_workers__that_do_not_come_are_given_up() -> None:
    from distributed import Client, LocalCluster

    options = {"host": LOOPBACK, "dashboard_address": f"{LOOPBACK}:0"}
    with (
        LocalCluster(n_workers=0, **options) as lonely,
        Client(lonely, set_as_default=False) as client,
        pytest.raises(Failure, match=r"^no worker has connected for 0\.1 s \(worker_timeout\)$"),
    ):
        DaskWorkers(client, None, worker_timeout=0.1)


FAILURES = (
    Failure("lost"), UsageError("wrong"), WorkerDied("a", 2), DeviceFailed("a", "hot"),
    Unfit("a", "old"), JobEnded(), PipeClosed(),
)  # fmt: skip


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_failures__survive_the_way_back_from_a_worker(error: Failure) -> None:
    again = pickle.loads(pickle.dumps(error))
    first, second = ((type(each), str(each), each.exit_status) for each in (error, again))
    assert first == second


COUNT = 20  # workers
CHUNKS = 60 * COUNT
IDEAL = 600.0  # seconds


@dataclass
class Ran:
    seconds: float
    events: Counter[str]
    longest_line: int


def run(workers: FakeWorkers, **faults: Any) -> Ran:
    events: Counter[str] = Counter()
    parts: list[int] = []
    taken = longest = 0

    def spans() -> Iterator[int]:
        nonlocal taken, longest
        for number in range(CHUNKS):
            taken += 1
            longest = max(longest, taken - len(parts))
            yield number

    def tell(event: Event) -> None:
        events[event.name] += 1

    parts.extend(each.part for each in dispatch(workers, Numbers(), spans(), **faults, tell=tell))
    assert parts == list(range(CHUNKS))
    return Ran(workers.now, events, longest)


def steady_run(seconds: Seconds, **faults: Any) -> Ran:
    return run(FakeWorkers(COUNT, seconds), **faults)


def test_workers__that_are_alike_take_the_ideal_time_and_nothing_runs_twice() -> None:
    ran = steady_run(steady())
    assert ran.seconds == pytest.approx(IDEAL)
    assert ran.events["started"] == CHUNKS


@pytest.mark.parametrize(
    ("late", "most"),
    [([(0, 0)], 1.2), ([(300, 0)], 1.2), ([(CHUNKS - 1, 0)], 1.2), ([(300, 0), (300, 1)], 1.3)],
)
def test_chunk__that_hangs_is_run_elsewhere(late: list[tuple[int, int]], most: float) -> None:
    """Before all wait for it, and a third time if the second attempt hangs too."""
    ran = steady_run(steady(late))
    assert ran.events["moved"] >= 1
    assert ran.seconds < most * IDEAL
    assert ran.events["started"] < CHUNKS + CHUNKS // 20


def test_worker__that_is_slow_does_not_hold_the_others_up() -> None:
    workers = FakeWorkers(COUNT, steady())
    workers._seconds = lambda chunk, attempt: 100.0 if _on_first(workers, chunk, attempt) else 10.0
    assert run(workers).seconds < 1.2 * IDEAL


def _on_first(workers: FakeWorkers, chunk: int, attempt: int) -> bool:
    task = workers._running.get("worker-0")
    return task is not None and (task.chunk, task.attempt) == (chunk, attempt)


def test_line__never_holds_more_than_its_bound() -> None:
    ran = steady_run(lambda chunk, _: 500.0 if chunk == 300 else 10.0)
    assert ran.longest_line == LINE_PER_THREAD * COUNT


def test_chunk_timeout__decides_alone_when_a_chunk_is_late() -> None:
    ran = steady_run(steady([(300, 0)]), chunk_timeout=500.0)
    assert ran.events["moved"] == 1
    assert ran.seconds > 500.0


def test_workers__that_join_get_work_and_those_that_die_lose_none() -> None:
    workers = FakeWorkers(COUNT, steady())
    for number in range(COUNT):
        workers.at(60.0, lambda name=f"new-{number}": workers.join(name))  # type: ignore[misc]
        workers.at(205.0, lambda name=f"worker-{number}": workers.die(name))  # type: ignore[misc]
    ran = run(workers)
    assert ran.events["joined"] == ran.events["left"] == ran.events["retried"] == COUNT
    assert ran.seconds < 1.1 * (IDEAL - 145)
