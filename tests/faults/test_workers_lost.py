"""Workers that die, fail, hang or do not fit: what the engine makes of it."""

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.toy import Bulky, Part, Toy, squares, workers

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.engine.dispatch import DEATHS_BEFORE_FAILURE, dispatch
from multigpu.cluster.engine.events import Event
from multigpu.cluster.errors import DeviceFailed, Failure, Unfit
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import LocalWorkers, Workers

WORKER = "multigpu.cluster.workers.worker"
MEMORY = "multigpu.cluster.devices.memory"


@pytest.fixture
def two() -> Iterator[Workers]:
    """Two worker processes, which are started anew when they die."""
    with workers(Deployment(threads=2, processes=2)) as found:
        yield found


def taken(
    found: Workers, toy: Toy, count: int, chunk_timeout: float | None = None
) -> tuple[list[Part], list[Event], Exception | None]:
    """The parts that came, what happened, and the error at the end, if any."""
    parts: list[Part] = []
    events: list[Event] = []
    outcomes = dispatch(found, toy, range(count), chunk_timeout=chunk_timeout, tell=events.append)
    try:
        parts.extend(outcome.part for outcome in outcomes)
    except Failure as error:
        return parts, events, error
    return parts, events, None


def named(events: list[Event], name: str) -> list[dict[str, Any]]:
    return [event.details for event in events if event.name == name]


@pytest.mark.parametrize("deaths", [DEATHS_BEFORE_FAILURE - 1, DEATHS_BEFORE_FAILURE])
def test_chunk__that_kills_is_done_or_named(two: Workers, tmp_path: Path, deaths: int) -> None:
    def die() -> None:
        if len(list(tmp_path.iterdir())) < deaths:
            (tmp_path / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    parts, events, error = taken(two, Toy("poison", {("compute", 9): die}), 12)
    assert len(list(tmp_path.iterdir())) == deaths
    if deaths == DEATHS_BEFORE_FAILURE:
        assert parts == squares(9)
        assert str(error) == f"number 9: {deaths} workers died while computing it"
    else:
        assert (parts, error) == (squares(12), None)
        assert len([facts for facts in named(events, "retried") if facts["chunk"] == 9]) == deaths


@pytest.mark.parametrize(("count", "kind"), [(1, int), (3, Bulky)])
def test_all_workers__killed_at_once_change_nothing(two: Workers, count: int, kind: Any) -> None:
    """Nothing that a job needs lives on the workers alone.

    Neither with spans by position, nor with such that are data, as those of a stream.
    """
    pids = two.everywhere(os.getpid)
    killed = 0

    def parts() -> Iterator[Part]:
        nonlocal killed
        slow = {("compute", number): lambda: time.sleep(0.02) for number in range(60)}
        for outcome in dispatch(two, Toy("all", slow), map(kind, range(60))):
            if outcome.part[0] in range(10, 10 + 15 * count, 15):
                for pid in two.everywhere(os.getpid).values():
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            yield outcome.part

    assert list(parts()) == squares(60)
    assert killed > count  # mostly two at a time: one may not be there again yet
    assert not set(pids.values()) & set(two.everywhere(os.getpid).values())


def test_chunk__that_hangs_is_begun_elsewhere_and_counts_once(two: Workers, tmp_path: Path) -> None:
    mark = tmp_path / "hung"

    def hang() -> None:
        if not mark.exists():
            mark.touch()
            time.sleep(600)

    begin = time.monotonic()
    toy = Toy("hangs", {("compute", 4): hang})
    parts, events, error = taken(two, toy, 20, chunk_timeout=1.0)
    assert (parts, error) == (squares(20), None)
    assert 4 in [facts["chunk"] for facts in named(events, "moved")]  # and what waited behind it
    assert sorted(facts["chunk"] for facts in named(events, "finished")) == [*range(20)]
    assert time.monotonic() - begin < 20


def failing_device(marks: Path) -> Callable[[], None]:
    """An error like CuPy's in the first process that comes here, every time."""

    class CUDARuntimeError(RuntimeError):
        status = 700

    def fail() -> None:
        with contextlib.suppress(FileExistsError):  # two may come at once; one is first
            (marks / "first").symlink_to(str(os.getpid()))
        if (marks / "first").readlink() == Path(str(os.getpid())):
            raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access")

    return fail


def test_device__that_fails_is_retired(two: Workers, tmp_path: Path) -> None:
    fail = failing_device(tmp_path)
    toy = Toy("device", {("compute", number): fail for number in range(20)})
    parts, events, error = taken(two, toy, 20)
    assert (parts, error) == (squares(20), None)
    (retired,) = named(events, "retired")
    assert "failed: cudaErrorIllegalAddress: an illegal memory access" in retired["reason"]
    assert len(two.present()) == 1


@pytest.mark.parametrize("cpu_fallback", [True, False])
@pytest.mark.parametrize("gpus", [1, 3])
def test_devices__of_a_single_process_that_all_fail_hand_over_to_its_cpu_or_end_the_run(
    gpus: int, cpu_fallback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(session: Any, loaded: int) -> int:
        if session.place.gpu is not None:
            raise DeviceFailed(worker.WORKER.device_name, "lost")
        return loaded * loaded

    monkeypatch.setattr(f"{WORKER}.device_of", lambda gpu: None if gpu is None else 0)
    monkeypatch.setattr(f"{MEMORY}.use", lambda device: None)
    monkeypatch.setattr(f"{MEMORY}.free_bytes", lambda device: 1 << 30)
    monkeypatch.setattr(f"{MEMORY}.release_pool", lambda device: None)
    monkeypatch.setattr("support.toy.ToySession.compute", compute)
    local = LocalWorkers(2, [f"GPU-{k}" for k in range(gpus)], cpu_fallback=cpu_fallback)
    parts, events, error = taken(local, Toy("all devices"), 40)
    local.close()
    if cpu_fallback:
        assert (parts, error, local.gpu) == (squares(40), None, None)
    else:
        assert str(error).endswith(" failed: lost; there is no other device")
        assert parts == []
    assert len(named(events, "retired")) == gpus


@pytest.mark.parametrize("unfit", [{0}, {0, 1}], ids=["one", "all"])
def test_workers__that_are_unfit_are_retired(two: Workers, unfit: set[int]) -> None:
    class Picky(Toy):
        def open(self, place: Any) -> Any:
            from distributed import get_worker

            if get_worker().name in unfit:
                raise Unfit(place.worker, "runs another version")
            return super().open(place)

    parts, events, error = taken(two, Picky("picky"), 10)
    assert named(events, "retired")[0]["reason"].endswith(": runs another version")
    if len(unfit) == 1:
        assert (parts, error) == (squares(10), None)
        assert len(named(events, "retired")) == len(two.present()) == 1
    else:
        assert "runs another version; " in str(error)
        assert str(error).endswith("was the last one")


def test_job__that_there_is_no_memory_to_send_ends_the_run_not_the_workers(two: Workers) -> None:
    class Large(Toy):
        def __reduce__(self) -> tuple[Any, ...]:
            raise MemoryError("not enough memory: 5 bytes needed")

    _, _, error = taken(two, Large("large"), 10)
    said = "the job cannot be given to the workers: not enough memory: 5 bytes needed"
    assert str(error) == said
    assert taken(two, Toy("small"), 10)[0] == squares(10)


def test_worker__frozen_for_the_rest_of_the_run_is_done_without(two: Workers) -> None:
    """It gets nothing new, what it has is done elsewhere, and it ends with the others."""
    processes = [psutil.Process(pid) for pid in two.everywhere(os.getpid).values()]
    slow = {("compute", number): lambda: time.sleep(0.01) for number in range(300)}
    events: list[Event] = []
    parts: list[Part] = []
    begin = time.monotonic()
    for outcome in dispatch(two, Toy("frozen", slow), range(300), tell=events.append):
        parts.append(outcome.part)
        if len(parts) == 10:
            processes[0].suspend()
    assert parts == squares(300)
    assert len(named(events, "moved")) < 12
    assert time.monotonic() - begin < 15


def test_chunks__that_all_lie_on_a_frozen_worker_go_to_the_idle_one(two: Workers) -> None:
    """The last ones: as many as there are threads."""
    frozen: list[psutil.Process] = []
    slow = {("compute", number): lambda: time.sleep(0.3) for number in range(6)}
    begin = time.monotonic()

    def tell(event: Event) -> None:
        if event.name == "finished" and event.details["chunk"] == 1:
            frozen.append(psutil.Process(next(iter(two.everywhere(os.getpid).values()))))
            frozen[0].suspend()

    assert [o.part for o in dispatch(two, Toy("last", slow), range(6), tell=tell)] == squares(6)
    assert frozen
    assert time.monotonic() - begin < 20


def test_frozen_worker__ends_with_the_others() -> None:
    with workers(Deployment(threads=2, processes=2)) as found:
        processes = [psutil.Process(pid) for pid in found.everywhere(os.getpid).values()]
        processes[0].suspend()
        begin = time.monotonic()
    assert time.monotonic() - begin < 2
    assert psutil.wait_procs(processes, timeout=5)[1] == []


def test_worker__that_hangs_while_it_starts_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multigpu.cluster.deploy.dask_clients.START_TIMEOUT", 3.0)
    before = set(psutil.Process().children())
    frozen: list[psutil.Process] = []

    def freeze() -> None:
        while not frozen:
            for child in set(psutil.Process().children()) - before:
                if "spawn_main" in str(child.cmdline()):
                    child.suspend()
                    frozen.append(child)

    thread = threading.Thread(target=freeze, daemon=True)
    thread.start()
    late = r"^the workers could not be started: they gave no answer within 3 s "
    with pytest.raises(Failure, match=late), workers(Deployment(threads=2, processes=2)):
        pass
    thread.join()
    assert psutil.wait_procs(frozen, timeout=5)[1] == []


def test_dask__says_nothing_while_it_is_used() -> None:
    loggers = [logging.getLogger(name) for name in ("distributed.client", "distributed.core")]
    with workers(Deployment(threads=2, processes=2)):
        assert {logger.getEffectiveLevel() for logger in loggers} == {logging.CRITICAL}
    assert loggers[0].getEffectiveLevel() == logging.WARNING
