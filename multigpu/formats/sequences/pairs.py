"""Pairs of reads: two files in step, or one in which mates take turns; which files are pairs.

Whatever follows sees one source, whose records 2i and 2i + 1 are mates.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, UsageError, option, quoted
from multigpu.formats.storage.read_ahead import ReadAhead
from multigpu.formats.storage.sources import Content, Source, new_memory
from multigpu.kernels.compiled.text.mates import find_stray
from multigpu.kernels.compiled.text.records import BASES, NAME, NAME_END, QUALITY

Table = NDArray[np.int64]

# The number of the mate in the name of a file, before its suffixes; R makes it certain.
MATE_MARK = re.compile(r"(?:((?:^|[/._])R)|[._])([12])(?:_\d{3})?(?:\.[A-Za-z][\w-]*)*$")
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
    def cuttable(self) -> bool:
        are_two = len(self._files) == 2  # mates in turns are found by all that is before them
        return are_two and self.layout == "fastq" and all(file.cuttable for file in self._files)

    def with_absolute_path(self) -> Source:
        return PairedSource(*(file.with_absolute_path() for file in self._files))

    def contents(self, size: int, ahead: bool) -> list[Content]:
        """Return the content of each file, read by a thread of its own; to be closed.

        size   bytes of all files in a block of each
        ahead  whether much is read before it is taken
        """
        size = max(1, size // len(self._files))
        if ahead:
            return [file.stream(size) for file in self._files]
        return [ReadAhead(file.blocks_in(new_memory, size, 0), 1) for file in self._files]


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
    groups: Iterable[tuple[int, ...]] = ((number,) for number in range(len(given)))
    if pairing == "files":
        if len(given) % 2:
            files = f"{len(given):,} file" + "s" * (len(given) > 1)
            raise UsageError(f"{option('pairs')} files takes files two by two; got {files}")
        groups = zip(range(0, len(given), 2), range(1, len(given), 2), strict=True)
    elif pairing == "auto":
        groups = _mates_by_name(given, opened)
    found: list[Source] = []
    paired, strange = [], []
    for group in groups:
        sources = [source for source in (opened[number] for number in group) if source]
        if len(group) == 1 or not sources:
            found += sources
        elif len(sources) == 1:
            empty = next(given[number] for number in group if not opened[number])
            raise InputError(str(empty), f"is empty, and its mate {sources[0].path} is not")
        elif pairing == "auto" and not _begin_as_mates(*sources):
            found += sources
            strange.append(" and ".join(source.path for source in sources))
        else:
            found.append(PairedSource(*sources))
            paired.append(found[-1].path)
    return found, list(_notes(paired, strange)) if pairing == "auto" else []


def _mates_by_name(
    given: Sequence[str | Source], opened: Sequence[Source | None]
) -> list[tuple[int, ...]]:
    """Return the numbers of files that are FASTQ, by two where names differ in 1 and 2 alone."""
    mates: dict[str, list[list[int]]] = {}
    for number, (path, source) in enumerate(zip(given, opened, strict=True)):
        mark = MATE_MARK.search(path) if isinstance(path, str) else None
        if mark and (source is None or source.layout == "fastq"):
            name = f"{mark.string[: mark.start(2)]}?{mark.string[mark.end(2) :]}"
            mates.setdefault(name, [[], []])[int(mark[2]) - 1].append(number)
    pairs = {tuple(ones + twos) for ones, twos in mates.values() if len(ones) == len(twos) == 1}
    second = {second: (first, second) for first, second in pairs}
    first = {pair[0]: pair for pair in pairs}
    return [first.get(n, (n,)) for n in range(len(given)) if n not in second]


def _begin_as_mates(one: Source, two: Source) -> bool:
    """Whether two files whose names differ as those of mates are a pair.

    Where a bare 1 and 2 are all that says so, as in lib_1.fq and lib_2.fq, their first records have
    to be mates, by number or by name.
    """
    mark = MATE_MARK.search(one.path)
    if (mark and mark[1]) or not (one.is_file and two.is_file):
        return True
    (name, number), (other, second) = map(_first_title, (one, two))
    return (number, second) == (1, 2) or (name == other and number in (0, 1) and second != 1)


def _first_title(source: Source) -> tuple[bytes, int]:
    raw = next(source.blocks(TITLE_BYTES)).tobytes().lstrip()
    return split_title(raw.partition(b"\n")[0])


def split_title(line: bytes) -> tuple[bytes, int]:
    """Return the name in the title of a record, which mates share, and their number; 0: none."""
    found = TITLE.match(line)
    assert found is not None
    return found[1], int(found[2] or found[3] or 0)


def _notes(paired: Sequence[str], strange: Sequence[str]) -> Iterable[str]:
    if paired:
        count = f"{len(paired):,} pairs of files, by their names" if len(paired) > 1 else "a pair"
        shown = ", ".join(paired[:3]) + ", …" * (len(paired) > 3)
        yield f"read as {count}: {shown}; {option('pairs')} none reads each file alone"
    if strange:
        shown = ", ".join(strange[:3]) + ", …" * (len(strange) > 3)
        yield (
            f"not read as pairs, as their first records are no mates: {shown};"
            f" {option('pairs')} files reads them as pairs"
        )


# ---- mates as rows of one table -----------------------------------------------------------------


def moved(table: Table, by: int) -> Table:
    """Return a table with positions in a text that begins so many bytes earlier."""
    if not by:
        return table
    table = table.copy()
    table[:, [NAME, NAME_END, BASES]] += by
    table[:, QUALITY] += by * (table[:, QUALITY] >= 0)
    return table


def interleave(tables: Sequence[Table]) -> Table:
    """Return the rows of tables, all of equal length, in turns."""
    return np.stack(tables, axis=1).reshape(-1, tables[0].shape[1])


def check_mates(
    source: Source, raw: NDArray[np.uint8], table: Table, origins: Sequence[int]
) -> tuple[Table, InputError | None]:
    """Return the rows before the first that are no mates, and the error for these, if any are.

    table    positions in `raw`, mates in turns
    origins  of each file, what is to be added to these to have positions in the file
    """
    at = int(find_stray(raw, table))
    if at < 0:
        return table, None
    files = [source.files[0], source.files[-1]]
    titles, places = [], []
    for row, origin in zip(table[2 * at : 2 * at + 2], (origins[0], origins[-1]), strict=True):
        titles.append(title_at(raw, int(row[NAME])))
        places.append(_place(titles[-1], int(row[NAME]) + origin))
    (name, number), (other, second) = map(split_title, titles)
    why = "their names differ"
    if name == other:
        why = f"their numbers are {number or 'missing'} and {second or 'missing'}, not 1 and 2"
    mate = f"{places[0]} of {files[0].path}"
    problem = f"is no mate of {mate}: {why}"
    return table[: 2 * at], InputError(files[1].path, problem, places[1])


def lone_error(source: Source, which: int, title: bytes, name: int) -> InputError:
    """Return the error for a record that has no mate, as there are no more records.

    which  number of its file
    name   position of its name in the file
    """
    if len(source.files) == 1:
        problem = "has no mate: the number of records is odd"
    else:
        problem = f"has no mate: {source.files[1 - which].path} has fewer records"
    return InputError(source.files[which].path, problem, _place(title, name))


def title_at(raw: NDArray[np.uint8], name: int) -> bytes:
    """Return the title of a record from its name on."""
    return raw[name : name + 1000].tobytes().partition(b"\n")[0].rstrip()


def _place(title: bytes, name: int) -> str:
    return f"record {quoted(title)} at byte {name - 1}"
