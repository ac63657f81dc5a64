"""Pairs of reads: two files in step, or one in which mates take turns; which files are pairs.

Whatever follows sees one source, whose records 2i and 2i + 1 are mates.
"""

import re
from collections.abc import Sequence
from typing import Any

from multigpu.errors import InputError, UsageError, option
from multigpu.formats.storage.sources import Source

# The number of the mate in the name of a file, before its suffixes; R makes it certain.
MATE_MARK = re.compile(r"(?:(?:^|[/._])(?=R)|[._])(R?)([12])(?:_\d{3})?(?:\.[A-Za-z][\w-]*)*$")
TITLE = re.compile(rb"[@>]?(\S*?)(?:/([1-9]))?(?:[ \t](?:([1-9]):[NY]:)?.*)?\r?$")
TITLE_BYTES = 64 << 10  # of a file's content, in which its first title is looked for


class PairedSource(Source):
    """Reads with their mates, in one file or two. Its path names all of its files."""

    def __init__(self, *files: Source) -> None:
        """Take the files. Raises InputError where one is FASTQ and the other FASTA."""
        sizes = [file.size for file in files]
        size = None if None in sizes else sum(each or 0 for each in sizes)
        compression = max((file.compression for file in files), key="none".__ne__)
        path, layouts = " and ".join(file.path for file in files), {file.layout for file in files}
        if len(layouts) > 1:
            raise InputError(path, "cannot be a pair: one is FASTQ, the other FASTA")
        super().__init__(path, size, compression, "fasta" if layouts == {"fasta"} else "fastq")
        self._files = files

    def __reduce__(self) -> Any:
        return PairedSource, self._files

    @property
    def files(self) -> tuple[Source, ...]:
        return self._files

    @property
    def is_paired(self) -> bool:
        return True

    @property
    def is_file(self) -> bool:
        return all(file.is_file for file in self._files)

    @property
    def is_stored(self) -> bool:
        return all(file.is_stored for file in self._files)

    @property
    def has_ranges(self) -> bool:
        are_two = len(self._files) == 2  # mates in turns are found by all that is before them
        return are_two and self.layout == "fastq" and all(file.cuttable for file in self._files)

    def with_absolute_path(self) -> Source:
        return PairedSource(*(file.with_absolute_path() for file in self._files))


# ---- which files are pairs ----------------------------------------------------------------------


def pair_files(
    given: Sequence[str | Source], opened: Sequence[Source | None], pairing: str
) -> tuple[list[Source], list[str]]:
    """Return the sources with mates paired, and notes on what was paired by the names of files.

    given    paths, or sources that have none
    opened   the same, in the same order; None for one without content, which is left out
    pairing  "auto": by the names of files; "files": two by two; "interleaved": mates take turns in
             each file; "none": no pairs

    Raises UsageError for an odd number of files, and InputError where only one of two has content.
    """
    if pairing == "interleaved":
        return [PairedSource(source) for source in opened if source], []
    second, notes = {}, list[str]()
    if pairing == "files":
        if len(given) % 2:
            files = f"{len(given):,} file" + "s" * (len(given) > 1)
            raise UsageError(f"{option('pairs')} files takes files two by two; got {files}")
        second = {number: number + 1 for number in range(0, len(given), 2)}
    elif pairing == "auto":
        second, notes = _mates_by_name(given, opened)
    found: list[Source] = []
    for number in sorted(set(range(len(given))).difference(second.values())):
        group = [number, second[number]] if number in second else [number]
        sources = [source for source in (opened[each] for each in group) if source]
        if len(sources) == 1 < len(group):
            empty = next(given[each] for each in group if not opened[each])
            raise InputError(str(empty), f"is empty, and its mate {sources[0].path} is not")
        found += [PairedSource(*sources)] if len(sources) > 1 else sources
    return found, notes


def _mates_by_name(
    given: Sequence[str | Source], opened: Sequence[Source | None]
) -> tuple[dict[int, int], list[str]]:
    """Return the numbers of second mates by those of first ones, and notes on these files.

    Mates are FASTQ files whose names differ in 1 and 2 alone. Where no R stands before that, as in
    lib_1.fq and lib_2.fq, they also have to begin with mates.
    """
    alike: dict[str, list[tuple[str, int]]] = {}
    for number, (path, source) in enumerate(zip(given, opened, strict=True)):
        mark = MATE_MARK.search(path) if isinstance(path, str) else None
        if mark and (source is None or source.layout == "fastq"):
            name = f"{mark.string[: mark.start(2)]}?{mark.string[mark.end(2) :]}"
            alike.setdefault(name, []).append((mark[1] + mark[2], number))
    second: dict[int, int] = {}
    notes: dict[bool, list[str]] = {True: [], False: []}
    for names in alike.values():
        (one, first), (two, mate) = min(names), max(names)
        if len(names) == 2 and one[-1] + two[-1] == "12":
            are_mates = one != "1" or _begin_as_mates(opened[first], opened[mate])
            second |= {first: mate} if are_mates else {}
            notes[are_mates].append(f"{given[first]} and {given[mate]}")
    begin = {True: "read as pairs", False: "first records are no mates, so not read as pairs"}
    end = f"; {option('pairs')} none reads each file alone"
    return second, [
        f"{begin[are]}: {', '.join(files[:3])}{', …' * (len(files) > 3)}{end * are}"
        for are, files in notes.items()
        if files
    ]


def _begin_as_mates(one: Source | None, two: Source | None) -> bool:
    """Whether the first records of two files are mates, by number or by name."""
    if not (one and two and one.is_file and two.is_file):
        return bool(one and two)
    (name, number), (other, mate) = map(_first_title, (one, two))
    return (number, mate) == (1, 2) or (name == other and number in (0, 1) and mate != 1)


def _first_title(source: Source) -> tuple[bytes, int]:
    raw = next(source.blocks(TITLE_BYTES)).tobytes().lstrip()
    return split_title(raw.partition(b"\n")[0])


def split_title(line: bytes) -> tuple[bytes, int]:
    """Return the name in the title of a record, which mates share, and their number; 0: none."""
    found = TITLE.match(line)
    assert found is not None
    return found[1], int(found[2] or found[3] or 0)
