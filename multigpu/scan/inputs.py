"""The files of a scan, by the paths that a user gives."""

import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from multigpu.formats.storage.inlets import STDIN, is_remote, status_of
from multigpu.formats.storage.sources import COMPRESSED, check_stdin, expand

MOST_WEIGHED = 1000  # files whose sizes are looked at: there may be a hundred thousand


@dataclass(frozen=True, kw_only=True)
class ScanInputs:
    """Files, URLs and "-", after directories and patterns were expanded."""

    samples: tuple[str, ...]
    signatures: tuple[str, ...]

    @cached_property
    def plain_bytes(self) -> int:
        """About the bytes of the samples that are not compressed, by their names.

        The first files stand for all. Problems with a file are reported when it is read.
        """
        weighed = self.samples[:MOST_WEIGHED]
        size = sum(map(_plain_size, weighed))
        return size * len(self.samples) // max(1, len(weighed))


def expand_inputs(samples: Sequence[str], signatures: Sequence[str]) -> ScanInputs:
    """Return the files that these paths stand for.

    Raises InputError where a file is missing or unreadable, a directory or a pattern stands for
    nothing, or standard input is given twice.
    """
    check_stdin([*samples, *signatures])
    return ScanInputs(samples=tuple(expand(samples)), signatures=tuple(expand(signatures)))


def _plain_size(path: str) -> int:
    """Return the size of a regular file that is not compressed, else 0."""
    if path == STDIN or is_remote(path) or path.lower().endswith(COMPRESSED[1:]):
        return 0
    with suppress(OSError):
        status = status_of(path)
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    return 0
