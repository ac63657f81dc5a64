"""Folders of poses: there when they are complete, whatever happens before."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from multigpu.cluster.errors import DiskFull, Failure, UsageError
from multigpu.cluster.files import LOCK
from multigpu.formats.tables.texts import Texts
from multigpu.workloads.dock.output.files import check_poses, pose_output, tables_beside


def write(path: Path, *names: str) -> None:
    with pose_output(f"{path}/") as poses:
        poses.write(docked(*names))


def docked(*names: str) -> Any:
    """Return ligands with one pose each."""
    return SimpleNamespace(
        rows=SimpleNamespace(ligand=names, pose=np.ones(len(names), np.int64)),
        layouts=["sdf"] * len(names),
        pose_texts=Texts.of([b"pose\n"] * len(names)),
    )


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/poses.sdf", "a/poses"),
        ("poses.pdbqt.gz", "poses"),
        ("lib.sdf.A.sdf", "lib.sdf.A"),
        ("lib.sdf.B.sdf.zst", "lib.sdf.B"),
        ("q.sd", "q"),
        ("v1.2.SDF", "v1.2"),
    ],
)
def test_tables__have_the_name_of_the_poses_without_its_suffix(path: str, name: str) -> None:
    assert tables_beside(path) == (f"{name}.scores.tsv", f"{name}.errors.tsv")


def test_folder__takes_the_place_of_an_empty_one_and_of_what_a_killed_run_left(
    tmp_path: Path,
) -> None:
    """It is private while it is made. A link to it stays."""
    (tmp_path / "poses").mkdir(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "poses")
    (tmp_path / ".poses.part").mkdir(0o700)
    (tmp_path / ".poses.part" / LOCK).touch()
    (tmp_path / ".poses.part" / "old.sdf").touch()
    with pose_output(f"{tmp_path}/link/") as poses:
        poses.write(docked("a"))
        assert (tmp_path / ".poses.part").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "poses").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "link").is_symlink()
    assert left(tmp_path / "poses") == ["a.sdf"]
    assert left(tmp_path) == ["link", "poses"]


def test_folder__that_another_run_writes_is_refused(tmp_path: Path) -> None:
    with pose_output(f"{tmp_path}/poses/") as poses:
        with pytest.raises(UsageError, match="poses/: another run is writing it"):
            write(tmp_path / "poses", "b")
        poses.write(docked("a"))
    assert left(tmp_path / "poses") == ["a.sdf"]


def test_folder__that_is_a_mount_point_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers have such directories, which no other can replace."""
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path / "poses")
    (tmp_path / "poses" / "inner").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    check_poses(str(tmp_path / "other"))
    check_poses(str(tmp_path / "poses" / "inner"))
    (tmp_path / "poses" / "inner").rmdir()
    with pytest.raises(UsageError, match="poses: a mount point cannot be replaced"):
        check_poses(str(tmp_path / "poses"))


def test_disk_full__is_reported_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DiskFull, match="poses/: cannot be written: the disk is full"):
        write(tmp_path / "poses", "a")
    assert left(tmp_path) == []


def test_folder__has_names_for_all_ligands_however_they_are_called(tmp_path: Path) -> None:
    names = ["a", "A", "a_2", "a", "", "../x", "scores", "é" * 300, "é" * 300]
    write(tmp_path / "poses", *names)
    found = left(tmp_path / "poses")
    assert len(found) == len({name.lower() for name in found}) == len(names)
    assert {"a.sdf", "A_2.sdf", "a_2_2.sdf", "a_3.sdf", "ligand.sdf"} <= set(found)
    assert all(len(name.encode()) <= 255 for name in found)


def test_folder__of_an_earlier_run_is_the_resumed_runs(tmp_path: Path) -> None:
    """That run may have been stopped after it had published it, or be done."""
    path = f"{tmp_path}/poses/"
    write(tmp_path / "poses", "a", "b")
    (tmp_path / "poses" / "notes.txt").write_bytes(b"")
    with pytest.raises(UsageError, match=r"is not empty: name a new one for the poses$"):
        check_poses(path, resume=True)
    (tmp_path / "poses" / "notes.txt").unlink()
    check_poses(path, resume=True)
    with pytest.raises(UsageError, match=r"is not empty: name a new one for the poses$"):
        check_poses(path)
    write(tmp_path / "poses", "a", "b")
    assert left(tmp_path / "poses") == ["a.sdf", "b.sdf"]
    assert left(tmp_path) == ["poses"]


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c")], ids=["more", "less"])
def test_folder__that_holds_something_else_is_refused_and_the_run_can_be_resumed(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    write(tmp_path / "poses", "a", "b")
    with pytest.raises(Failure, match=r"not what this run writes: empty it and resume") as said:
        write(tmp_path / "poses", *names)
    assert not isinstance(said.value, UsageError)  # after which the journal would go
    assert left(tmp_path / "poses") == ["a.sdf", "b.sdf"]
    assert left(tmp_path) == ["poses"]
