"""Fingerprints of input files, by which a changed file is noticed."""

import hashlib
import stat
from dataclasses import dataclass
from datetime import UTC, datetime

from multigpu.errors import InputError
from multigpu.formats.storage.sources import MIB, read_part
from multigpu.formats.storage.stored_streams import errors_named, status_of

HASHED_WHOLE = 8 * MIB


@dataclass(frozen=True)
class Fingerprint:
    """State of a local file: bytes, a hash of its content, when it was written (in ns)."""

    size: int
    digest: str
    changed: int

    def same_content(self, other: "Fingerprint") -> bool:
        """Whether the other may be a copy of the same file."""
        return (self.size, self.digest) == (other.size, other.digest)

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.changed / 1e9, UTC)
        when = f"{moment:%Y-%m-%d %H:%M:%S.%f}"
        return f"{self.size:,} bytes, content {self.digest[:8]}, of {when}"


def fingerprint(path: str) -> Fingerprint:
    """Return the fingerprint of a local file, at the same cost for any size.

    Of up to 8 MiB the whole content counts, else the first, the middle and the last MiB: another
    file or version has another fingerprint, a bit flipped on purpose need not.
    """
    with errors_named(path):
        status = status_of(path)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(path, "only a regular file on this machine has a fingerprint")
    size = status.st_size
    pieces = [(0, size)]
    if size > HASHED_WHOLE:
        pieces = [(start, MIB) for start in (0, size // 2 - MIB // 2, size - MIB)]
    digest = hashlib.blake2b(digest_size=16)
    for start, length in pieces:
        digest.update(read_part(path, start, length))
    return Fingerprint(size, digest.hexdigest(), status.st_mtime_ns)


def fingerprint_or_none(path: str) -> Fingerprint | None:
    """Return the fingerprint, or None for what cannot be read or is no regular file."""
    try:
        return fingerprint(path)
    except InputError:
        return None
