"""Ligand files to records, one molecule each: SDF, MOL2, PDB, PDBQT and XYZ.

A library of any size is cut as fast as it is read, see `borders`; `molecules` parses the records
where they are docked.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.molecules.borders import ENDS
from multigpu.formats.storage.sources import (
    Kind,
    Source,
    blocks,
    inspect_source,
    read_into,
    suffix_of,
)
from multigpu.formats.tables.texts import Texts

READ_BYTES = 4 << 20
MOST_BYTES = 64 << 20  # of a record: many times what the largest molecules have

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


SMILES = Kind("SMILES", (".smi", ".smiles", ".ism", ".can"), lambda path, start: "", "")
NO_PLACES = (
    "SMILES has no 3D coordinates: make them first, as with `obabel IN.smi -O OUT.sdf --gen3d -h`"
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


@dataclass(frozen=True)
class Border:
    """Where a record begins: whatever comes can be told without what is before it.

    source   index of the source
    at       byte of its content
    before   records of the source before it, and
    first    of the whole input
    """

    source: int = 0
    at: int = 0
    before: int = 0
    first: int = 0


def broken(source: int, number: int, error: str) -> Records:
    """A record that says what is wrong with its source."""
    return Records(source, number, np.zeros(1, np.int64), b"", error=error)


def _layout(path: str, start: bytes) -> str:
    if suffix_of(Path(path).name, SMILES):
        raise InputError(path, NO_PLACES)
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
            sources.append(inspect_source(path, LIGANDS))
        except InputError as error:
            if not skip:
                raise
            sources.append(Source(path, None, "none", ""))
            bad.append(broken(number, 1, _without_path(error)))
    return sources, bad


def _without_path(error: InputError) -> str:
    return f"{error.where}: {error.problem}" if error.where else error.problem


def records(
    number: int, source: Source, with_text: bool = True, begin: Border = Border()
) -> Iterator[Records]:
    """The records of a source in order, those of a block together.

    What breaks it off is the last one's `error`. with_text: else whoever docks them can read the
    file, which is plain. begin: of the first; what is before it is read where it is compressed.
    """
    ends_in, left = ENDS[source.layout], b""
    count, passed = (begin.before, begin.at) if source.cuttable else (0, 0)
    content = blocks(source, READ_BYTES, begin=passed)
    while True:
        try:
            block = next(content, None)
        except InputError as error:
            yield broken(number, count + 1, _without_path(error))
            return
        text = left if block is None else b"".join((left, block.data))
        ends = ends_in(text, block is None)
        size = ends[-1] if ends else 0
        if ends:
            lengths = np.array(ends, np.int64) - np.array([0, *ends[:-1]], np.int64)
            held = _first(text, size) if with_text else None
            some = Records(number, count + 1, lengths, held, passed)
            if some.last > begin.before:
                yield some if some.number > begin.before else some[begin.before - count :]
        count, passed, left = count + len(ends), passed + size, text[size:]
        if len(left) > MOST_BYTES:  # each block is looked at together with what is left
            problem = f"the molecule has no end in {MOST_BYTES:,} bytes: the rest is not read"
            yield broken(number, count + 1, problem)
            return
        if block is None:
            if not count:
                yield broken(number, 1, "there is no molecule in it")
            return


def _first(text: bytes, size: int) -> bytes | memoryview:
    """Without a copy."""
    return text if size == len(text) else memoryview(text)[:size]
