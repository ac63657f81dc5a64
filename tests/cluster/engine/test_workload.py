"""Series: spans of an input whose parts alone tell how many there are."""

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from support.fake_workers import FakeWorkers, steady
from support.fake_workers import Numbers as Fakes
from support.toy import Broken, Part, Toy

from multigpu.cluster.engine import dispatch as engine
from multigpu.cluster.engine.dispatch import LINE_PER_THREAD, dispatch
from multigpu.cluster.engine.journal import Codec, Journal
from multigpu.cluster.engine.workload import Series
from multigpu.cluster.workers.threads import LocalWorkers

STEP = 1000  # between the first numbers of two series


@pytest.fixture(params=[1, 3])
def local(request: pytest.FixtureRequest) -> Iterator[LocalWorkers]:
    pool = LocalWorkers(request.param)
    yield pool
    pool.close()


class Numbers:
    """Series of numbers, and what was taken of each."""

    def __init__(self, *lengths: int, size: int = 1) -> None:
        self.lengths, self._size = lengths, size
        self.taken = [0] * len(lengths)
        self.part: Callable[[Any], int] = itemgetter(0)

    def series(self, number: int) -> Series[int, Part]:
        def spans() -> Iterator[int]:
            for place in itertools.count():
                self.taken[number] += 1
                yield number * STEP + place

        last = number * STEP + self.lengths[number] - 1
        return Series(spans(), lambda part: self.part(part) >= last, lambda _: self._size)

    def each(self) -> list[Series[int, Part]]:
        return [self.series(number) for number in range(len(self.lengths))]

    def expected(self) -> list[int]:
        return [n * STEP + place for n, size in enumerate(self.lengths) for place in range(size)]


@pytest.mark.parametrize("lengths", [(1,), (30,), (5, 1, 20, 1, 3), (1,) * 40])
def test_series__give_their_parts_in_order(local: LocalWorkers, lengths: tuple[int, ...]) -> None:
    numbers = Numbers(*lengths)
    late = {("compute", 0): lambda: threading.Event().wait(0.1)}
    found = [each.part for each in dispatch(local, Toy("series", late), numbers.each())]
    assert found == [(number, number**2) for number in numbers.expected()]
    taken = zip(numbers.taken, lengths, strict=True)
    assert all(n <= length + 2 * local.threads for n, length in taken)


def test_series__stand_among_other_spans(local: LocalWorkers) -> None:
    numbers = Numbers(3, 4)
    spans = [-1, numbers.series(0), -2, -3, numbers.series(1), -4]
    found = [each.part[0] for each in dispatch(local, Toy("among"), spans)]
    assert found == [-1, 0, 1, 2, -2, -3, 1000, 1001, 1002, 1003, -4]


def test_series__are_run_by_as_many_threads() -> None:
    """Two chunks can only meet where a thread has each of the series."""
    meeting, local = threading.Barrier(2), LocalWorkers(2)
    step = {("compute", n): lambda: meeting.wait(30) for n in (0, 1, 2, STEP, STEP + 1, STEP + 2)}
    numbers = Numbers(3, 3)
    found = [each.part[0] for each in dispatch(local, Toy("busy", step), numbers.each())]
    local.close()
    assert found == numbers.expected()


def test_series__let_the_first_alone(local: LocalWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    """And behind a late chunk no series runs on for ever."""
    monkeypatch.setattr(engine, "WAITING_BYTES", 10)
    gate, numbers = threading.Event(), Numbers(50, 500, 500)
    toy = Toy("late", {("compute", 0): lambda: gate.wait(30)})
    outcomes = dispatch(local, toy, numbers.each())
    threading.Timer(0.3, gate.set).start()
    first = next(outcomes)
    most = local.threads * LINE_PER_THREAD
    assert numbers.taken[0] <= most
    assert sum(numbers.taken[1:]) <= 10 + 2 * local.threads
    assert [each.part[0] for each in [first, *outcomes]] == numbers.expected()


def test_series__raise_an_error_when_its_turn_comes(local: LocalWorkers) -> None:
    def fail() -> None:
        raise Broken

    outcomes = dispatch(local, Toy("broken", {("load", 1001): fail}), Numbers(9, 9, 9).each())
    found = []
    with pytest.raises(Broken):
        found.extend(each.part[0] for each in outcomes)
    assert [each.part[0] for each in dispatch(local, Toy("after"), [5])] == [5]


def test_series__are_in_the_journal_part_by_part(local: LocalWorkers, tmp_path: Path) -> None:
    numbers = Numbers(4, 2)
    journal = Journal(tmp_path / "journal", {}, {}, codec=Codec(), resume=True)
    outcomes = dispatch(local, Toy("kept"), numbers.each(), journal=journal)
    assert len(list(itertools.islice(outcomes, 5))) == 5
    del outcomes
    journal.close()
    again = Journal(tmp_path / "journal", {}, {}, codec=Codec(), resume=True)
    assert [part[0] for part in again.parts()] == [0, 1, 2, 3, 1000]
    assert again.last_part() == (1000, 1000**2)
    again.close()


def run_on(workers: FakeWorkers, numbers: Numbers) -> list[tuple[str, int]]:
    """Return the worker and the part of every outcome."""
    outcomes = dispatch(workers, Fakes(), numbers.each())
    return [(each.worker, each.part) for each in outcomes]


def test_series__stay_with_a_worker_each() -> None:
    numbers = Numbers(9, 9, 9, 9, 9, 9, size=0)
    numbers.part = lambda part: part
    found = run_on(FakeWorkers(3, steady(seconds=1.0)), numbers)
    assert [part for _, part in found] == numbers.expected()
    homes = [{worker for worker, part in found if part // STEP == n} for n in range(6)]
    assert all(len(home) == 1 for home in homes)
    assert len(set.union(*homes)) == 3
    # They move once where it leaves or hangs.
    for harm in ("dies", "hangs"):
        numbers = Numbers(40, 40, size=0)
        numbers.part = lambda part: part
        hanging = [(10, 0), (11, 0), (12, 0)] if harm == "hangs" else []
        workers = FakeWorkers(3, steady(hanging, seconds=1.0))
        if harm == "dies":
            workers.at(10.5, partial(workers.die, "worker-0"))
        found = run_on(workers, numbers)
        assert [part for _, part in found] == numbers.expected()
        assert len(found) - sum(w == v for (w, _), (v, _) in itertools.pairwise(found)) <= 5
