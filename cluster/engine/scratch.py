"""Temporary folders, also those that killed runs have left."""

import fcntl
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from multigpu.cluster.engine.output import LOCK, is_left

PREFIX = "multigpu-"


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[str]:
    """Make a folder that is removed with the block, in `parent` or the system's temporary folder.

    Folders of processes that are gone are removed first. Raises OSError where none can be made.
    """
    remove_abandoned(Path(parent or tempfile.gettempdir()))
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    lock = -1
    try:
        lock = _hold(Path(folder))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock >= 0:
            os.close(lock)


def _hold(folder: Path) -> int:
    """Lock the folder by a file with the host's name, which is never seen unlocked."""
    new = folder / f"{LOCK}.new"
    lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(lock, platform.node().encode())
        new.rename(folder / LOCK)
    except OSError:  # a file system without locks: the folder is left if the process is killed
        new.unlink(missing_ok=True)
    return lock


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
    descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    try:
        host = platform.node().encode()
        if (
            os.fstat(descriptor).st_uid == os.geteuid()
            and is_left(lock.parent, stat.S_ISDIR)
            and os.read(descriptor, len(host) + 1) == host
        ):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
    finally:
        os.close(descriptor)
