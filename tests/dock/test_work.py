"""The same bytes however a library is cut, and whoever docks it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.docked import COUNT, SOME_SKIPPED, Dock, molecules, pdbqt

from multigpu.workloads.dock import ligands
from multigpu.workloads.dock import plan as dock_plan

CUT, TWO = ("--max-chunk-bytes", "2000"), ("--workers", "2")


def written(name: str) -> tuple[bytes, bytes]:
    return Path(f"{name}.sdf").read_bytes(), Path(f"{name}.scores.tsv").read_bytes()


@pytest.mark.parametrize(("options", "cut", "poses"), [
    ((), ("--max-chunk-bytes", "1"), 0),
    ((), ("--max-chunk-bytes", "3000", "--threads", "3"), 0),
    pytest.param((), (*CUT, *TWO), 0, marks=pytest.mark.process),
    # Processes read the ligands themselves; parts of spans of poses go into a journal.
    pytest.param((), (*CUT[:1], "20000", *TWO), 500, marks=pytest.mark.process),
    (("--top", "3"), ("--max-chunk-bytes", "1"), 100),
])  # fmt: skip
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


def test_bytes__of_a_cluster(dock: Dock, scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


# What is changed of which record, so that it is not regular; the first of them is skipped.
IRREGULAR = {
    5: ("0.000 C", "0.000"), 7: ("\n", "\r\n"), 9: (" 1.00 ", " 1,00 "), 11: ("ROOT", " ROOT"),
}  # fmt: skip


@pytest.mark.parametrize("options", [(), ("--top", "3"), ("--center", "0,-998,9999")])
@pytest.mark.parametrize("output", ["poses.pdbqt", "poses.sdf"])
def test_dock__of_regular_records_gives_the_same_bytes_as_one_by_one(
    dock: Dock, library: Path, monkeypatch: pytest.MonkeyPatch, output: str,
    options: tuple[str, ...],
) -> None:  # fmt: skip
    some = [pdbqt(i, each) for i, each in enumerate(molecules(library / "ligands.sdf"))]
    for i, change in IRREGULAR.items():
        some[i] = some[i].replace(*change)
    Path("some.pdbqt").write_bytes("".join(some).encode())
    seen = []

    def written_by(read: Callable[..., Any]) -> dict[str, bytes]:
        def counted(*arguments: Any) -> Any:
            seen.append(len(found := read(*arguments)))
            return found

        monkeypatch.setattr(ligands, "read_regular", counted)
        assert dock("-o", output, *options, of="some.pdbqt") == SOME_SKIPPED
        return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}

    together = written_by(ligands.read_regular)
    assert sum(seen) == (COUNT - 3 if output.endswith("pdbqt") else 0)
    assert together == written_by(lambda *_: {})
    assert b"no AutoDock type" in together["poses.errors.tsv"]
