"""GC content of regions, from the sequences of their chromosomes in FASTA."""

from collections.abc import Iterator, Mapping
from io import BufferedReader
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.alignments.files import without_chr
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.sequences.indexed_fasta import check_sequences
from multigpu.formats.storage.sources import open_content

BLOCK = 4 << 20  # bytes read at a time, with the rest of the last line
BLANKS = (b"\n", b"\r", b" ", b"\t")
UPPER = 0xDF  # clears the bit by which small letters differ

Places = NDArray[np.int64]


def gc_content(
    path: str, regions: Regions, rename: bool, lengths: Mapping[str, int]
) -> NDArray[np.float64]:
    """Return float64[regions]: the share of G and C among A, C, G and T; NaN where there is none.

    The file is read once, until all regions are known.

    rename   names of chromosomes that differ by `chr` are the same
    lengths  of chromosomes in bases, by name, where they are known

    Raises InputError for what is no FASTA, and where the regions are of other sequences.
    """
    key = without_chr if rename else str
    blocks = regions.by_name(key)
    found, seen = np.full(len(regions), np.nan), dict[str, int]()
    with open_content(path) as file:
        for name, pieces in groupby(_pieces(path, file), itemgetter(0)):
            if (rows := blocks.pop(key(name), None)) is None:
                seen.setdefault(name, 0)
                continue
            start, end = regions.start[rows], regions.end[rows]
            places = np.unique(np.concatenate([start, end]))
            before, length = _counts_before(places, (lines for _, lines in pieces))
            seen[regions.names[regions.chrom[rows.start]]] = length
            first, last = (before[:, np.searchsorted(places, each)] for each in (start, end))
            of_gc, others = last - first
            with np.errstate(invalid="ignore"):
                found[rows] = of_gc / (of_gc + others)
            if not blocks:
                break
    if not seen:
        raise InputError(path, "is empty")
    check_sequences(path, seen, regions, lengths, rename)
    return found


def _pieces(path: str, file: BufferedReader) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each sequence with nothing, and then with its lines."""
    name = None
    while block := file.read(BLOCK) + file.readline():
        at = 0
        while at < len(block):
            is_header = block.startswith(b">", at)
            end = block.find(b"\n" if is_header else b">", at)
            end = end if end >= 0 else len(block)
            text, at = block[at:end], end
            if is_header:
                name = (text[1:].split() or [b""])[0].decode("utf-8", "replace")
                yield name, b""
            elif name is not None:
                yield name, text
            elif text.strip():
                raise InputError(path, f"is no FASTA: begins with {quoted(text.strip())}")


def _counts_before(places: Places, pieces: Iterator[bytes]) -> tuple[NDArray[np.int64], int]:
    """Return how many G and C, and A and T, are before each place, and the number of letters.

    places  int64[p] ascending
    returns int64[2, p]
    """
    found, sums, position = np.zeros((2, len(places)), np.int64), np.zeros((2, 1), np.int64), 0
    for piece in pieces:
        for blank in BLANKS:
            piece = piece.replace(blank, b"")
        letters = np.frombuffer(piece, np.uint8) & UPPER
        here = slice(*np.searchsorted(places, [position, position + len(letters)], "right"))
        borders = np.append(0, places[here] - position)
        borders = borders[borders < len(letters)]
        if len(borders):
            kinds = ((letters == ord(x)) | (letters == ord(y)) for x, y in ("GC", "AT"))
            # Sums of 64 bits would take four times as long.
            parts = [np.add.reduceat(each, borders, dtype=np.uint32) for each in kinds]
            reached = sums + np.cumsum(parts, axis=1, dtype=np.int64)
            found[:, here] = reached[:, : here.stop - here.start]
            position, sums = position + len(letters), reached[:, -1:]
    return found, position
