"""The threads of this process, and which GPU each of them has."""

import threading
import time
from collections import Counter
from concurrent.futures import wait

import pytest

from cluster import context, worker
from cluster.context import Contexts
from cluster.workers import LocalWorkers

GPUS = ["GPU-a", "GPU-b", "GPU-c"]


@pytest.fixture
def coming_up(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Contexts come up as often as it is released."""
    allowed = threading.Semaphore(0)
    monkeypatch.setattr(context, "start", lambda uuid: allowed.acquire(timeout=30))
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
    assert set(gpus_of(workers, 20)) == {"GPU-a"}
    coming_up.release(2)
    contexts.wait("GPU-b")
    assert set(gpus_of(workers, 40)) == {"GPU-a", "GPU-b"}
    coming_up.release()
    contexts.wait("GPU-c")
    assert set(gpus_of(workers, 60)) == set(GPUS)
    workers.close()


@pytest.mark.usefixtures("coming_up")
def test_threads__wait_for_no_context_when_the_work_is_over() -> None:
    before = threading.active_count()
    workers = LocalWorkers(1, GPUS, contexts=Contexts(GPUS))
    assert set(gpus_of(workers, 9)) == {"GPU-a"}
    workers.close()
    begin = time.monotonic()
    while threading.active_count() > before + 1:  # that which brings the first context up
        assert time.monotonic() - begin < 5
        time.sleep(0.01)
