"""Digests of values, and fingerprints of input files, by which a change is noticed."""

import os
import stat
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from multigpu.errors import InputError
from multigpu.formats.storage.sources import MIB, read_part
from multigpu.formats.storage.stored_streams import errors_named, is_remote, look_at_url, status_of

HASHED_WHOLE = 8 * MIB
PIECE = 16 * MIB  # hashed by one thread
PLAIN = (bytes, str, int, float, NoneType, np.generic, Path)  # which their text tells apart


def digest(value: Any) -> str:
    """Return 16 hex digits that differ wherever types, shapes, lengths, names or content do.

    value: numbers, texts, arrays, and sequences, mappings and dataclasses of these, whose fields
    count unless they have `compare=False`
    """
    found = sha256()  # which processors have instructions for
    _add(found, value)
    return found.hexdigest()[:16]


def _add(found: Any, value: Any) -> None:
    kind, content = type(value).__name__, b""
    parts: Collection[Any] = ()
    is_sequence = isinstance(value, list | tuple)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        kind = f"{value.dtype.str} {value.shape}"
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        content = _hash_pieces(lambda at: flat[at : at + PIECE].data, flat.size)
    elif isinstance(value, bytes):
        content = value
    elif all(isinstance(each, PLAIN) for each in (value if is_sequence else [value])):
        content = repr(value).encode()
    elif isinstance(value, Mapping):
        parts = value.items()
    elif is_sequence:
        parts = value
    elif is_dataclass(value):
        compared = (each.name for each in fields(value) if each.compare)
        parts = [(name, getattr(value, name)) for name in compared]
    else:
        raise TypeError(f"no digest of {kind}")
    found.update(f"{kind}, {len(content)} bytes, {len(parts)} parts:".encode())
    found.update(content)
    for part in parts:
        _add(found, part)


def _hash_pieces(piece: Callable[[int], Any], size: int) -> bytes:
    """Return the digests of pieces of some bytes, which several threads take and hash."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        hashed = pool.map(lambda at: sha256(piece(at)).digest(), range(0, size, PIECE))
        return b"".join(hashed)


@dataclass(frozen=True)
class Fingerprint:
    """State of a file: bytes, a hash of its content, when it was written (in ns).

    Of a URL `changed` is what its server says of its version, as text.
    """

    size: int
    digest: str
    changed: int | str

    def same_content(self, other: "Fingerprint") -> bool:
        """Whether the other may be a copy of the same file, as far as was looked."""
        return (self.size, self.digest) == (other.size, other.digest)

    def __str__(self) -> str:
        when = self.changed
        if isinstance(when, int):
            when = f"{datetime.fromtimestamp(when / 1e9, UTC):%Y-%m-%d %H:%M:%S.%f}"
        return f"{self.size:,} bytes, content {self.digest}, of {when}"


def fingerprint(path: str) -> Fingerprint:
    """Return the fingerprint of a local file or a URL, at the same cost for any size.

    Of up to 8 MiB the whole content counts, else the first, the middle and the last MiB: another
    file or version has another time, too. Of a URL it is the beginning, and the version that its
    server names; where it names none, there is no fingerprint.
    """
    if is_remote(path):
        size, version, begin = look_at_url(path)
        if not version:
            raise InputError(path, "its server names neither a version nor a time of change")
        return Fingerprint(size, digest(begin), version)
    with errors_named(path):
        status = status_of(path)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(path, "only a regular file on this machine has a fingerprint")
    size = status.st_size
    pieces = [(0, size)]
    if size > HASHED_WHOLE:
        pieces = [(start, MIB) for start in (0, size // 2 - MIB // 2, size - MIB)]
    found = digest(b"".join(read_part(path, start, length) for start, length in pieces))
    return Fingerprint(size, found, status.st_mtime_ns)


def content_digest(path: str) -> str:
    """Return a digest of a local file's whole content. Raises Unreadable."""
    with errors_named(path):
        size = status_of(path).st_size
    return digest(_hash_pieces(lambda at: read_part(path, at, PIECE), size))


def fingerprint_or_none(path: str) -> Fingerprint | None:
    """Return the fingerprint, or None for what cannot be read or has none."""
    try:
        return fingerprint(path)
    except InputError:
        return None
