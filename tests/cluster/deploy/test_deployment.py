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


@pytest.mark.parametrize("seconds", [0.0, 1e9])
@pytest.mark.parametrize("count", [0, 1])
def test_threads__do_what_there_is_at_most_one_gpu_for(count: int, seconds: float) -> None:
    devices, estimate = gpus(count), WorkEstimate(seconds=seconds)
    assert threads_or_processes(devices, 0, estimate) == (devices, 0)


@pytest.mark.parametrize(("count", "asked", "processes"), [(0, 3, 3), (1, 3, 1), (4, 2, 4)])
def test_processes__are_started_where_the_user_asks_for_them(
    count: int, asked: int, processes: int
) -> None:
    """One for each GPU, however many are asked for."""
    devices = gpus(count)
    assert threads_or_processes(devices, asked, WorkEstimate()) == (devices, processes)


@pytest.mark.parametrize(
    ("seconds", "kept_busy", "used", "processes"),
    [
        (0.0, 1, 1, 0),
        (0.0, 3, 3, 0),
        (0.0, 99, 4, 0),
        (1e9, 4, 4, 0),  # processes would not be faster
        (1e9, 99, 4, 0),
        (START_SECONDS / 0.75, 1, 1, 0),
        (START_SECONDS / 0.74, 1, 4, 4),
        (START_SECONDS / 0.25, 2, 2, 0),
        (START_SECONDS / 0.24, 2, 4, 4),
        (math.inf, 2, 2, 0),  # a search that is refused anyway
    ],
)
def test_processes__are_started_where_they_end_a_job_sooner(
    seconds: float, kept_busy: int, used: int, processes: int
) -> None:
    devices, estimate = gpus(4), WorkEstimate(seconds=seconds, gpus_kept_busy=kept_busy)
    assert threads_or_processes(devices, 0, estimate) == (devices[:used], processes)


def test_processes__start_while_the_input_is_read() -> None:
    devices = gpus(4)
    for seconds, processes in ((0.0, 0), (6.3, 0), (6.5, 4), (99.0, 4)):
        estimate = WorkEstimate(seconds=seconds, gpus_kept_busy=2, reading=seconds)
        assert threads_or_processes(devices, 0, estimate)[1] == processes
    never = WorkEstimate(seconds=99.0, gpus_kept_busy=4, reading=99.0)
    assert threads_or_processes(devices, 0, never) == (devices, 0)


def test_parts_of_gpus__have_a_process_each() -> None:
    devices = gpus(2, mig=True)
    assert threads_or_processes(devices, 0, WorkEstimate()) == (devices, 2)
