"""The files of a scan, by the paths that a user gives."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import PurePath

from multigpu.errors import NAMED, InputError, UsageError, option, several
from multigpu.formats.sequences.memory_records import records_or_paths
from multigpu.formats.sequences.pairs import pair_files
from multigpu.formats.sequences.record_source import RecordSource
from multigpu.formats.sequences.registry import SEQUENCES, inspect_samples
from multigpu.formats.storage import input_paths, sources
from multigpu.formats.storage.sources import Source
from multigpu.formats.storage.stored_streams import is_regular
from multigpu.run.options import GpuLanes
from multigpu.run.values import path_list, texts_of
from multigpu.workloads.scan.options import scan_lanes
from multigpu.workloads.scan.request import Pairs, ScanRequest

SIGNATURE_OPTIONS = ("-s", "--signatures")
JOINED = ("-s", "--signatures=")  # beginnings of an argument that contains the value
MANY = 1000  # threads that can decompress a file of BGZF


@dataclass(frozen=True, kw_only=True)
class ScanInputs:
    """Files, URLs and "-", after directories and patterns were expanded, and other sources.

    pairs  which samples are pairs of reads, as the option has it
    notes  what a user should know about the directories
    """

    samples: tuple[str | Source, ...]
    signatures: tuple[str | Source, ...]
    pairs: Pairs = "none"
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> list[str]:
        """The paths of samples, which a journal can compare with what they were."""
        return paths_in(self.samples)

    @cached_property
    def _only(self) -> Source | None:
        """The only sample, where it is a file that begins as it should."""
        with suppress(InputError):
            if len(self.files) == len(self.samples) == 1 and is_regular(self.files[0]):
                return inspect_samples(self.files[0])
        return None

    @cached_property
    def lanes(self) -> GpuLanes:
        """The lanes of a scan; a compressed file that has ranges counts as many."""
        compressed = sum(path.lower().endswith(sources.COMPRESSED[1:]) for path in self.files)
        if self._only and self._only.has_ranges and not self._only.cuttable:
            compressed = MANY
        return scan_lanes(input_paths.plain_bytes(self.files), compressed)

    def open_samples(self) -> tuple[list[Source], list[str], list[str]]:
        """Return the sources of samples, the files left out as they are empty, and notes.

        Raises InputError, also where all are empty.
        """
        opened: list[Source | None] = [self._only] if self._only else []
        for each in self.samples[len(opened) :]:
            try:
                opened.append(inspect_samples(each))
            except sources.EmptyInput:
                opened.append(None)
                if opened.count(None) == len(self.samples):
                    raise
        empty = [f"{each}" for each, source in zip(self.samples, opened, strict=True) if not source]
        found, notes = pair_files(self.samples, opened, self.pairs)
        if empty:
            files = ", ".join(empty[:NAMED]) + ", …" * (len(empty) > NAMED)
            notes.append(f"empty sample files are left out: {files}")
        return found, empty, notes


def paths_in(given: Iterable[str | Source]) -> list[str]:
    """Return those of the inputs that are paths."""
    return [each for each in given if isinstance(each, str)]


def sources_of(given: object, name: str) -> Sequence[str | Source]:
    """Return what a parameter of Python stands for: paths, or a source of its records."""
    found = records_or_paths(given, name)
    return [found] if isinstance(found, RecordSource) else path_list(found, name)


def inputs_of(request: ScanRequest) -> ScanInputs:
    """Return the inputs of a command; see `expand_inputs`."""
    samples = texts_of(request.samples, "samples")
    signatures = texts_of(request.signatures, "signatures")
    return expand_inputs(samples, signatures, request.pairs, request.sample_sheet)


def expand_inputs(
    samples: Sequence[str | Source],
    signatures: Sequence[str | Source],
    pairs: Pairs = "none",
    sheet: str | None = None,
) -> ScanInputs:
    """Return the files that these paths stand for, and the other sources.

    Raises UsageError where there are no samples or no signatures, and InputError where a file is
    missing or unreadable, a directory or a pattern stands for nothing, or standard input is given
    twice.
    """
    if not samples:
        raise UsageError("no SAMPLES given")
    if signatures and sheet is not None:
        raise UsageError(f"give {option('signatures')} or {option('sample_sheet')}, not both")
    if not signatures and sheet is None:
        raise UsageError(f"no {option('signatures')} given")
    given = [*samples, *signatures]
    input_paths.check_stdin(given)
    found: list[Sequence[str | Source]] = [
        input_paths.expand([each], SEQUENCES) if isinstance(each, str) else [each] for each in given
    ]
    return ScanInputs(
        samples=tuple(chain(*found[: len(samples)])),
        signatures=tuple(chain(*found[len(samples) :])),
        pairs=pairs,
        notes=tuple(_notes_on_folders(zip(given, found, strict=True))),
    )


def _notes_on_folders(
    expanded: Iterable[tuple[str | Source, Sequence[str | Source]]],
) -> Iterator[str]:
    """Yield a note on each directory of which not all files are read, or of FASTQ and FASTA."""
    for path, files in expanded:
        if isinstance(path, Source) or not os.path.isdir(path):  # noqa: PTH112  (a Path fails at a long name)
            continue
        taken = [PurePath(file).name for file in paths_in(files)]
        others = {name for name in os.listdir(path) if name[0] != "."}.difference(taken)  # noqa: PTH208
        are_fastq = {input_paths.suffix_of(name, SEQUENCES)[-1] == "q" for name in taken}
        if others or len(are_fastq) > 1:
            left_out = f"; not {several(sorted(others))}" if others else ""
            yield f"{path}: of this directory are read {several(taken)}{left_out}"


def refuse_strays(
    arguments: Sequence[str],
    samples: Sequence[str],
    sources: Sequence[Source],
) -> None:
    """Raise UsageError for a FASTA sample that is likely to be meant as a file of signatures.

    The sample follows the value of -s directly, and another sample stands before it, or is FASTQ.
    FASTA samples are never refused where all samples stand before the first -s.

    arguments  of the command line, in their order
    samples    those among them that are samples
    """
    layouts = {source.layout for source in sources}
    by_path = {file.path: file for source in sources for file in source.files}
    for path in _after_signatures(arguments):
        source = by_path.get(path)
        if source is None or source.layout != "fasta" or path not in samples:
            continue
        if path != samples[0] or "fastq" in layouts:
            raise UsageError(
                f"{path} follows the value of -s, but would be scanned as a sample: repeat -s"
                f" for each file of signatures (-s FILE -s {path}), or put all SAMPLES before"
                " the first -s"
            )


def _after_signatures(arguments: Sequence[str]) -> list[str]:
    """Return the arguments that directly follow the value of -s."""
    after = []
    for at, argument in enumerate(arguments):
        width = 2 if argument in SIGNATURE_OPTIONS else 1
        if width == 2 or argument.startswith(JOINED):
            after += [each for each in arguments[at + width : at + width + 1] if each[:1] != "-"]
    return after
