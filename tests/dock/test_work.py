"""The same bytes however a library is cut, and whoever docks it."""

from pathlib import Path

import pytest
from support.docked import SOME_SKIPPED, Dock, molecules, pdbqt, read_one_by_one, sdf

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


# What is changed of which record, so that it is not regular; the first of them is skipped.
IRREGULAR = {
    "sdf": {5: ("M  END", "M  AND"), 7: ("\n", "\r\n"), 9: ("V2000", "     ")},
    "pdbqt": {5: ("0.000 C", "0.000"), 7: ("\n", "\r\n"), 9: (" 1.00 ", " 1,00 ")},
}
REASON = {"sdf": b"before its 'M END'", "pdbqt": b"no AutoDock type"}


@pytest.mark.parametrize("options", [(), ("--top", "3"), ("--center", "0,-998,9999")])
@pytest.mark.parametrize(
    ("layout", "output"),
    [(layout, output) for layout, other in (("sdf", "pdb"), ("pdbqt", "sdf"))
     for output in (f"poses.{layout}", f"poses.{other}")],
)  # fmt: skip
def test_dock__of_plain_records_gives_the_same_bytes_as_one_by_one(
    dock: Dock, library: Path, monkeypatch: pytest.MonkeyPatch, layout: str, output: str,
    options: tuple[str, ...],
) -> None:  # fmt: skip
    if layout == "sdf" and "--center" in options:
        options = ("--center", "0,-9998,99999")
    make = {"sdf": sdf, "pdbqt": pdbqt}[layout]
    some = [make(i, each) for i, each in enumerate(molecules(library / "ligands.sdf"))]
    for i, change in IRREGULAR[layout].items():
        some[i] = some[i].replace(*change)
    Path(f"some.{layout}").write_bytes("".join(some).encode())

    def files() -> dict[str, bytes]:
        assert dock("-o", output, *options, of=f"some.{layout}") == SOME_SKIPPED
        found = [path for path in Path().rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in found}

    at_once = files()
    read_one_by_one(monkeypatch)
    assert files() == at_once
    assert any(REASON[layout] in text for text in at_once.values())
