"""When threads of the process do a job, and when worker processes do."""

import math

import pytest

from multigpu.cluster.deploy.deployment import (
    START_SECONDS,
    WorkEstimate,
    threads_or_processes,
)
from multigpu.cluster.devices.gpus import Device


def gpus(count: int, mig: bool = False) -> tuple[Device, ...]:
    return tuple(Device(k, f"GPU-{k}", "", 9, 9, (9, 0), mig) for k in range(count))


@pytest.mark.parametrize(("count", "asked", "seconds", "kept_busy", "used", "processes"), [
    *((n, 0, seconds, 1, n, 0) for n in (0, 1) for seconds in (0.0, 1e9)),
    (0, 3, 0.0, 1, 0, 3), (1, 3, 0.0, 1, 1, 1), (4, 2, 0.0, 1, 4, 4),  # one for each GPU
    (4, 0, 0.0, 1, 1, 0), (4, 0, 0.0, 3, 3, 0), (4, 0, 0.0, 99, 4, 0),
    (4, 0, 1e9, 4, 4, 0), (4, 0, 1e9, 99, 4, 0),  # processes would not be faster
    (4, 0, START_SECONDS / 0.75, 1, 1, 0), (4, 0, START_SECONDS / 0.74, 1, 4, 4),
    (4, 0, START_SECONDS / 0.25, 2, 2, 0), (4, 0, START_SECONDS / 0.24, 2, 4, 4),
    (4, 0, math.inf, 2, 2, 0),  # a search that is refused anyway
])  # fmt: skip
def test_processes__are_started_where_asked_for_or_where_they_end_a_job_sooner(
    count: int, asked: int, seconds: float, kept_busy: int, used: int, processes: int
) -> None:
    devices, estimate = gpus(count), WorkEstimate(seconds=seconds, gpus_kept_busy=kept_busy)
    assert threads_or_processes(devices, asked, estimate) == (devices[:used], processes)
    parts = gpus(2, mig=True)  # have a process each
    assert threads_or_processes(parts, 0, WorkEstimate()) == (parts, 2)


def test_processes__start_while_the_input_is_read() -> None:
    devices = gpus(4)
    for seconds, processes in ((0.0, 0), (6.3, 0), (6.5, 4), (99.0, 4)):
        estimate = WorkEstimate(seconds=seconds, gpus_kept_busy=2, reading=seconds)
        assert threads_or_processes(devices, 0, estimate)[1] == processes
    never = WorkEstimate(seconds=99.0, gpus_kept_busy=4, reading=99.0)
    assert threads_or_processes(devices, 0, never) == (devices, 0)
