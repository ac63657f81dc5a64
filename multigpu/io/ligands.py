"""Ligand files to records, one molecule each: SDF, MOL2, PDB, PDBQT and XYZ.

Where a record ends is told without parsing it, so a library of any size is cut as fast as it is
read; `molecules` parses the records where they are docked.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.io.sources import Kind, Source, blocks, inspect, read_into, suffix_of
from multigpu.io.texts import Texts, are_several

READ_BYTES = 4 << 20
MOST_DIGITS = 9  # of a number of atoms
FEW_BYTES = 4 << 10  # of a record

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


@dataclass(frozen=True, eq=False)
class Records:
    """Consecutive records of a source, one molecule each.

    source   index of the source
    number   of the first record in its source, from 1
    lengths  int64[n], bytes
    text     of all of them; None where whoever docks them reads it in the file
    at       where it stands in the file
    error    what is wrong with the source from the first record on, which then is the only one

    Raises ValueError where the lengths are not those of the text.
    """

    source: int
    number: int
    lengths: NDArray[np.int64]
    text: bytes | memoryview | None
    at: int = 0
    error: str = ""

    def __post_init__(self) -> None:
        other = self.text is not None and len(self.text) != self.size
        if other or self.lengths.min(initial=0) < 0:
            raise ValueError(f"records of {self.size} bytes in a text of another length")

    @property
    def last(self) -> int:
        """Number of the last one."""
        return self.number + len(self.lengths) - 1

    @property
    def size(self) -> int:
        """Bytes of them all."""
        return int(self.lengths.sum())

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """int64[n]: bytes up to the end of each."""
        return np.cumsum(self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, span: slice) -> "Records":
        """Consecutive ones, with text of their own."""
        first, last, _ = span.indices(len(self))
        begin, end = (int(self.ends[at - 1]) if at else 0 for at in (first, last))
        text = None if self.text is None else bytes(memoryview(self.text)[begin:end])
        lengths = self.lengths[first:last]
        return Records(self.source, self.number + first, lengths, text, self.at + begin, self.error)

    def texts(self, sources: Sequence[Source]) -> Texts:
        """Each of them. Raises InputError where the file cannot be read."""
        if self.text is not None:
            return Texts.one_after_the_other(np.frombuffer(self.text, np.uint8), self.lengths)
        path, room = sources[self.source].path, np.empty(self.size, np.uint8)
        if read_into(path, self.at, room) < len(room):
            raise InputError(path, "was cut while it was read")
        return Texts.one_after_the_other(room, self.lengths)


def broken(source: int, number: int, error: str) -> Records:
    """A record that says what is wrong with its source."""
    return Records(source, number, np.zeros(1, np.int64), b"", error=error)


def _layout(path: str, start: bytes) -> str:
    if layout := SUFFIXES.get(suffix_of(Path(path).name, LIGANDS)):
        return layout
    return next((layout for layout, sign in SIGNS if sign.search(start)), "")


LIGANDS = Kind(
    "ligand", tuple(SUFFIXES), _layout, "no ligands by name or content (SDF, MOL2, PDB, PDBQT, XYZ)"
)


def ligand_sources(paths: Sequence[str], skip: bool) -> tuple[list[Source], list[Records]]:
    """What is known of each file; files that are no ligands, as records, where these are skipped.

    Raises InputError for the first of them otherwise.
    """
    sources: list[Source] = []
    bad: list[Records] = []
    for number, path in enumerate(paths):
        try:
            sources.append(inspect(path, LIGANDS))
        except InputError as error:
            if not skip:
                raise
            sources.append(Source(path, None, "none", ""))
            bad.append(broken(number, 1, _without_path(error)))
    return sources, bad


def _without_path(error: InputError) -> str:
    return f"{error.where}: {error.problem}" if error.where else error.problem


def records(number: int, source: Source, with_text: bool = True) -> Iterator[Records]:
    """The records of a source in order, those of a block together.

    What breaks it off is the last one's `error`. with_text: else whoever docks them can read the
    file, which is plain.
    """
    ends_in, left, count, passed = ENDS[source.layout], b"", 0, 0
    content = blocks(source, READ_BYTES)
    while True:
        try:
            block = next(content, None)
        except InputError as error:
            yield broken(number, count + 1, _without_path(error))
            return
        text = left if block is None else b"".join((left, block.data))
        ends = ends_in(text, block is None)
        if ends:
            lengths = np.array(ends, np.int64) - np.array([0, *ends[:-1]], np.int64)
            held = _first(text, ends[-1]) if with_text else None
            yield Records(number, count + 1, lengths, held, passed)
        count, passed, left = count + len(ends), passed + _last(ends), text[_last(ends) :]
        if block is None:
            if not count:
                yield broken(number, 1, "there is no molecule in it")
            return


def _first(text: bytes, size: int) -> bytes | memoryview:
    """Without a copy."""
    return text if size == len(text) else memoryview(text)[:size]


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
    begins = _lines(text, b"@<TRIPOS>MOLECULE")
    return _with_rest(list(begins[1:]), text, final and bool(text.strip()))


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
    if newline < 0 or not count.isdigit() or len(count) > MOST_DIGITS:
        return 0
    end = newline
    for _ in range(int(count) + 1):
        end = text.find(b"\n", end + 1)
        if end < 0:
            return 0
    return end + 1


def _lines(text: bytes, mark: bytes) -> Sequence[int]:
    """Where the lines begin that begin so."""
    if are_several(len(text) // FEW_BYTES):
        from multigpu.io.plain import marked, words

        begins: list[int] = marked(np.frombuffer(text, np.uint8), words([mark])).tolist()
        return begins
    found = [0] if text.startswith(mark) else []
    at = -1
    while (at := text.find(b"\n" + mark, at + 1)) >= 0:
        found.append(at + 1)
    return found


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
