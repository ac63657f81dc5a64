"""GC content of regions, from the sequences of their chromosomes in FASTA."""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, option, printable_name, quoted, several
from multigpu.formats.alignments.files import without_chr
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage.sources import open_content
from multigpu.kernels.compiled.text import base_counts

BLOCK = 4 << 20  # bytes read at a time
BLANKS = b" \t\r\v\f"
OTHER = "is it of another genome?"

Counts = NDArray[np.int64]


def gc_content(path: str, regions: Regions, rename: bool) -> NDArray[np.float64]:
    """Return float64[regions]: the share of G and C among A, C, G and T; NaN where there is none.

    The file is read once, until all regions are known.

    rename  names of chromosomes that differ by `chr` are the same

    Raises InputError for what is no FASTA, and where a region is not in its sequences.
    """
    key = without_chr if rename else str
    blocks = {key(regions.names[regions.chrom[rows.start]]): rows for rows in regions.blocks}
    found, seen = np.full(len(regions), np.nan), list[str]()
    with open_content(path) as file:
        fasta = _Fasta(path, file)
        for name in fasta.names():
            seen.append(name)
            rows = blocks.pop(key(name), slice(0, 0))
            start, end = regions.start[rows], regions.end[rows]
            places = np.unique(np.concatenate([start, end]))
            before, length = fasta.count(places)
            if len(places) and length < places[-1]:
                place = regions.shown(rows.start + int(np.argmax(end > length)))
                problem = f"has {length:,} bases of {printable_name(name)}, not all of {place}"
                raise InputError(path, f"{problem}: {OTHER}")
            first, last = (before[np.searchsorted(places, each)] for each in (start, end))
            with np.errstate(invalid="ignore"):
                found[rows] = np.divide(*(last - first).T)
            if not blocks:
                return found
    rows = next(iter(blocks.values()))
    name = regions.names[regions.chrom[rows.start]]
    helps = OTHER
    if without_chr(name) in map(without_chr, seen):
        helps = f"{option('rename')} auto takes names as the same that differ by `chr`"
    problem = f"has no {printable_name(name)} (it has {several(seen)}), where"
    raise InputError(path, f"{problem} {regions.shown(rows.start)} is: {helps}")


class _Fasta:
    """Sequences of a file, one after the other; of each the name, and then its bases."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._raw, self._at = b"", 0

    def _has_more(self) -> bool:
        """Return whether more bytes could be added to those that are left."""
        block = self._file.read(BLOCK)
        self._raw, self._at = self._raw[self._at :] + block, 0
        return len(block) > 0

    def names(self) -> Iterator[str]:
        """Yield the names; the bases of each must be counted before the next one."""
        while self._at < len(self._raw) or self._has_more():
            while (end := self._raw.find(b"\n", self._at)) < 0 and self._has_more():
                pass
            line = self._raw[self._at : end if end >= 0 else len(self._raw)]
            self._at += len(line)
            if line.startswith(b">"):
                yield (line[1:].split() or [b""])[0].decode("utf-8", "replace")
            elif line.strip():
                raise InputError(self._path, f"is no FASTA: begins with {quoted(line)}")
            else:
                self._at += 1

    def count(self, places: Counts) -> tuple[Counts, int]:
        """Return how many G and C, and A, C, G and T, are before each place, and all bases.

        places  int64[p] ascending
        returns int64[p, 2]
        """
        state, found = np.array([0, 0, 0, 0, 0]), np.zeros((len(places), 2), np.int64)
        has_more = True
        while True:
            stop = len(self._raw)
            while has_more and stop > self._at and self._raw[stop - 1] in BLANKS:
                stop -= 1  # a line may end after it
            raw = np.frombuffer(self._raw, np.uint8)[:stop]
            self._at = base_counts.count(raw, self._at, state, places, found)
            if self._at < stop or not has_more:
                return found, int(state[base_counts.POSITION])
            has_more = self._has_more()
