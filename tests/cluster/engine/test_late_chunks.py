"""Workers that hang, lag, die and join cost little time and lose nothing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from support.fake_workers import FakeWorkers, Numbers, Seconds, steady

from multigpu.cluster.engine.dispatch import LINE_PER_THREAD, dispatch
from multigpu.cluster.engine.events import Event

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

    outcomes = dispatch(workers, Numbers(), spans(), **faults, tell=tell)
    parts.extend(outcome.part for outcome in outcomes)
    assert parts == list(range(CHUNKS))
    return Ran(workers.now, events, longest)


def steady_run(seconds: Seconds, **faults: Any) -> Ran:
    return run(FakeWorkers(COUNT, seconds), **faults)


def test_workers__that_are_alike_take_the_ideal_time_and_nothing_runs_twice() -> None:
    ran = steady_run(steady())
    assert ran.seconds == pytest.approx(IDEAL)
    assert ran.events["started"] == CHUNKS


@pytest.mark.parametrize("late", [0, 300, CHUNKS - 1])
def test_chunk__that_hangs_is_run_elsewhere_before_all_wait_for_it(late: int) -> None:
    ran = steady_run(steady([(late, 0)]))
    assert ran.events["moved"] >= 1
    assert ran.seconds < 1.2 * IDEAL
    assert ran.events["started"] < CHUNKS + CHUNKS // 20


def test_chunk__whose_second_attempt_hangs_too_is_run_a_third_time() -> None:
    ran = steady_run(steady([(300, 0), (300, 1)]))
    assert ran.seconds < 1.3 * IDEAL


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
