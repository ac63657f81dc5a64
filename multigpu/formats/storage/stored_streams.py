"""Stored bytes of files, pipes, standard input and URLs, opened and read in order."""

import io
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, BinaryIO, Self

from multigpu.errors import InputError, Unreadable, first_line
from multigpu.formats.storage.decompress import Stream
from multigpu.formats.storage.urls import RemoteFile

STDIN = "-"
HEAD = 512  # stored bytes looked at to find the compression
ENDLESS = {os.makedev(1, minor) for minor in (5, 7, 8, 9)}  # zero, full, random, urandom of Linux
PACKAGES = {  # what fsspec needs beside itself
    "http": "aiohttp", "https": "aiohttp", "s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs",
    "abfs": "adlfs", "az": "adlfs", "sftp": "paramiko", "ssh": "paramiko",
}  # fmt: skip
MISSING = (404, 410)  # answers of web servers
LOOKED_AT = 64 << 10  # bytes of a URL's beginning by which a change is noticed
REMOTE_CHUNK = 16 << 20  # fetched ahead in one request: latency costs more than bytes


def is_remote(path: str) -> bool:
    return "://" in path


def fill(stream: Stream, out: memoryview) -> int:
    """Read until `out` is full or the stream ends; return how many bytes."""
    done = 0
    while done < len(out) and (count := stream.readinto(out[done:])):
        done += count
    return done


class StoredStream:
    """Stored bytes of one source: opened, counted, closed; errors name the path.

    While it is looked at, its head, of a pipe all that is read, is kept and read again.

    expected  bytes there must be: fewer come of a broken download, or of a file that was cut
    """

    def __init__(self, path: str, ahead: int) -> None:
        """Open it. ahead: bytes of a URL that are fetched in one request."""
        self.path = path
        self._begin, self._taken, self._seen, self._at = 0, 0, bytearray(), 0
        self._looking = True
        with errors_named(path):
            self._file, self.size = _open(path, ahead)
        self.expected = self.size
        self.is_pipe = self.size is None and not is_remote(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if pipes.get(self.path) is not self:
            self.close()

    def close(self) -> None:
        if self.path != STDIN:
            self._file.close()

    def readinto(self, out: memoryview) -> int:
        if self._at < len(self._seen):
            piece = self._seen[self._at : self._at + len(out)]
            out[: len(piece)] = piece
            self._at += len(piece)
            return len(piece)
        with errors_named(self.path):
            count = self._read(out)
        self._taken += count
        if len(out) and not count and self._taken < (self.expected or 0):
            problem = f"ends early: {self._taken} of {self.expected} bytes could be read"
            raise InputError(self.path, problem)
        if self._looking and (self.is_pipe or len(self._seen) < HEAD):
            self._seen += out[:count]
            self._at += count
        return count

    def _read(self, out: memoryview) -> int:
        if is_remote(self.path):  # not every remote file has a readinto
            data = self._file.read(len(out))
            out[: len(data)] = data
            return len(data)
        # None is "nothing yet" from a pipe that someone made non-blocking: not the end.
        while (count := self._file.readinto(out)) is None:
            select.select([self._file], [], [])
        return int(count)

    def head(self) -> bytes:
        """Return the first bytes, enough to tell compressions apart; they are read again."""
        out = bytearray(HEAD)
        count = fill(self, memoryview(out))
        self._at = 0
        return bytes(out[:count])

    def rewind(self, looking: bool) -> None:
        """Begin again with the first byte, where all that was read was looked at."""
        self._at, self._looking = 0, looking

    @property
    def may_restart(self) -> bool:
        """Whether it is a file of this machine, which `restart` begins again."""
        return self.size is not None and not is_remote(self.path) and self.path != STDIN

    def restart(self, begin: int | None = None) -> None:
        """Begin again with the first byte of a file, or from now on with another one."""
        self._begin = self._begin if begin is None else begin
        with errors_named(self.path):
            self._file.seek(self._begin)
        self._taken, self._seen, self._at = self._begin, bytearray(), 0

    def is_replaced(self) -> bool:
        """Whether standard input is another one now, as in a test or a notebook."""
        return self.path == STDIN and self._file is not _standard_input()


# Pipes by path that were looked at and are still to be read: they cannot be opened twice.
pipes: dict[str, StoredStream] = {}


def open_stored(path: str, looking: bool = False) -> StoredStream:
    """Return the stored bytes of a source from the first one on.

    looking  whether the next call reads again what is read now, of a pipe too
    """
    stored = pipes.pop(path, None)
    if stored is None or (looking and stored.is_replaced()):
        if not looking and not is_remote(path) and not is_regular(path):
            raise InputError(path, "a pipe can be read only once")
        stored = StoredStream(path, LOOKED_AT if looking else REMOTE_CHUNK)
    stored.rewind(looking)
    if looking and stored.is_pipe:
        pipes[path] = stored
    return stored


def forget(path: str) -> None:
    """Close a pipe that was looked at and is not to be read."""
    if path in pipes:
        pipes.pop(path).close()


def _open(path: str, ahead: int) -> tuple[Any, int | None]:
    """Return the file, and its size where known."""
    if is_remote(path):
        remote = RemoteFile(path, ahead)
        return remote, remote.size
    if path == STDIN:
        return _standard_input(), None
    status = status_of(path)
    if stat.S_ISCHR(status.st_mode) and status.st_rdev in ENDLESS:
        raise InputError(path, "never ends")
    file = io.FileIO(path)
    return file, os.fstat(file.fileno()).st_size if stat.S_ISREG(status.st_mode) else None


def is_regular(path: str) -> bool:
    """Whether a path is a file of this machine. Raises InputError where there is nothing."""
    if path == STDIN or is_remote(path):
        return False
    with errors_named(path):
        return stat.S_ISREG(status_of(path).st_mode)


def status_of(path: str) -> os.stat_result:
    # `Path` takes several times as long, and there may be a hundred thousand files.
    return os.stat(path)  # noqa: PTH116


@contextmanager
def errors_named(path: str) -> Iterator[None]:
    """Raise errors of the operating system and of remote file systems as Unreadable."""
    # Clients of object stores raise classes of their own, so for URLs it is any Exception.
    kinds = (Exception,) if is_remote(path) else (OSError, ValueError)
    try:
        yield
    except InputError:
        raise
    except kinds as error:
        raise Unreadable(path, f"cannot be read: {_reason(path, error)}") from error


def _reason(path: str, error: Exception) -> str:
    scheme = path.partition("://")[0].lower()
    if isinstance(error, ImportError) and scheme in PACKAGES:
        return f"{scheme}:// needs packages that are missing: pip install {PACKAGES[scheme]}"
    status = getattr(error, "status", None)
    if isinstance(error, FileNotFoundError) or status in MISSING:
        return "there is no such file"
    if isinstance(status, int) and status:
        return f"its server answers {status} {getattr(error, 'message', '')}".strip()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return first_line(error)


def look_at_url(url: str) -> tuple[int, str, bytes]:
    """Return the size of what a URL names, what its server says of its version, and its beginning.

    The first is 0 and the second empty where the server says nothing. Raises Unreadable.
    """
    with errors_named(url), closing(RemoteFile(url, LOOKED_AT)) as file:
        return file.size or 0, file.version, file.read(LOOKED_AT)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise InputError(STDIN, "standard input is closed")
    return sys.stdin.buffer
