"""The same bytes however a library is cut, and whoever docks it."""

from pathlib import Path

import pytest
from support.docked import Dock

from multigpu.workloads.dock import plan as dock_plan

CUT, TWO = ("--max-chunk-bytes", "2000"), ("--workers", "2")


def written(name: str) -> tuple[bytes, bytes]:
    return Path(f"{name}.sdf").read_bytes(), Path(f"{name}.scores.tsv").read_bytes()


@pytest.mark.parametrize(
    ("options", "cut", "poses"),
    [
        ((), ("--max-chunk-bytes", "1"), 0),
        ((), ("--max-chunk-bytes", "3000", "--threads", "3"), 0),
        pytest.param((), (*CUT, *TWO), 0, marks=pytest.mark.process),
        # Processes read the ligands themselves; parts of spans of poses go into a journal.
        pytest.param((), (*CUT[:1], "20000", *TWO), 500, marks=pytest.mark.process),
        (("--top", "3"), ("--max-chunk-bytes", "1"), 100),
    ],
)
def test_dock__gives_the_same_bytes_however_it_is_cut(
    dock: Dock, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], cut: tuple[str, ...],
    poses: int,
) -> None:  # fmt: skip
    """poses: of a span, if they are cut, too."""
    dock("-o", "whole.sdf", *options)
    if poses:
        monkeypatch.setattr(dock_plan, "CPU_POSES", poses)
    dock("-o", "cut.sdf", *options, *cut)
    assert written("cut") == written("whole")


def test_dock__gives_the_same_bytes_on_a_cluster(
    dock: Dock, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dock("-o", "whole.sdf")
    dock("-o", "cut.sdf", *CUT, "--scheduler", scheduler)
    assert written("cut") == written("whole")
    monkeypatch.setattr(dock_plan, "CPU_POSES", 100)
    dock("-o", "cut.sdf", "--scheduler", scheduler)
    assert written("cut") == written("whole")


@pytest.mark.gpu
def test_dock__of_a_worker_process_per_gpu_gives_the_same_bytes(dock: Dock) -> None:
    """`--workers` makes them processes, so that LocalCUDACluster runs on a single GPU too."""
    dock("-o", "whole.sdf")
    dock("-o", "cut.sdf", "--gpus", "all", "--workers", "1", *CUT)
    assert written("cut")[0] == written("whole")[0]
