"""The files of a scan, by the paths that a user gives."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from multigpu.errors import NAMED, UsageError, option, several
from multigpu.formats.storage import sources


@dataclass(frozen=True, kw_only=True)
class ScanInputs:
    """Files, URLs and "-", after directories and patterns were expanded.

    notes  what a user should know about the directories
    """

    samples: tuple[str, ...]
    signatures: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def plain_bytes(self) -> int:
        """About how many bytes the samples have that are not compressed, by their names."""
        return sources.plain_bytes(self.samples)


def expand_inputs(samples: Sequence[str], signatures: Sequence[str]) -> ScanInputs:
    """Return the files that these paths stand for.

    Raises UsageError where there are no samples or no signatures, and InputError where a file is
    missing or unreadable, a directory or a pattern stands for nothing, or standard input is given
    twice.
    """
    if not samples:
        raise UsageError("no SAMPLES given")
    if not signatures:
        raise UsageError(f"no {option('signatures')} given")
    sources.check_stdin([*samples, *signatures])
    return ScanInputs(
        samples=tuple(sources.expand(samples)),
        signatures=tuple(sources.expand(signatures)),
        notes=tuple(_notes_on_folders([*samples, *signatures])),
    )


def open_samples(paths: Sequence[str]) -> tuple[list[sources.Source], list[str]]:
    """Return the sources of samples, and notes. Raises InputError, also where all are empty."""
    found, empty = [], []
    for path in paths:
        try:
            found.append(sources.inspect_source(path))
        except sources.EmptyInput:
            empty.append(path)
            if len(empty) == len(paths):
                raise
    more = ", …" if len(empty) > NAMED else ""
    files = ", ".join(empty[:NAMED]) + more
    return found, [f"{len(empty):,} empty sample files are left out: {files}"] if empty else []


def _notes_on_folders(paths: Sequence[str]) -> Iterator[str]:
    """Yield a note on each directory of which not all files are read, or of FASTQ and FASTA."""
    for path in filter(os.path.isdir, paths):
        taken = [PurePath(file).name for file in sources.expand([path])]
        others = {name for name in os.listdir(path) if name[0] != "."}.difference(taken)  # noqa: PTH208
        are_fastq = {sources.suffix_of(name, sources.SEQUENCES)[-1] == "q" for name in taken}
        if others or len(are_fastq) > 1:
            left_out = f"; not {several(sorted(others))}" if others else ""
            yield f"{path}: of this directory are read {several(taken)}{left_out}"
