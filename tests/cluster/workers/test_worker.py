"""The life of a chunk where memory or the device gives out."""

import contextlib
import itertools
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import psutil
import pytest

from multigpu.cluster.devices import memory
from multigpu.cluster.errors import DeviceFailed, Failure, Unfit
from multigpu.cluster.workers import worker

FREE = 1000
REAL_MEMORY = {name: getattr(memory, name) for name in ("use", "free_bytes", "release_pool")}
REAL_DEVICE_OF = worker.device_of
NO_ROOM = "about 1 bytes of memory are needed and 1,000 are free, and it cannot be divided further"
THRUST = RuntimeError("radix_sort: failed on 1st step: cudaErrorMemoryAllocation: out of memory")


class CUDARuntimeError(RuntimeError):
    """Stands for CuPy's, by its name and its `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}: what happened\nmore of it")
        self.status = status


@dataclass
class Sums:
    """Sums ranges of numbers; a device takes no more than `room` of them at once."""

    room: int
    key: str = "sums"
    error: Exception | None = None  # of every attempt to compute on a device
    opened: list[Any] = field(default_factory=list)
    closed: int = 0
    on_compute: Callable[[], None] = int  # what happens meanwhile
    finished: int = 0

    def open(self, place: Any) -> "SumSession":
        self.opened.append(place.gpu)
        return SumSession(self, place.gpu)

    def name(self, span: range) -> str:
        return f"numbers {span.start} to {span.stop}"

    def correct(self, span: range | None, part: int) -> None:
        return None


@dataclass
class SumSession:
    sums: Sums
    gpu: int | None

    def load(self, span: range) -> range:
        return span

    def compute(self, loaded: range) -> int:
        self.sums.on_compute()
        if self.gpu is not None and self.sums.error is not None:
            raise self.sums.error
        if self.gpu is not None and len(loaded) > self.sums.room:
            raise MemoryError("no room")
        return sum(loaded)

    def need(self, loaded: range) -> int:
        return len(loaded)

    def halves(self, loaded: range) -> tuple[range, ...]:
        middle = len(loaded) // 2
        return (loaded[:middle], loaded[middle:]) if middle else ()

    def joined(self, loaded: range, halves: Sequence[range], computed: Sequence[int]) -> int:
        assert [*itertools.chain(*halves)] == list(loaded)
        return sum(computed)

    def finish(self, loaded: range, computed: int) -> int:
        self.sums.finished += 1
        return computed

    def close(self) -> None:
        self.sums.closed += 1


@pytest.fixture(autouse=True)
def _device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A GPU, as far as these tests look at it."""
    monkeypatch.setattr(worker, "device_of", lambda gpu: None if gpu is None else 0)
    monkeypatch.setattr(memory, "use", lambda device: None)
    monkeypatch.setattr(memory, "free_bytes", lambda device: FREE)
    monkeypatch.setattr(memory, "release_pool", lambda device: None)
    yield
    worker.WORKER.jobs.dismiss("sums")


def run(sums: Sums, count: int, gpu: str | None = "GPU-0", **more: Any) -> worker.Outcome[int]:
    worker.WORKER.jobs.admit(sums)
    return worker.run_chunk("sums", gpu, range(count), **more)


def names(outcome: worker.Outcome[int]) -> list[str]:
    return [event.name for event in outcome.events]


@pytest.mark.parametrize("room", [1, 2, 3, 7, 50, 99, 100])
def test_chunk__too_large_for_the_device_is_halved_until_it_fits(room: int) -> None:
    outcome = run(Sums(room), 100)
    assert outcome.part == sum(range(100))
    assert set(names(outcome)) == ({"split"} if room < 100 else set())
    assert outcome.device == "gpu0"


def test_chunk__of_a_job_without_room_runs_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "REOPEN_AFTER", ())

    class Large(Sums):
        def open(self, place: Any) -> "SumSession":
            if place.gpu is not None:
                raise MemoryError
            return super().open(place)

    sums = Large(10)
    for _ in range(2):
        outcome = run(sums, 4)
        assert (outcome.part, outcome.device) == (6, "cpu")
        reason = outcome.events[0].details["reason"]
        assert reason == "too little memory, 1,000 bytes are free there (MemoryError)"
    assert sums.opened == [None]
    monkeypatch.setattr(worker.WORKER.lane, "gpu", "GPU-0")
    with pytest.raises(Unfit, match=rf":GPU-0: {re.escape(reason)}$"):  # others may have room
        run(sums, 4)


def test_chunks__that_do_not_fit_at_once_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for one of four: two wait, then one, and nothing is divided."""
    monkeypatch.setattr(worker, "REOPEN_AFTER", ())
    inside, lock, met = Counter[str](), threading.Lock(), threading.Barrier(4, timeout=30)
    first = threading.local()

    def compute() -> None:
        if not hasattr(first, "done"):
            first.done = met.wait()
        with lock:
            inside["now"] += 1
            inside["most"] = max(inside["most"], inside["now"])
        time.sleep(0.01)
        with lock:
            is_full = inside["now"] > 1
        time.sleep(0.01)
        with lock:
            inside["now"] -= 1
        if is_full:
            raise MemoryError

    sums = Sums(9, on_compute=compute)
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: run(sums, 4), range(4)))
    assert [outcome.part for outcome in outcomes] == [6] * 4
    assert {name for outcome in outcomes for name in names(outcome)} == {"fewer"}
    turns = worker.WORKER.jobs["sums"].turns[0]
    assert inside["most"] == 4
    assert turns._most == 2  # as four chunks fitted


def test_chunk__that_fits_nowhere_is_on_the_cpu_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = Sums(0)
    outcome = run(sums, 4)
    assert (outcome.part, outcome.device, sums.opened) == (6, "cpu", [0, None])
    assert names(outcome) == ["split", "split", "on_cpu"]
    assert outcome.events[-1].details["reason"] == NO_ROOM
    with pytest.raises(Failure, match=f"^numbers 0 to 4: {NO_ROOM}$"):
        run(Sums(0), 4, cpu_fallback=False)
    monkeypatch.setattr(SumSession, "compute", Mock(side_effect=MemoryError))
    for gpu in ("GPU-0", None):
        with pytest.raises(Failure, match=f"^numbers 0 to 4: {NO_ROOM}$"):
            run(Sums(9), 4, gpu=gpu)


def test_host__has_no_more_memory_than_its_address_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ulimit -v`; a scan that does not fit in it is refused before it begins."""
    size = psutil.Process().memory_info().vms
    for limit, most in ((size + (1 << 28), 1 << 29), (1, 0)):
        monkeypatch.setattr(memory.resource, "getrlimit", lambda _, at=limit: (at, at))
        assert REAL_MEMORY["free_bytes"](None) <= most


@pytest.mark.parametrize("error", [CUDARuntimeError(2), THRUST], ids=["CUDA", "Thrust"])
def test_device__without_memory_by_its_own_account_is_no_broken_one(error: Exception) -> None:
    outcome = run(Sums(9, error=error), 4)
    assert (outcome.part, names(outcome)[-1]) == (6, "on_cpu")


def test_device__without_room_for_a_context_has_no_free_bytes(
    used: list[tuple[threading.Thread, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __init__(self, number: int) -> None:
            raise CUDARuntimeError(2)

    monkeypatch.setattr(sys.modules["cupy"].cuda, "Device", Full)
    monkeypatch.setattr(worker, "REOPEN_AFTER", ())
    assert memory.free_bytes(0) == 0
    memory.release_pool(0)
    outcome = run(Sums(9), 4)
    assert (outcome.part, outcome.device) == (6, "cpu")
    assert "too little memory, 0 bytes are free" in outcome.events[0].details["reason"]


@pytest.mark.parametrize(("error", "kind", "match"), [
    (CUDARuntimeError(700), DeviceFailed, ": cudaError 700: what happened$"),
    (CUDARuntimeError(214), DeviceFailed, ": cudaError 214: what happened$"),
    # Of a process that was forked after CUDA was used.
    (CUDARuntimeError(3), DeviceFailed, r"cudaError 3: what happened; .*\('spawn'\)$"),
    (ValueError("ours"), ValueError, "^ours$"),
], ids=str)  # fmt: skip
def test_error__of_devices_is_apart(error: Exception, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match) as caught:
        run(Sums(9, error=error), 4)
    assert getattr(caught.value, "worker", worker.WORKER.name) == worker.WORKER.name


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[tuple[threading.Thread, int]]:
    """Which thread used which device, on a machine with several GPUs that remember nothing else."""
    found = []

    class Device:
        def __init__(self, number: int) -> None:
            self.number = number

        def use(self) -> None:
            found.append((threading.current_thread(), self.number))

    cuda = SimpleNamespace(
        Device=Device, runtime=SimpleNamespace(memGetInfo=lambda: (FREE, FREE)),
        is_available=lambda: True,
    )  # fmt: skip
    pool = SimpleNamespace(free_all_blocks=int, total_bytes=int)
    cupy = SimpleNamespace(
        cuda=cuda, get_default_memory_pool=lambda: pool,
        get_default_pinned_memory_pool=lambda: pool,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for name, function in REAL_MEMORY.items():
        monkeypatch.setattr(memory, name, function)
    monkeypatch.setattr(worker, "device_of", REAL_DEVICE_OF)
    monkeypatch.setattr(worker.context, "ordinal", lambda uuid: int(uuid[-1]))
    return found


def test_threads__use_the_device_of_their_chunk(used: list[tuple[threading.Thread, int]]) -> None:
    """The caller of `dismiss`, too, keeps its own."""
    worker.WORKER.jobs.admit(Sums(9))
    for gpu in ("GPU-2", "GPU-5"):
        with ThreadPoolExecutor(1) as lane:
            lane.submit(worker.run_chunk, "sums", gpu, range(4)).result()
    worker.WORKER.jobs.dismiss("sums")

    assert threading.current_thread() not in {thread for thread, _ in used}
    own = {thread: {device for each, device in used if each is thread} for thread, _ in used}
    assert sorted(map(sorted, own.values())) == [[2], [2, 5], [5]]  # the second one closes both


@pytest.mark.parametrize("error", [RuntimeError("it does not close"), CUDARuntimeError(719)])
def test_sessions__are_all_closed_though_they_cannot_be(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """That of a device that has failed is given up without a word."""
    closed = []
    monkeypatch.setattr(worker, "device_of", {"GPU-0": 0, "GPU-1": 1}.get)

    class Session(SumSession):
        def close(self) -> None:
            closed.append(threading.current_thread())
            raise error

    sums = Sums(9)
    said = pytest.raises(RuntimeError, match="it does not close")
    with patch.object(sums, "open", lambda place: Session(sums, place.gpu)):
        run(sums, 4, "GPU-0")
        run(sums, 4, "GPU-1")
        with contextlib.nullcontext() if isinstance(error, CUDARuntimeError) else said:
            worker.WORKER.jobs.dismiss("sums")
    assert len(closed) == 2
    assert threading.current_thread() not in closed


def test_job__that_is_dismissed_meanwhile_is_closed_after_its_last_chunk() -> None:
    """Late rows must not be written where another run writes by now; and nothing is left of it."""
    closed: list[int] = []

    def dismissed() -> None:
        worker.WORKER.jobs.dismiss("sums")
        closed.append(sums.closed)

    sums = Sums(9, on_compute=dismissed)
    with pytest.raises(Failure, match=r"^the job has ended$"):
        run(sums, 4)
    assert (closed, sums.closed, sums.finished) == ([0], 1, 0)
    with pytest.raises(Failure, match=r"^the job has ended$"):
        worker.run_chunk("sums", None, range(4))


def test_turns__of_threads_are_short_as_long_as_there_are_jobs() -> None:
    admitted = worker.AdmittedJobs()
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.004)
    try:
        admitted.admit(Sums(9, key="a"))
        admitted.admit(Sums(9, key="b"))
        admitted.dismiss("a")
        assert sys.getswitchinterval() == pytest.approx(worker.TURN_SECONDS)
        admitted.dismiss("b")
        admitted.dismiss("b")
        assert sys.getswitchinterval() == pytest.approx(0.004)
    finally:
        sys.setswitchinterval(before)


def test_session__that_opens_slowly_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "device_of", {"slow": 1, "fast": 2}.get)
    opening, opened = threading.Event(), threading.Event()
    sums = Sums(9)
    usual = sums.open

    def open_slowly(place: Any) -> SumSession:
        if place.gpu == 1:
            opening.set()
            assert opened.wait(30)
        return usual(place)

    monkeypatch.setattr(sums, "open", open_slowly)
    slow = threading.Thread(target=run, args=(sums, 3, "slow"))
    slow.start()
    assert opening.wait(30)
    assert run(sums, 4, "fast").part == 6
    opened.set()
    slow.join(30)
    assert sums.opened == [2, 1]
