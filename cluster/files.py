"""Output files, which appear under their names only when they are complete.

What is written stands in a hidden folder beside the target, which only this user may enter, and is
renamed at the end, so a run that fails leaves what was there before. Standard output, pipes and
devices are written directly.
"""

import ctypes
import errno
import fcntl
import io
import os
import platform
import select
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from multigpu.cluster.errors import DiskFull, Failure, UsageError

STDOUT = ("-", "/dev/stdout")  # the second one by name, because `>>` has to append
BUFFER = 1 << 20  # bytes
KEPT_NAME = 200  # bytes of a name that a hidden file's name has: names have at most 255
LOCK = ".multigpu-lock"  # in every temporary folder, by which it is known as ours, and held
NEW = "new"  # in the temporary folder of an output, what becomes the output
OLD = "old"  # there, too: a folder that the output replaces, while neither has the name
RENAME_EXCHANGE, CURRENT_FOLDER = 2, -100  # of renameat2, in Linux's <fcntl.h>
SCRATCH = "multigpu-"  # how the names of scratch folders begin
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class PipeClosed(Failure):
    """The reader of our output wants no more, as `head` does. Nothing is printed.

    The text is empty; the exit status is what a filter killed by SIGPIPE leaves in a shell.
    """

    exit_status = 128 + signal.SIGPIPE


@contextmanager
def atomic_output(path: str | None) -> Iterator[BinaryIO]:
    """Yield a buffered binary file that becomes `path` when the block ends without an exception.

    None and "-" stand for standard output. Raises UsageError before anything is written (see
    `check_output`), PipeClosed, and Failure where the disk is full or broken; after any
    exception `path` is as it was before.
    """
    check_output(path)
    if path is None or path in STDOUT:
        opened = _buffered(_NamedFile("standard output", _standard_output(), closes=False))
    elif _is_special(Path(path)):
        opened = _buffered(open_unbuffered(path))
    else:
        opened = _replace(path)
    with opened as file:
        yield file


def check_output(path: str | None) -> None:
    """Raise UsageError where `path` cannot be written; ask before hours of work."""
    if path is None or path in STDOUT:
        return
    if not path:
        raise UsageError("the output has no name")
    try:
        problem = _problem(path)
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle; a zero byte
        problem = _reason(error)
    if problem:
        raise UsageError(f"{path}: cannot be written: {problem}")


def is_replaced(path: str | None) -> bool:
    """Whether `path` is, or becomes, a regular file: not a pipe, a device or standard output."""
    return path is not None and path not in STDOUT and not _is_special(Path(path))


def _problem(path: str) -> str | None:
    """Return what is wrong with the target, None where nothing is."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        os.lstat(path)  # from Python 3.14 on `exists` is silent about names that are too long
    target = Path(path).resolve()
    if target.is_symlink():  # Python 3.13 resolves what it can
        return "its links lead in a circle"
    if Path(path).is_dir() or path.endswith("/"):
        return "it is a directory"
    if Path(path).exists() and not os.access(path, os.W_OK):
        return "permission denied"
    if _is_special(target):
        if target.is_char_device():  # it may refuse even nothing
            with _descriptor(target, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY) as device:
                os.write(device, b"")
        return None
    if not target.parent.is_dir():
        return f"there is no directory {target.parent}"
    if not os.access(target.parent, os.W_OK | os.X_OK):
        return f"no permission to write in {target.parent}"
    return None


def _is_special(path: Path) -> bool:
    """Whether `path` is there and no regular file: a device or a pipe."""
    return path.exists() and not path.is_file()


# ---- regular files ----------------------------------------------------------------------------


@contextmanager
def _replace(path: str) -> Iterator[BinaryIO]:
    """Write beside the target, then rename. A symbolic link stays one: its target is replaced."""
    target = Path(path).resolve()
    with temporary_folder(target, path) as part:
        with failures_named(path):
            raw = (part / NEW).open("xb", buffering=0)
        with _buffered(_NamedFile(path, raw, closes=True)) as file:
            yield file
            file.flush()
            with failures_named(path):
                take_mode(part / NEW, target)
                os.fsync(raw.fileno())
                (part / NEW).replace(target)
    sync_directory(target.parent)


def take_mode(new: Path, target: Path) -> None:
    """Give a new file the permissions of the one that it is to replace, if there is one."""
    with suppress(OSError):  # there is none, or the file system knows no permissions
        new.chmod(stat.S_IMODE(target.stat().st_mode))


# ---- folders ----------------------------------------------------------------------------------


@contextmanager
def folder_beside(path: str) -> Iterator[Path]:
    """Yield a new hidden folder for `replace_folder`, held by one run: see `hold_folder`."""
    with temporary_folder(Path(path).resolve(), path, UsageError) as hidden:
        with failures_named(path, UsageError):
            (hidden / NEW).mkdir()
        yield hidden / NEW


def replace_folder(new: Path, target: Path) -> None:
    """Give the name `target` to a folder of `folder_beside`, when all of it is on the disk.

    A folder that has the name is replaced in one step, where the file system can do that.
    Raises OSError.
    """
    sync_file_system(new)
    take_mode(new, target)
    if not target.exists():
        new.rename(target)
    elif not _exchange(new, target):
        target.rename(new.with_name(OLD))
        try:
            new.rename(target)
        except BaseException:
            new.with_name(OLD).rename(target)
            raise
    sync_directory(target.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders. Return False where the system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)  # it is Linux's
    places = (CURRENT_FOLDER, os.fsencode(one), CURRENT_FOLDER, os.fsencode(other))
    return rename is not None and rename(*places, RENAME_EXCHANGE) == 0


# ---- temporary names --------------------------------------------------------------------------


def hidden_path(target: Path, kind: str) -> Path:
    """Return the path of a hidden file beside `target`, for what belongs to it."""
    name = os.fsdecode(os.fsencode(target.name)[:KEPT_NAME])
    return target.with_name(f".{name}.{kind}")


@contextmanager
def temporary_folder(target: Path, name: str, kind: type[Failure] = Failure) -> Iterator[Path]:
    """Hold the hidden folder beside a target, as `hold_folder`; nothing else is in it, or stays."""
    folder = hidden_path(target, "part")
    with hold_folder(folder, name, kind):
        try:
            with failures_named(name, kind):
                if (folder / OLD).exists() and not target.exists():
                    (folder / OLD).rename(target)  # a run was killed in `replace_folder`
                clear_folder(folder)  # it may have left something
            yield folder
        finally:
            with suppress(OSError):  # what went wrong before is what is reported
                clear_folder(folder)


@contextmanager
def hold_folder(folder: Path, name: str, kind: type[Failure] = Failure) -> Iterator[None]:
    """Hold a temporary folder, which only this user may enter: a new one, or what a run has left.

    It is removed with the block if nothing is in it then. Raises UsageError where another run holds
    it, and where the path is taken by something else, which is left as it is.

    name  of the output, for messages
    kind  class of other failures
    """
    with failures_named(name, kind):
        lock = _lock_folder(folder, name)
    with lock:
        try:
            yield
        finally:
            with suppress(OSError):
                if [path.name for path in folder.iterdir()] == [LOCK]:
                    (folder / LOCK).unlink()
                    folder.rmdir()


def _lock_folder(folder: Path, name: str) -> io.FileIO:
    while True:
        _check_name(folder, name, stat.S_ISDIR)
        folder.mkdir(0o700, exist_ok=True)
        try:
            return open_locked(folder / LOCK, name)
        except Failure:
            if folder.exists():  # else another run has just removed it
                raise


def _check_name(path: Path, name: str, kind: Callable[[int], bool]) -> None:
    """Raise UsageError where a temporary name is taken by something that no run here has left."""
    if not is_left(path, kind):
        problem = "is in the way, and not what a run of yours has left: rename or remove it"
        raise UsageError(f"{name}: {path} {problem}")


def is_left(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether a temporary name is free, or its file or folder is this user's, and no link.

    A folder has our mark or is empty; a file has no other name.
    """
    with suppress(FileNotFoundError):
        status = path.lstat()
        if not kind(status.st_mode) or status.st_uid != os.geteuid():
            return False
        if stat.S_ISDIR(status.st_mode):
            return os.path.lexists(path / LOCK) or not any(path.iterdir())
        return status.st_nlink == 1
    return True


def clear_folder(folder: Path, keep: Collection[str] = ()) -> None:
    """Remove all that is in a temporary folder, but for these names and our mark."""
    for path in folder.iterdir():
        if path.name not in (LOCK, *keep):
            remove(path)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def open_locked(path: Path, name: str) -> io.FileIO:
    """Open or create a file that only one run has at a time, for reading and writing.

    Only this user may read it. Raises UsageError where another run has it, or something else is
    there.

    name: of the output, for messages
    """
    with failures_named(name):
        while True:
            _check_name(path, name, stat.S_ISREG)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            raw = io.FileIO(os.open(path, flags, 0o600), "r+b")
            try:
                _lock(raw, name)
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(raw.fileno()), path.stat()):
                        return raw
            except BaseException:
                raw.close()
                raise
            raw.close()  # it was renamed or removed before it was locked


def _lock(raw: io.FileIO, name: str) -> None:
    try:
        fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"{name}: another run is writing it") from error
    except OSError as error:  # some network file systems know no locks
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise


def sync_file_system(path: Path) -> None:
    """Wait until all that was written to a path's file system is on the disk. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):  # it is Linux's
        os.sync()
        return
    with _descriptor(path) as file:
        if library.syncfs(file):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextmanager
def _descriptor(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Yield the number of an open file, device or directory."""
    number = os.open(path, flags)
    try:
        yield number
    finally:
        os.close(number)


def sync_directory(directory: Path) -> None:
    """Wait until the names in it are on the disk; some network file systems refuse that."""
    with suppress(OSError), _descriptor(directory) as file:
        os.fsync(file)


# ---- writing with errors that have a name -----------------------------------------------------


def _standard_output() -> Any:
    """Return the file under `sys.stdout`, unbuffered, so that nothing can fail at the exit."""
    if sys.stdout is None:
        raise UsageError("standard output is closed")
    with failures_named("standard output"):
        sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        raise UsageError("standard output takes no bytes here: name a file")
    return getattr(buffer, "raw", buffer)


def open_unbuffered(path: str) -> "_NamedFile":
    """Open a file that is written in place, unbuffered."""
    with failures_named(path):
        return _NamedFile(path, Path(path).open("wb", buffering=0), closes=True)


@contextmanager
def _buffered(raw: "_NamedFile") -> Iterator[BinaryIO]:
    """Yield a buffer over `raw`, which is flushed at the end, thrown away after an exception."""
    file = io.BufferedWriter(raw, BUFFER)
    try:
        yield file
        file.close()
    except BaseException:
        raw.discard = True
        with suppress(Failure):
            file.close()
        raise


class _NamedFile(io.RawIOBase):
    """A raw file whose errors are failures that name it.

    closes   whether `close` closes the file below
    discard  whether what is written is thrown away
    """

    def __init__(self, name: str, raw: Any, closes: bool) -> None:
        super().__init__()
        self.name = name
        self.discard = False
        self._raw = raw
        self._closes = closes

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self.discard:
            return memoryview(data).nbytes
        with failures_named(self.name):
            # None is "not now" from a pipe that someone made non-blocking.
            while (count := self._raw.write(data)) is None:
                select.select([], [self._raw], [])
        return int(count)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        if self._closes:
            with failures_named(self.name):
                self._raw.close()  # network file systems report a full disk here


@contextmanager
def failures_named(name: str, kind: type[Failure] = Failure) -> Iterator[None]:
    """Turn errors of the system into failures of a kind, or DiskFull, that name a file."""
    try:
        yield
    except BrokenPipeError as error:
        raise PipeClosed from error
    except OSError as error:
        if error.errno in DISK_FULL:
            kind = DiskFull
        raise kind(f"{name}: cannot be written: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    if error.errno == errno.EFBIG:
        return f"{error.strerror.lower()} (see `ulimit -f`)"
    if error.errno in DISK_FULL:
        return f"the disk is full ({error.strerror.lower()})"
    return error.strerror.lower()


# ---- scratch folders ---------------------------------------------------------------------------


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[str]:
    """Make a folder that is removed with the block, after abandoned ones. Raises OSError."""
    remove_abandoned(Path(parent or tempfile.gettempdir()))
    folder = tempfile.mkdtemp(prefix=SCRATCH, dir=parent)
    try:
        with open_locked(Path(folder, LOCK), folder) as lock:
            # Nobody takes the folder for an abandoned one before the host's name is there.
            lock.write(platform.node().encode())
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Remove folders of processes of this user and host (others' locks are not seen) that ended."""
    with suppress(OSError):
        for lock in parent.glob(f"{SCRATCH}*/{LOCK}"):
            if not (is_left(lock, stat.S_ISREG) and is_left(lock.parent, stat.S_ISDIR)):
                continue
            with suppress(OSError), lock.open("r+b") as file:
                if file.read() == platform.node().encode():
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raised where it is held
                    shutil.rmtree(lock.parent, ignore_errors=True)
