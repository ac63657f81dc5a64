"""Temporary folders, also those that killed runs have left."""

import fcntl
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from multigpu.cluster.engine.output import LOCK, is_left, open_locked

PREFIX = "multigpu-"


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[str]:
    """Make a folder that is removed with the block, in `parent` or the system's temporary folder.

    Folders of processes that are gone are removed first. Raises OSError where none can be made.
    """
    remove_abandoned(Path(parent or tempfile.gettempdir()))
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    try:
        with open_locked(Path(folder, LOCK), folder) as lock:
            # Nobody takes the folder for an abandoned one before the host's name is there.
            lock.write(platform.node().encode())
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Remove the folders in `parent` whose process is gone: of this user, and of this host.

    On a network file system another host's lock may not be seen.
    """
    with suppress(OSError):
        for lock in parent.glob(f"{PREFIX}*/{LOCK}"):
            with suppress(OSError):
                _remove_abandoned(lock)


def _remove_abandoned(lock: Path) -> None:
    """Remove the folder of a lock. Raises OSError where somebody holds the lock."""
    if not (is_left(lock, stat.S_ISREG) and is_left(lock.parent, stat.S_ISDIR)):
        return
    with lock.open("r+b") as file:
        if file.read() == platform.node().encode():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
