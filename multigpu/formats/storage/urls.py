"""Bytes of URLs by fsspec, read in order; what a bad connection loses is asked for again."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from multigpu.errors import InputError

logger = logging.getLogger(__name__)

# Names that file systems have for the version of a file, or the time of its last change.
VERSIONS = ("etag", "last-modified", "lastmodified", "last_modified", "updated", "mtime")
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds before a request that failed is made again
SILENCE = 60.0  # seconds without a byte after which a request has failed
SKIPPED = 1 << 20  # bytes read at a time that were read before
# Errors that the same request brings again.
LASTING = (ImportError, FileNotFoundError, PermissionError, TypeError, ValueError)
TEMPORARY = (408, 425, 429)  # answers besides those from 500 on
CHANGED = "was changed while it was read"

T = TypeVar("T")


class RemoteFile:
    """File that a URL names, from its first byte on.

    size     in bytes; None where its server does not say
    version  what its server says of its version or the time of its change; empty for nothing

    Raises InputError where it is changed while it is read, and what file systems raise.
    """

    def __init__(self, url: str, ahead: int) -> None:
        """Open it. ahead: bytes fetched in one request."""
        self._url, self._ahead, self._at = url, ahead, 0
        self._file: Any = None
        self._is_known = False  # whether the server has described it
        self._only_whole = False  # whether the server sends it from its first byte only
        self.size: int | None = None
        self.version = ""
        self._persist(self._open)

    def read(self, count: int) -> bytes:
        """Return the next bytes, at most `count`; none only at the end."""
        return self._persist(lambda: self._read(count))

    def close(self) -> None:
        if self._file is not None:
            with suppress(Exception):  # of a connection that is broken
                self._file.close()
        self._file = None

    def _persist(self, request: Callable[[], T]) -> T:
        """Return what a request gives, made again as long as its errors may pass."""
        for wait in WAITS:
            try:
                return request()
            except Exception as error:
                # Nobody may be there at all.
                is_nobody = isinstance(error, OSError) and not self._is_known
                if is_nobody or not _may_pass(error):
                    raise
            self.close()
            time.sleep(wait)
        return request()

    def _open(self) -> None:
        """Open it at the byte that was reached."""
        system, path = _file_system(self._url)
        self._describe(system, path)
        block_size = 0 if self._only_whole else self._ahead
        self._file = system.open(path, "rb", block_size=block_size)
        if not self._only_whole:
            self._file.seek(self._at)
            return
        left = self._at
        while left and (data := self._file.read(min(left, SKIPPED))):
            left -= len(data)

    def _describe(self, system: Any, path: str) -> None:
        """Ask for size and version. Raises InputError where they are not what they were."""
        try:
            about = system.info(path)
        except FileNotFoundError as error:  # which stands for every answer of a web server
            if isinstance(error.__cause__, ImportError | FileNotFoundError | KeyError | None):
                raise
            raise error.__cause__ from None
        found = {name: about[name] for name in sorted(about) if name.lower() in VERSIONS}
        if not found:
            with suppress(Exception):  # of classes of their own, where they do not know it
                found = {"modified": system.modified(path)}
        size, version = about.get("size"), ", ".join(map(str, found.values()))
        if self._is_known and (size, version) != (self.size, self.version):
            raise InputError(self._url, CHANGED)
        self.size, self.version, self._is_known = size, version, True
        if size is None or about.get("partial") is False:
            self._read_whole()

    def _read_whole(self) -> None:
        """Ask for no ranges any more."""
        _note_stream(self._url)
        self._only_whole = True

    def _read(self, count: int) -> bytes:
        if self._file is None:
            self._open()
        try:
            data: bytes = self._file.read(count)
        except ValueError as error:
            if self._only_whole or "range" not in f"{error}":
                raise
            self._read_whole()
            self.close()
            return self._read(count)
        self._at += len(data)
        if count and not data:
            if self._at < (self.size or 0):
                raise ConnectionError(f"the connection ended at byte {self._at} of {self.size}")
            self._check_unchanged()
        return data

    def _check_unchanged(self) -> None:
        """Raise InputError where it is another one now; it may be gone."""
        try:
            self._describe(*_file_system(self._url))
        except InputError:
            raise
        except Exception:  # noqa: BLE001 - all of it was read
            return


@cache
def _note_stream(url: str) -> None:
    """Say once that the server of a URL, which may be opened several times, knows no ranges."""
    problem = "its server sends no ranges, so it is read as a stream"
    logger.warning("multigpu: %s: %s", url, problem)


def _may_pass(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    status = getattr(error, "status", None)
    if isinstance(status, int) and status:
        return status >= 500 or status in TEMPORARY
    return not isinstance(error, LASTING)


def _file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it; nothing of it is cached."""
    # Most runs never need it.
    import fsspec.config
    import fsspec.core

    options: dict[str, Any] = {}
    scheme = url.partition("://")[0].lower()
    if scheme in ("http", "https"):
        from aiohttp import ClientTimeout

        # A file may take hours, but no server is silent for long.
        patience = ClientTimeout(total=None, sock_connect=SILENCE, sock_read=SILENCE)
        given = fsspec.config.conf.get(scheme, {}).get("client_kwargs", {})
        options = {"client_kwargs": {"timeout": patience, **given}}
    system, path = fsspec.core.url_to_fs(url, **options)
    system.invalidate_cache()
    return system, path
