"""The threads of this process, and which GPU each of them has."""

import queue
import threading
import time
from collections import Counter
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any

import pytest

from multigpu.cluster.devices import context
from multigpu.cluster.devices.context import Contexts
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import LocalWorkers

FIRST, SECOND, THIRD = GPUS = [f"GPU-{digit * 32}" for digit in "abc"]


@pytest.fixture
def coming_up(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Contexts come up as often as it is released."""
    allowed = threading.Semaphore(0)
    monkeypatch.setattr(context, "start", lambda uuid: allowed.acquire(timeout=30))
    monkeypatch.setattr(context, "shared", lambda uuid: True)
    return allowed


def own_gpu() -> str:
    time.sleep(0.01)
    return str(worker._thread.gpu)


def gpus_of(workers: LocalWorkers, tasks: int) -> Counter[str]:
    """By which GPU so many tasks were done."""
    futures = [workers.submit(lambda *_: None, own_gpu) for _ in range(tasks)]
    assert not wait(futures, timeout=30).not_done
    return Counter(future.result() for future in futures)


def test_threads__of_the_first_gpu_work_until_the_others_contexts_are_there(
    coming_up: threading.Semaphore,
) -> None:
    contexts = Contexts(GPUS)
    workers = LocalWorkers(2, GPUS, contexts=contexts)
    assert (workers.threads, workers.lanes, workers.gpu) == (6, 2, worker.OWN)
    assert set(gpus_of(workers, 20)) == {FIRST}
    coming_up.release(2)
    contexts.wait(SECOND)
    assert set(gpus_of(workers, 40)) == {FIRST, SECOND}
    coming_up.release()
    contexts.wait(THIRD)
    assert set(gpus_of(workers, 60)) == set(GPUS)
    workers.close()


@pytest.mark.usefixtures("coming_up")
def test_threads__wait_for_no_context_when_the_work_is_over() -> None:
    workers = LocalWorkers(1, GPUS, contexts=Contexts(GPUS))
    assert set(gpus_of(workers, 9)) == {FIRST}
    threads = list(workers._pool._threads)
    assert len(threads) == 3
    workers.close()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


@pytest.mark.parametrize("why", ["not seen", "for one process", "does not start"])
def test_threads__leave_a_gpu_that_the_program_cannot_share_to_others(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    started: list[str] = []

    def start(uuid: str) -> bool:
        started.append(uuid)
        return why != "does not start" or uuid != SECOND

    monkeypatch.setattr(context, "start", start)
    if why == "not seen":
        monkeypatch.setattr(context, "_driver", lambda: Driver([FIRST, THIRD], set()))
    else:
        alone = {FIRST, SECOND} if why == "for one process" else set()
        monkeypatch.setattr(context, "_driver", lambda: Driver(GPUS, alone))
    context.ordinal.cache_clear()
    contexts = Contexts(GPUS)
    workers = LocalWorkers(2, GPUS, contexts=contexts)
    contexts.wait(THIRD)
    assert set(gpus_of(workers, 60)) == {FIRST, THIRD}
    assert (SECOND in started) == (why == "does not start")
    workers.close()
    context.ordinal.cache_clear()


def test_contexts__are_prepared_when_they_are_there(coming_up: threading.Semaphore) -> None:
    prepared: queue.SimpleQueue[str] = queue.SimpleQueue()

    def prepare(uuid: str) -> None:
        prepared.put(uuid)
        raise RuntimeError("it fails again where it is used")

    contexts = Contexts(GPUS, prepare)
    coming_up.release()
    assert prepared.get(timeout=5) == FIRST
    with pytest.raises(queue.Empty):
        prepared.get(timeout=0.05)
    coming_up.release(2)
    assert {prepared.get(timeout=5) for _ in range(2)} == {SECOND, THIRD}
    contexts.close()


@dataclass
class Driver:
    """CUDA's, as far as one asks it: the GPUs it sees, and those that are for one process."""

    seen: list[str]
    alone: set[str]

    def cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = len(self.seen)

    def cuDeviceGet(self, device: Any, number: int) -> None:
        device._obj.value = number

    def cuDeviceGetUuid_v2(self, uuid: Any, device: Any) -> None:
        uuid._obj[:] = bytes.fromhex(self.seen[device.value].removeprefix("GPU-"))

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> None:
        assert attribute == context.COMPUTE_MODE
        value._obj.value = context.ONE_PROCESS if self.seen[device] in self.alone else 0
