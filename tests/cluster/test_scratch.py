"""Temporary folders, and those of processes that were killed."""

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

from multigpu.cluster.engine.scratch import LOCK, scratch_folder

HOLDS_ONE = """
import sys
from pathlib import Path
from multigpu.cluster.engine.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(parent: Path) -> subprocess.Popen[str]:
    """A process with a folder in `parent`."""
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", HOLDS_ONE, str(parent)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip


def test_folder__is_gone_with_its_block(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        (Path(folder) / "file").write_text("content")
        assert (Path(folder) / LOCK).exists()
    assert list(tmp_path.iterdir()) == []


def test_folder__of_a_killed_process_is_removed_by_the_next(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        assert process.stdout
        left = Path(process.stdout.readline().strip())
        (left / "worker").mkdir()
        with scratch_folder(tmp_path):
            assert (left / "worker").exists()  # it is still held
        process.send_signal(signal.SIGKILL)
    assert left.exists()
    with scratch_folder(tmp_path) as folder:
        assert [str(path) for path in tmp_path.iterdir()] == [folder]


def test_folders__of_others_are_left(tmp_path: Path) -> None:
    """However they are called, and also where no lock can be opened."""
    (tmp_path / "multigpu-results").mkdir()
    (tmp_path / "multigpu-results" / "calls.tsv").write_text("mine")
    (tmp_path / "multigpu-12345678" / LOCK).mkdir(parents=True)
    (tmp_path / "multigpu-87654321").mkdir()
    (tmp_path / "multigpu-87654321" / LOCK).symlink_to(tmp_path / "multigpu-results" / "calls.tsv")
    (tmp_path / "multigpu-of_a_host").mkdir()
    (tmp_path / "multigpu-of_a_host" / LOCK).write_text(f"{platform.node()}-2")
    with scratch_folder(tmp_path):
        pass
    assert len(list(tmp_path.iterdir())) == 4
