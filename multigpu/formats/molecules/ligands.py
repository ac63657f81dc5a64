"""Ligand files to records of one molecule each.

A library of any size is cut as fast as it is read; records are parsed where they are docked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.molecules.fields import last_end
from multigpu.formats.molecules.registry import FORMATS, POSE_FORMATS, SUFFIXES, format_of_content
from multigpu.formats.molecules.smiles import NO_PLACES, SMILES
from multigpu.formats.storage.input_paths import suffix_of
from multigpu.formats.storage.sources import (
    BYTE_ORDER_MARK,
    FileKind,
    Source,
    inspect_source,
    refuse_utf_16,
)
from multigpu.formats.tables.texts import Texts

READ_BYTES = 4 << 20
MOST_BYTES = 64 << 20  # of a record: many times what the largest molecules have


@dataclass(frozen=True, kw_only=True, eq=False)
class LigandRecords:
    """Consecutive records of a source, one molecule each.

    source   index of the source
    layout   format of the records
    number   of the first record in its source, from 1
    lengths  int64[n], bytes
    text     of all of them
    error    what is wrong with the source from the first record on, which then is the only one
    """

    source: int
    layout: str
    number: int
    lengths: NDArray[np.int64]
    text: bytes
    error: str = ""

    @classmethod
    def broken(cls, source: int, number: int, error: str) -> "LigandRecords":
        """Return a record that says what is wrong with its source."""
        none = np.zeros(1, np.int64)
        return cls(source=source, layout="", number=number, lengths=none, text=b"", error=error)

    @property
    def last(self) -> int:
        """Number of the last record in its source."""
        return self.number + len(self.lengths) - 1

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """int64[n]: offset of the end of each record in the text."""
        return np.cumsum(self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, span: slice) -> "LigandRecords":
        """Return consecutive records, with a text of their own."""
        first, last, _ = span.indices(len(self))
        begin, end = (int(self.ends[at - 1]) if at else 0 for at in (first, last))
        return replace(
            self,
            number=self.number + first,
            lengths=self.lengths[first:last],
            text=self.text[begin:end],
        )

    @property
    def texts(self) -> Texts:
        """Text of each record."""
        return Texts.one_after_the_other(np.frombuffer(self.text, np.uint8), self.lengths)


def _layout(path: str, start: bytes) -> str:
    if (layout := _layout_of_any(path, start)) == SMILES.name:
        raise InputError(path, NO_PLACES)
    return layout


def _layout_of_any(path: str, start: bytes) -> str:
    refuse_utf_16(path, start)
    if suffix := suffix_of(Path(path).name, MOLECULES):
        return SMILES.name if suffix in SMILES.suffixes else SUFFIXES[suffix].name
    return format_of_content(start)


KNOWN = ", ".join(each.name.upper() for each in POSE_FORMATS)
LIGANDS = FileKind("ligand", tuple(SUFFIXES), _layout, f"no ligands by name or content ({KNOWN})")
# With those whose coordinates are made.
MOLECULES = replace(LIGANDS, suffixes=(*SUFFIXES, *SMILES.suffixes), layout=_layout_of_any)


def open_sources(
    paths: Sequence[str], skip: bool, kind: FileKind = LIGANDS
) -> tuple[list[Source], list[LigandRecords]]:
    """Return what is known of each file, and a broken record for each that is skipped.

    skip  whether files that are no ligands are skipped, unless none is left; else InputError
    kind  LIGANDS or MOLECULES
    """
    sources: list[Source] = []
    bad: list[LigandRecords] = []
    for number, path in enumerate(paths):
        try:
            sources.append(inspect_source(path, kind))
        except InputError as error:
            if not skip or len(bad) == len(paths) - 1:
                raise
            sources.append(Source(path, None, "none", ""))
            bad.append(LigandRecords.broken(number, 1, _without_path(error)))
    return sources, bad


def _without_path(error: InputError) -> str:
    return f"{error.where}: {error.problem}" if error.where else error.problem


def read_records(number: int, source: Source) -> Iterator[LigandRecords]:
    """Yield a source's records by blocks; the last has the error. number: the source's index."""
    find_ends, left, count = FORMATS[source.layout].find_ends, b"", 0
    try:
        for block, final in _blocks(source):
            text = left + block
            ends = find_ends(text, final)
            size = last_end(ends)
            if ends:
                yield LigandRecords(
                    source=number,
                    layout=source.layout,
                    number=count + 1,
                    lengths=np.diff(ends, prepend=0),
                    text=text[:size],
                )
            count, left = count + len(ends), text[size:]
            if len(left) > MOST_BYTES:  # each block is looked at together with what is left
                problem = f"the molecule has no end in {MOST_BYTES:,} bytes: the rest is not read"
                raise InputError(source.path, problem)
        if not count:
            raise InputError(source.path, "there is no molecule in it")
    except InputError as error:
        yield LigandRecords.broken(number, count + 1, _without_path(error))


def _blocks(source: Source) -> Iterator[tuple[bytes, bool]]:
    """Yield the content in blocks, and whether it ends there: the last one is empty.

    A byte order mark is left out.
    """
    mark = BYTE_ORDER_MARK
    for block in source.blocks(READ_BYTES):
        yield block.tobytes().removeprefix(mark), False
        mark = b""
    yield b"", True
