"""The same bytes however a library is cut, and whoever docks it."""

import shutil
from pathlib import Path

import pytest
from support.docked import SOME_SKIPPED, Dock, molecules, pdbqt, read_one_by_one, sdf

from multigpu.workloads.dock import plan as dock_plan


def test_dock__gives_the_same_bytes_however_it_is_cut(
    dock: Dock, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dock("-o", "whole.sdf")
    wanted = Path("whole.sdf").read_bytes(), Path("whole.scores.tsv").read_bytes()
    for options in (
        ("--max-chunk-bytes", "1"),
        ("--max-chunk-bytes", "3000", "--threads", "3"),
        ("--max-chunk-bytes", "2000", "--scheduler", scheduler),
        ("--max-chunk-bytes", "2000", "--workers", "2"),
    ):
        dock("-o", "cut.sdf", *options)
        assert (Path("cut.sdf").read_bytes(), Path("cut.scores.tsv").read_bytes()) == wanted
    monkeypatch.setattr(dock_plan, "CPU_POSES", 100)
    dock("-o", "cut.sdf", "--scheduler", scheduler)
    assert (Path("cut.sdf").read_bytes(), Path("cut.scores.tsv").read_bytes()) == wanted


@pytest.mark.parametrize("options", [(), ("--top", "3"), ("--center", "0,-9998,99999")])
@pytest.mark.parametrize("output", ["poses.sdf", "poses.pdb", "poses/"])
def test_dock__of_plain_sdf_gives_the_same_bytes_as_one_by_one(
    dock: Dock, library: Path, monkeypatch: pytest.MonkeyPatch, output: str,
    options: tuple[str, ...],
) -> None:  # fmt: skip
    some = [sdf(i, each) for i, each in enumerate(molecules(library / "ligands.sdf"))]
    some[5] = some[5].replace("M  END", "M  AND")
    some[7] = some[7].replace("\n", "\r\n")
    some[9] = some[9].replace("V2000", "     ")
    assert_same_at_once(dock, monkeypatch, "some.sdf", some, output, options, b"before its 'M END'")


@pytest.mark.parametrize("options", [(), ("--top", "3"), ("--center", "0,-998,9999")])
@pytest.mark.parametrize("output", ["poses.pdbqt", "poses.sdf", "poses/"])
def test_dock__of_plain_pdbqt_gives_the_same_bytes_as_one_by_one(
    dock: Dock, library: Path, monkeypatch: pytest.MonkeyPatch, output: str,
    options: tuple[str, ...],
) -> None:  # fmt: skip
    some = [pdbqt(i, each) for i, each in enumerate(molecules(library / "ligands.sdf"))]
    some[5] = some[5].replace("0.000 C", "0.000")  # no type
    some[7] = some[7].replace("\n", "\r\n")
    some[9] = some[9].replace(" 1.00 ", " 1,00 ")  # nobody reads it
    assert_same_at_once(dock, monkeypatch, "some.pdbqt", some, output, options, b"no AutoDock type")


def assert_same_at_once(
    dock: Dock, monkeypatch: pytest.MonkeyPatch, name: str, some: list[str], output: str,
    options: tuple[str, ...], reason: bytes,
) -> None:  # fmt: skip
    """Assert that records give the same bytes read together and one by one.

    reason: why one of them is skipped
    """
    Path(name).write_bytes("".join(some).encode())

    def written() -> dict[str, bytes]:
        assert dock("-o", output, *options, of=name) == SOME_SKIPPED
        found = [path for path in Path().rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in found}

    at_once = written()
    if output.endswith("/"):
        shutil.rmtree(output)
    read_one_by_one(monkeypatch)
    assert written() == at_once
    assert any(reason in text for text in at_once.values())


def test_dock__of_several_poses_gives_the_same_bytes_in_tiny_chunks(
    dock: Dock, monkeypatch: pytest.MonkeyPatch
) -> None:
    dock("-o", "whole.sdf", "--top", "3")
    monkeypatch.setattr(dock_plan, "CPU_POSES", 100)
    dock("-o", "cut.sdf", "--top", "3", "--max-chunk-bytes", "1")
    assert Path("cut.sdf").read_bytes() == Path("whole.sdf").read_bytes()


def test_dock__on_worker_processes_gives_the_same_bytes(
    dock: Dock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes read the ligands themselves; parts of spans of poses go into a journal."""
    dock("-o", "whole.sdf")
    dock("-o", "cut.sdf", "--workers", "2", "--max-chunk-bytes", "20000")
    monkeypatch.setattr(dock_plan, "CPU_POSES", 500)
    dock("-o", "spans.sdf", "--workers", "2", "--max-chunk-bytes", "20000")
    assert Path("cut.sdf").read_bytes() == Path("whole.sdf").read_bytes()
    assert Path("spans.sdf").read_bytes() == Path("whole.sdf").read_bytes()


@pytest.mark.gpu
def test_dock__of_a_worker_process_per_gpu_gives_the_same_bytes(dock: Dock) -> None:
    """`--workers` makes them processes, so that LocalCUDACluster runs on a single GPU too."""
    dock("-o", "whole.sdf")
    dock("-o", "cut.sdf", "--gpus", "all", "--workers", "1", "--max-chunk-bytes", "2000")
    assert Path("cut.sdf").read_bytes() == Path("whole.sdf").read_bytes()
