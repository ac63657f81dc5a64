"""Stored bytes of files, pipes, standard input and URLs, opened and read in order."""

import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Self

from multigpu.errors import InputError, Unreadable, first_line
from multigpu.formats.storage.decompress import Stream

STDIN = "-"
HEAD = 512  # stored bytes looked at to find the compression
ENDLESS = {os.makedev(1, minor) for minor in (5, 7, 8, 9)}  # zero, full, random, urandom of Linux
PACKAGES = {  # what fsspec needs beside itself
    "http": "requests aiohttp", "https": "requests aiohttp", "s3": "s3fs", "gs": "gcsfs",
    "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs", "sftp": "paramiko", "ssh": "paramiko",
}  # fmt: skip
# Names that file systems have for the version of a file, or the time of its last change.
VERSIONS = ("etag", "last-modified", "lastmodified", "last_modified", "updated", "mtime")
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
    """Stored bytes of one source: opened, counted, closed; errors name the path."""

    def __init__(self, path: str, looking: bool) -> None:
        """Open a source.

        looking  whether the next stream of the source reads again what is read of a pipe now
        """
        self.path = path
        self.taken = 0
        self._again = b""
        with errors_named(path):
            self._stream, self.size, self._close = _open(path, looking)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def readinto(self, out: memoryview) -> int:
        if self._again:
            piece, self._again = self._again[: len(out)], self._again[len(out) :]
            out[: len(piece)] = piece
            return len(piece)
        with errors_named(self.path):
            count = self._stream.readinto(out) or 0
        self.taken += count
        return count

    def head(self) -> bytes:
        """Return the first bytes, enough to tell compressions apart; they are read again."""
        out = bytearray(HEAD)
        self._again = bytes(out[: fill(self, memoryview(out))])
        return self._again

    def check_complete(self, size: int | None) -> None:
        """Raise InputError where fewer bytes came: a broken download, or a file that was cut."""
        if size is not None and self.taken < size:
            raise InputError(self.path, f"ends early: {self.taken} of {size} bytes could be read")


def _open(path: str, looking: bool) -> tuple[Stream, int | None, Callable[[], None]]:
    """Return the stream, its size where known, and a function that closes it."""
    if is_remote(path):
        remote = _Remote(path)
        return remote, remote.size, remote.close
    status = None if path == STDIN else status_of(path)
    if status is not None and stat.S_ISREG(status.st_mode):
        file = io.FileIO(path)
        return file, os.fstat(file.fileno()).st_size, file.close
    if status is not None and stat.S_ISCHR(status.st_mode) and status.st_rdev in ENDLESS:
        raise InputError(path, "never ends")
    pipe = _pipe(path, looking)
    return pipe, None, (lambda: None) if looking else pipe.close


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
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return first_line(error)


class _Remote:
    """Bytes of a URL, read in order."""

    def __init__(self, url: str) -> None:
        # Most runs never need it.
        import fsspec.core

        system, path = fsspec.core.url_to_fs(url)
        self._file = system.open(path, "rb", block_size=REMOTE_CHUNK)
        size = getattr(self._file, "size", None)
        self.size = size if isinstance(size, int) else None

    def readinto(self, out: memoryview) -> int:
        data = self._file.read(len(out))  # not every remote file has a readinto of its own
        out[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()


def look_at_url(url: str) -> tuple[int, str, bytes]:
    """Return the size of what a URL names, what its server says of its version, and its beginning.

    The first is 0 and the second empty where the server says nothing. Raises Unreadable.
    """
    with errors_named(url):
        import fsspec.core

        system, path = fsspec.core.url_to_fs(url)
        system.invalidate_cache()
        about = system.info(path)
        version = {name: about[name] for name in sorted(about) if name.lower() in VERSIONS}
        if not version:
            with suppress(Exception):  # of classes of their own, where they do not know it
                version = {"modified": system.modified(path)}
        with system.open(path, "rb", block_size=LOOKED_AT) as file:
            begin = file.read(LOOKED_AT)
        return about.get("size") or 0, ", ".join(map(str, version.values())), begin


# Pipes by path, which `inspect_source` has opened and `blocks` will read.
pipes: dict[str, "_Pipe"] = {}


def _pipe(path: str, looking: bool) -> "_Pipe":
    """Return the open pipe at its first byte; it is kept for the next call while `looking`."""
    if looking and (path not in pipes or pipes[path].is_replaced()):
        pipes[path] = _Pipe(path)
    pipe = pipes.get(path) if looking else pipes.pop(path, None)
    if pipe is None:
        raise InputError(path, "a pipe can be read only once")
    pipe.rewind(keep=looking)
    return pipe


def forget(path: str) -> None:
    if path in pipes:
        pipes.pop(path).close()


class _Pipe:
    """Standard input or a named pipe, which cannot be opened twice: what was seen is kept."""

    def __init__(self, path: str) -> None:
        self._owned = path != STDIN
        self._file = io.FileIO(path) if self._owned else _standard_input()
        self._seen = bytearray()
        self.rewind(keep=True)

    def is_replaced(self) -> bool:
        """Whether standard input is another one now, as in a test or a notebook."""
        return not self._owned and self._file is not _standard_input()

    def rewind(self, keep: bool) -> None:
        self._at = 0
        self._keep = keep

    def readinto(self, out: memoryview) -> int:
        if self._at < len(self._seen):
            piece = self._seen[self._at : self._at + len(out)]
            out[: len(piece)] = piece
            self._at += len(piece)
            return len(piece)
        count = self._read(out)
        if self._keep:
            self._seen += out[:count]
            self._at += count
        return count

    def _read(self, out: memoryview) -> int:
        # None is "nothing yet" from a pipe that someone made non-blocking: not the end.
        while (count := self._file.readinto(out)) is None:  # type: ignore[attr-defined]
            select.select([self._file], [], [])
        return int(count)

    def close(self) -> None:
        if self._owned:
            self._file.close()


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise InputError(STDIN, "standard input is closed")
    return sys.stdin.buffer
