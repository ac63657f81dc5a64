"""Workers that come up while something else is done."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from multigpu.cluster.deploy import Deployment, starting
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.workers import worker

TWO = Deployment(threads=2, processes=2)


def leave_a_mark(folder: Path, gpu: str | None) -> None:
    (folder / f"{gpu} {os.getpid()}").touch()


def fail(_gpu: str | None) -> None:
    raise RuntimeError("a module is missing")


@pytest.mark.parametrize(
    ("gpus", "more", "threads"),
    [
        (0, {"threads": 7}, 7),
        (0, {"threads": 8, "processes": 2}, 0),
        (1, {"threads": 3}, 3),
        (4, {"threads": 3, "head_start": 1}, 3),
        (4, {"threads": 3, "head_start": 9}, 12),
        (4, {"threads": 3, "processes": 4}, 0),
    ],
)
def test_own_threads__are_those_of_this_process(
    gpus: int, more: dict[str, int], threads: int
) -> None:
    devices = tuple(Device(k, f"GPU-{k}", "", 9, 9, (9, 0), mig=False) for k in range(gpus))
    assert Deployment(devices, **more).own_threads == threads


def test_worker_processes__are_prepared_before_they_are_given(tmp_path: Path) -> None:
    with starting(TWO, partial(leave_a_mark, tmp_path)) as coming:
        processes = coming().everywhere(os.getpid).values()
        assert {path.name for path in tmp_path.iterdir()} == {f"None {p}" for p in processes}


@pytest.mark.parametrize("prepare", [fail, worker.free_bytes])
def test_worker_processes__that_cannot_be_prepared_are_given(
    prepare: Callable[[str | None], object],
) -> None:
    with starting(TWO, prepare) as coming:
        assert len(coming().present()) == 2


def test_worker_processes__that_are_released_end_while_the_block_goes_on() -> None:
    with starting(TWO) as coming:
        processes = [psutil.Process(number) for number in coming().everywhere(os.getpid).values()]
        coming.release()
        assert not psutil.wait_procs(processes, timeout=10)[1]


def test_threads__need_no_preparation(tmp_path: Path) -> None:
    with starting(Deployment(threads=2), partial(leave_a_mark, tmp_path)) as coming:
        assert coming().threads == 2
    assert list(tmp_path.iterdir()) == []


def test_dask__still_knows_its_nannies_with_their_folders_and_processes() -> None:
    """It does not promise that; `kill_workers` ends processes that hang by it."""
    from distributed import Nanny

    with starting(TWO) as coming:
        processes = set(coming().everywhere(os.getpid).values())
        here = [nanny for nanny in Nanny._instances if nanny.pid in processes]
        assert len(here) == 2
        assert all("/multigpu-" in nanny.local_directory for nanny in here)
