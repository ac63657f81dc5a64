"""Ligand files to records, one molecule each: SDF, MOL2, PDB, PDBQT and XYZ.

Where a record ends is told without parsing it, so a library of any size is cut as fast as it is
read; `molecules` parses the records where they are docked.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.io.sources import Kind, Source, blocks, inspect, read_into, suffix_of

READ_BYTES = 4 << 20

SUFFIXES = {
    ".sdf": "sdf",
    ".sd": "sdf",
    ".mol": "sdf",
    ".mol2": "mol2",
    ".pdb": "pdb",
    ".ent": "pdb",
    ".pdbqt": "pdbqt",
    ".xyz": "xyz",
}
SIGNS = (  # of the content, where the name tells nothing
    ("mol2", re.compile(rb"^@<TRIPOS>", re.MULTILINE)),
    ("sdf", re.compile(rb"V[23]000\s*$", re.MULTILINE)),
    ("pdbqt", re.compile(rb"^(ROOT|TORSDOF)\b", re.MULTILINE)),
    ("pdb", re.compile(rb"^(ATOM  |HETATM)", re.MULTILINE)),
    ("xyz", re.compile(rb"\A\s*\d+\s*\n")),
)


@dataclass(frozen=True)
class Record:
    """The text of one molecule, or what is wrong with the file from here on.

    source    index of the source
    number    of the record in its source, from 1
    """

    source: int
    number: int
    text: bytes
    error: str = ""

    # As `RecordsInFile`, of one:

    @property
    def last(self) -> int:
        return self.number

    @property
    def size(self) -> int:
        return len(self.text)

    def __len__(self) -> int:
        return 1

    def fitting(self, size: int) -> int:
        return int(self.size <= size)

    def split(self, _count: int) -> "tuple[Record, None]":
        return self, None


@dataclass(frozen=True, eq=False)
class RecordsInFile:
    """Consecutive records of a plain file, without their text.

    number   of the first one
    at       where it stands in the file
    lengths  int64[n], bytes
    """

    source: int
    number: int
    at: int
    lengths: NDArray[np.int64]

    @property
    def last(self) -> int:
        """Number of the last one."""
        return self.number + len(self.lengths) - 1

    @property
    def size(self) -> int:
        """Bytes of them all."""
        return int(self.lengths.sum())

    def __len__(self) -> int:
        return len(self.lengths)

    def fitting(self, size: int) -> int:
        """How many of the first ones have no more than `size` bytes together."""
        return int(np.searchsorted(np.cumsum(self.lengths), size, "right"))

    def split(self, count: int) -> "tuple[RecordsInFile, RecordsInFile | None]":
        """The first `count` of them, and the others, if there are any."""
        if count >= len(self):
            return self, None
        first = replace(self, lengths=self.lengths[:count])
        number, at = self.number + count, self.at + first.size
        return first, replace(self, number=number, at=at, lengths=self.lengths[count:])

    def records(self, sources: Sequence[Source]) -> Iterator[Record]:
        """They themselves. Raises InputError where the file cannot be read."""
        path, room = sources[self.source].path, np.empty(self.size, np.uint8)
        if read_into(path, self.at, room) < len(room):
            raise InputError(path, "was cut while it was read")
        text, begin = room.tobytes(), 0
        for number, length in enumerate(self.lengths.tolist(), self.number):
            yield Record(self.source, number, text[begin : begin + length])
            begin += length


def with_text(
    records: Iterable[Record | RecordsInFile], sources: Sequence[Source]
) -> Iterator[Record]:
    """All of them as records."""
    for each in records:
        if isinstance(each, RecordsInFile):
            yield from each.records(sources)
        else:
            yield each


def _layout(path: str, start: bytes) -> str:
    if layout := SUFFIXES.get(suffix_of(Path(path).name, LIGANDS)):
        return layout
    return next((layout for layout, sign in SIGNS if sign.search(start)), "")


LIGANDS = Kind(
    "ligand", tuple(SUFFIXES), _layout, "no ligands by name or content (SDF, MOL2, PDB, PDBQT, XYZ)"
)


def ligand_sources(paths: Sequence[str], skip: bool) -> tuple[list[Source], list[Record]]:
    """What is known of each file; files that are no ligands, as records, where these are skipped.

    Raises InputError for the first of them otherwise.
    """
    sources: list[Source] = []
    bad: list[Record] = []
    for number, path in enumerate(paths):
        try:
            sources.append(inspect(path, LIGANDS))
        except InputError as error:
            if not skip:
                raise
            sources.append(Source(path, None, "none", ""))
            bad.append(Record(number, 1, b"", _without_path(error)))
    return sources, bad


def _without_path(error: InputError) -> str:
    return f"{error.where}: {error.problem}" if error.where else error.problem


def records(number: int, source: Source) -> Iterator[Record]:
    """The records of a source in order. What breaks it off is the last one's `error`."""
    for found in _found(number, source):
        if isinstance(found, Record):
            yield found
            continue
        places = pairwise([0, *found.ends])
        for count, (begin, end) in enumerate(places, found.before + 1):
            yield Record(number, count, found.text[begin:end])


def without_text(number: int, source: Source) -> Iterator[Record | RecordsInFile]:
    """The records of a file that whoever docks them can read there."""
    for found in _found(number, source):
        if isinstance(found, Record):
            yield found
        elif found.ends:
            lengths = np.diff(found.ends, prepend=0).astype(np.int64)
            yield RecordsInFile(number, found.before + 1, found.passed, lengths)


class _Found(NamedTuple):
    """Text that begins with a record, where those in it end, records and bytes before it."""

    text: bytes
    ends: list[int]
    before: int
    passed: int


def _found(number: int, source: Source) -> Iterator[_Found | Record]:
    """The records of each block of a source; a record alone says what is wrong."""
    ends_in, left, count, passed = ENDS[source.layout], b"", 0, 0
    content = blocks(source, READ_BYTES)
    while True:
        try:
            block = next(content, None)
        except InputError as error:
            yield Record(number, count + 1, b"", _without_path(error))
            return
        text = left if block is None else left + block.tobytes()
        ends = ends_in(text, block is None)
        yield _Found(text, ends, count, passed)
        count, passed, left = count + len(ends), passed + _last(ends), text[_last(ends) :]
        if block is None:
            if not count:
                yield Record(number, 1, b"", "there is no molecule in it")
            return


# ---- where records end ------------------------------------------------------------------------

# Each takes text that begins with a record and gives the ends of those in it, in order. Without
# `final` the last one is left out where more of it may come.

ATOM = re.compile(rb"^(ATOM  |HETATM)", re.MULTILINE)


def sdf_ends(text: bytes, final: bool) -> list[int]:
    """Behind every line of $$$$; a .mol file needs none."""
    ends = _ends_of_lines(text, b"$$$$")
    return _with_rest(ends, text, final and bool(text[_last(ends) :].strip()))


def mol2_ends(text: bytes, final: bool) -> list[int]:
    """Before every @<TRIPOS>MOLECULE but the first."""
    begins = list(_lines(text, b"@<TRIPOS>MOLECULE"))
    return _with_rest(begins[1:], text, final and bool(text.strip()))


def pdb_ends(text: bytes, final: bool) -> list[int]:
    """Behind every ENDMDL. A file without models is one record; what has no atoms is none."""
    ends = _ends_of_lines(text, b"ENDMDL")
    return _with_rest(ends, text, final and bool(ATOM.search(text, _last(ends))))


def xyz_ends(text: bytes, final: bool) -> list[int]:
    """Behind as many lines as the first one says, and two."""
    ends: list[int] = []
    begin = 0
    while (end := _xyz_end(text, begin)) > 0:
        ends.append(end)
        begin = end
    return _with_rest(ends, text, final and bool(text[begin:].strip()))


def _xyz_end(text: bytes, begin: int) -> int:
    """Of the record at `begin`; 0 where its lines are not all there, or do not begin as they do."""
    newline = text.find(b"\n", begin)
    count = text[begin:newline].strip()
    if newline < 0 or not count.isdigit():
        return 0
    end = newline
    for _ in range(int(count) + 1):
        end = text.find(b"\n", end + 1)
        if end < 0:
            return 0
    return end + 1


def _lines(text: bytes, mark: bytes) -> Iterator[int]:
    """Where the lines begin that begin so. `find` is far faster than a regular expression."""
    if text.startswith(mark):
        yield 0
    at = -1
    while (at := text.find(b"\n" + mark, at + 1)) >= 0:
        yield at + 1


def _ends_of_lines(text: bytes, mark: bytes) -> list[int]:
    """Behind the lines that begin so, as far as they are all there."""
    newlines = [text.find(b"\n", begin) for begin in _lines(text, mark)]
    return [newline + 1 for newline in newlines if newline >= 0]


def _last(ends: Sequence[int]) -> int:
    return ends[-1] if ends else 0


def _with_rest(ends: list[int], text: bytes, is_record: bool) -> list[int]:
    return [*ends, len(text)] if is_record and _last(ends) < len(text) else ends


ENDS: dict[str, Callable[[bytes, bool], list[int]]] = {
    "sdf": sdf_ends,
    "mol2": mol2_ends,
    "pdb": pdb_ends,
    "pdbqt": pdb_ends,
    "xyz": xyz_ends,
}
