"""The same bytes however a library is cut, and whoever docks it."""

from pathlib import Path

import pytest
from support.docked import Dock

CUT, TWO = ("--max-chunk-bytes", "2000"), ("--workers", "2")


def written(name: str) -> tuple[bytes, bytes]:
    return Path(f"{name}.sdf").read_bytes(), Path(f"{name}.scores.tsv").read_bytes()


@pytest.mark.parametrize(
    ("options", "cut"),
    [
        ((), ("--max-chunk-bytes", "1")),
        ((), ("--max-chunk-bytes", "3000", "--threads", "3")),
        pytest.param((), (*CUT, *TWO), marks=pytest.mark.process),
        (("--top", "3"), ("--max-chunk-bytes", "1")),
    ],
)
def test_dock__gives_the_same_bytes_however_it_is_cut(
    dock: Dock, options: tuple[str, ...], cut: tuple[str, ...]
) -> None:
    dock("-o", "whole.sdf", *options)
    dock("-o", "cut.sdf", *options, *cut)
    assert written("cut") == written("whole")


def test_dock__gives_the_same_bytes_on_a_cluster(dock: Dock, scheduler: str) -> None:
    dock("-o", "whole.sdf")
    dock("-o", "cut.sdf", *CUT, "--scheduler", scheduler)
    assert written("cut") == written("whole")


@pytest.mark.gpu
def test_dock__of_a_worker_process_per_gpu_gives_the_same_bytes(dock: Dock) -> None:
    """`--workers` makes them processes, so that LocalCUDACluster runs on a single GPU too."""
    dock("-o", "whole.sdf")
    dock("-o", "cut.sdf", "--gpus", "all", "--workers", "1", *CUT)
    assert written("cut")[0] == written("whole")[0]
