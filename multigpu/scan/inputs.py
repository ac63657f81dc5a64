"""The files of a scan, by the paths that a user gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from multigpu.errors import UsageError
from multigpu.formats.storage.sources import check_stdin, expand, plain_bytes


@dataclass(frozen=True, kw_only=True)
class ScanInputs:
    """Files, URLs and "-", after directories and patterns were expanded."""

    samples: tuple[str, ...]
    signatures: tuple[str, ...]

    @cached_property
    def plain_bytes(self) -> int:
        """About how many bytes the samples have that are not compressed, by their names."""
        return plain_bytes(self.samples)


def expand_inputs(samples: Sequence[str], signatures: Sequence[str]) -> ScanInputs:
    """Return the files that these paths stand for.

    Raises UsageError where there are no samples or no signatures, and InputError where a file is
    missing or unreadable, a directory or a pattern stands for nothing, or standard input is given
    twice.
    """
    if not samples:
        raise UsageError("no SAMPLES given")
    if not signatures:
        raise UsageError("no --signatures given")
    check_stdin([*samples, *signatures])
    return ScanInputs(samples=tuple(expand(samples)), signatures=tuple(expand(signatures)))
