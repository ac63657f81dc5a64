"""Pairs of reads: two files in step, or one in which mates take turns; which files are pairs.

Whatever follows sees one source, whose records 2i and 2i + 1 are mates.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from multigpu.errors import InputError, UsageError, option
from multigpu.formats.sequences.file_records import FileRecords, Table, place_of, title_at
from multigpu.formats.sequences.spans import BlockSpan
from multigpu.formats.storage.sources import Block, Source, new_memory
from multigpu.kernels.compiled.text.records import COLUMNS, NAME, find_other_name

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


# ---- both mates of each read --------------------------------------------------------------------


def paired_spans(
    number: int, source: PairedSource, blocks: Sequence[Iterator[BlockSpan]]
) -> Iterator[BlockSpan]:
    """Yield blocks of whole pairs from the blocks of each file; the last may have an error."""
    files = [FileRecords(each) for each in blocks]
    each = 2 // len(files)  # records of a file in a pair
    for block in itertools.count():
        count = min(file.fill(each) // each for file in files)
        raw, table, error = take_pairs(source, files, count)
        error = error or (None if count else error_at_end(source, files))
        if count or error:
            yield BlockSpan(number, block, raw, table, error)
        if error or not count:
            return


def take_pairs(
    source: PairedSource,
    files: Sequence[FileRecords],
    count: int,
    allocate: Callable[[int], Block] = new_memory,
) -> tuple[Block, Table, InputError | None]:
    """Return the text and the table of `count` pairs, up to the first that are no mates.

    allocate  makes memory for the text
    """
    texts, origins, size = [], [], 0
    turns = np.empty((2 * count // len(files), len(files), COLUMNS), np.int64)  # mates take turns
    for number, file in enumerate(files):
        text, _, begin = file.take(len(turns), size, turns[:, number])
        texts.append(text)
        origins.append(begin - size)
        size += len(text)
    raw, table = np.concatenate(texts, out=allocate(size)), turns.reshape(-1, COLUMNS)
    at = 2 * int(find_other_name(raw, table[::2], raw, table[1::2], True))
    strays = table[at : at + 2, NAME].tolist()
    return raw, table[:at], _stray_error(source, raw, strays, origins) if strays else None


def _stray_error(
    source: PairedSource, raw: Block, names: Sequence[int], origins: Sequence[int]
) -> InputError:
    """Return the error for two records that are no mates, by the positions of their names.

    origins  of each file, what is to be added to these to have positions in the file
    """
    (name, number), (other, second) = (split_title(title_at(raw, each)) for each in names)
    why = "their names differ"
    if name == other:
        why = f"their numbers are {number or 'missing'} and {second or 'missing'}, not 1 and 2"
    one, two = source.files[0].path, source.files[-1].path
    problem = f"is no mate of {place_of(raw, names[0], origins[0])} of {one}: {why}"
    return InputError(two, problem, place_of(raw, names[1], origins[-1]))


def error_at_end(source: PairedSource, files: Sequence[FileRecords]) -> InputError | None:
    """Return the error where a file ends or is wrong after the pairs and the other is not."""
    each = 2 // len(files)
    ended = [file for file in files if file.fill(each) < each]
    if error := next((file.error for file in ended if file.error), None):
        return error
    for which, file in enumerate(files):
        if ended and len(file.table):
            why = "the number of records is odd"
            if len(files) == 2:
                why = f"{source.files[1 - which].path} has fewer records"
            return InputError(source.files[which].path, f"has no mate: {why}", file.place())
    return None
