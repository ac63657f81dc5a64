"""The threads of this process, and which GPU each of them has."""

import queue
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.deploy.start import start_workers
from multigpu.cluster.devices import context
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.errors import DeviceFailed
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import LocalWorkers

FIRST, SECOND, THIRD = GPUS = [f"GPU-{digit * 32}" for digit in "abc"]


def own_gpu() -> str:
    time.sleep(0.01)
    return str(worker.WORKER.lane.gpu)


def gpus_of(workers: LocalWorkers, tasks: int) -> Counter[str]:
    """By which GPU so many tasks were done."""
    reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for _ in range(tasks):
        workers.submit(lambda gpu, _: reports.put(gpu), own_gpu)
    return Counter(reports.get(timeout=30) for _ in range(tasks))


def test_threads__of_each_gpu_work_but_failing_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails there fails again where the GPU is used."""
    driver = Driver([FIRST, THIRD])
    monkeypatch.setattr(context, "_driver", lambda: driver)
    context.ordinal.cache_clear()
    with start_workers(Deployment(devices=tuple(map(device, GPUS)), threads=2)) as pending:
        workers = pending.wait()
        assert isinstance(workers, LocalWorkers)
        assert (workers.threads, workers.lanes, workers.gpu) == (6, 2, worker.OWN)
        assert set(gpus_of(workers, 60)) == set(GPUS)
    limit = time.monotonic() + 30
    while len(driver.started) < 2 and time.monotonic() < limit:
        time.sleep(0.01)
    assert driver.started == [0, 1]
    context.ordinal.cache_clear()


def device(uuid: str) -> Device:
    return Device(0, uuid, "a GPU", 9, 9, (9, 0), mig=False)


def failing_on(gpus: set[str]) -> str:
    """Fail as a device does, with the name of this lane's."""
    time.sleep(0.01)
    if (gpu := own_gpu()) in gpus:
        raise DeviceFailed(worker.WORKER.device_name, "an ECC error")
    return gpu


def test_gpu__that_fails_gets_no_more_tasks_and_the_others_do() -> None:
    workers = LocalWorkers(2, GPUS)
    reports: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
    for _ in range(60):
        workers.submit(lambda *report: reports.put(report), failing_on, {SECOND})
    reported = [reports.get(timeout=30) for _ in range(60)]
    failed = [error for _, error in reported if error]
    assert 1 <= len(failed) <= 2  # one for each of its lanes
    for error in failed:
        assert isinstance(error, DeviceFailed)
        assert error.worker == f"{worker.WORKER.name}:{SECOND}"
        workers.retire(error.worker)
    assert {gpu for gpu, error in reported if not error} == {FIRST, THIRD}
    assert workers.gpu == worker.OWN
    workers.close()


@dataclass
class Driver:
    """CUDA's driver, as far as it is asked: the GPUs that it sees, and those that were started."""

    seen: list[str]
    started: list[int] = field(default_factory=list)

    def cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = len(self.seen)

    def cuDeviceGet(self, device: Any, number: int) -> None:
        device._obj.value = number

    def cuDeviceGetUuid_v2(self, uuid: Any, device: Any) -> None:
        uuid._obj[:] = bytes.fromhex(self.seen[device.value].removeprefix("GPU-"))

    def cuDevicePrimaryCtxRetain(self, context: Any, device: int) -> None:
        self.started.append(device)
