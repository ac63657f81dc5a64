"""What the user probably did not mean is said: long searches, energies, folders of inputs."""

import errno
import logging
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.docked import Dock

from multigpu import UsageError
from multigpu.workloads.dock.notes import search_notes
from multigpu.workloads.dock.options import DockOptions
from multigpu.workloads.dock.plan import search_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("precision", [400, 181])
def test_precision__that_leaves_one_rotation_is_refused(precision: float) -> None:
    with pytest.raises(UsageError, match=r"at most 180 .rotations 1 scores the ligand as it lies"):
        DockOptions(precision=precision)


def test_search__that_takes_hours_is_estimated() -> None:
    (note,) = search_notes(search_of(DockOptions(precision=0.17)).stop)
    assert note.startswith("9,501,187,032 poses of each ligand are tried: about 2.5 hours of a CPU")
    assert "core, or 0.79 seconds of a GPU (precision is in degrees" in note
    assert list(search_notes(search_of(DockOptions()).stop)) == []


@pytest.mark.parametrize("kind", ["scores", "rounded", "turned", "walls"])
def test_grid__of_energies_is_noted(
    dock: Dock, library: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One whose best places are below 0, or which has high walls and shallow wells."""
    arrays = dict(np.load(library / "pocket.npz"))
    if kind == "turned":
        arrays["grid"] = -np.abs(arrays["grid"]) - 1
    if kind == "rounded":  # scores that a transform has left a little below 0
        arrays["grid"] = np.maximum(arrays["grid"], 0) - 1e-6
    if kind == "walls":
        arrays["grid"] = np.where(arrays["grid"] > 0, -arrays["grid"], 1e5)
    np.savez("p.npz", **arrays)
    with caplog.at_level(logging.WARNING):
        assert dock("-o", "poses.sdf", "--center", "0,0,0", pocket="p.npz") == 0
    assert ("if they are energies, turn their sign" in caplog.text) is (kind in ("turned", "walls"))


def test_output__among_the_ligands_is_noted_and_then_refused(
    dock: Dock, library: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Path("in").mkdir()
    Path("in/a.sdf").write_bytes((library / "ligands.sdf").read_bytes())
    with caplog.at_level(logging.WARNING):
        assert dock("-o", "in/poses.sdf", of="in") == 0
    assert "in/poses.sdf will be in in, and read by the next run" in caplog.text
    with pytest.raises(UsageError, match=r"in/poses.sdf is in in, which is read: give another"):
        dock("-o", "in/poses.sdf", of="in")


def test_rotations__one_is_one(dock: Dock, capsys: pytest.CaptureFixture[str]) -> None:
    assert dock("-o", "poses.sdf", "--rotations", "1") == 0
    assert "multigpu: 1 rotation; any other is within" in capsys.readouterr().err


def test_resume__of_a_directory_that_is_done_is_done(dock: Dock) -> None:
    assert dock("-o", "poses/") == 0
    before = {path.name: path.read_bytes() for path in Path("poses").iterdir()}
    assert dock("-o", "poses/", "--resume") == 0
    assert {path.name: path.read_bytes() for path in Path("poses").iterdir()} == before


def test_file_size_limit__names_the_output(library: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "multigpu", "dock", str(library / "ligands.sdf"), "--gpus", "none",
         "--pocket", str(library / "pocket.npz"), "-o", str(tmp_path / "poses.sdf"),
         "--max-chunk-bytes", "4000", "--precision", "60"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)),
    )  # fmt: skip
    problem = f"poses.sdf: cannot be written: {os.strerror(errno.EFBIG).lower()} (see `ulimit -f`)"
    assert ran.returncode == 2
    assert f"multigpu: error: {tmp_path}/{problem}" in ran.stderr
