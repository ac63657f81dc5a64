"""Indexes of VCF files in BGZF: where the records of a place begin in the file.

TBI, and CSI where a chromosome is longer than that can tell, both as their specifications have them
(samtools.github.io/hts-specs). htslib makes them from the file; here the places are known, and all
records are gone about at once.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.io.bgzf import BLOCK_DATA

TBI, CSI = b"TBI\x01", b"CSI\x01"
LARGEST_TBI = 1 << 29  # bases
WINDOW_BITS = 14  # log2 of the bases of the smallest bin, and of a window of the linear index
LEVELS = 5  # of bins below the one of all; each is cut in eight
VCF_COLUMNS = struct.pack("<6i", 2, 1, 2, 0, ord("#"), 0)  # layout, name, begin, end, meta, skipped
CHUNK_WORDS = 4  # of 32 bits: begin and end

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Records:
    """Records of a file in its order, on one chromosome after the other.

    names       of all chromosomes
    chrom       int32[n]  their indices
    begin, end  int64[n]  bases, from 0, half open; `begin` ascends on each chromosome
    """

    names: Sequence[str]
    chrom: NDArray[np.int32]
    begin: Numbers
    end: Numbers


def tabix(text: bytes, blocks: Sequence[bytes], records: Records) -> tuple[str, bytes]:
    """The suffix and the content (not compressed) of the index of a VCF file.

    text    whose last lines are the records
    blocks  in which it is stored, see `bgzf`
    """
    begins, ends = _places(text, blocks, len(records.chrom))
    borders = np.flatnonzero(np.diff(records.chrom, prepend=-1, append=-1))  # of chromosomes
    longest = int(records.end.max(initial=0))
    names = b"".join(
        records.names[number].encode() + b"\0" for number in records.chrom[borders[:-1]]
    )
    about, count = VCF_COLUMNS + struct.pack("<i", len(names)) + names, max(0, len(borders) - 1)
    levels = LEVELS
    while 1 << (WINDOW_BITS + 3 * levels) < longest:
        levels += 1
    csi = longest >= LARGEST_TBI
    if csi:
        head = (
            struct.pack("<iii", WINDOW_BITS, levels, len(about)) + about + struct.pack("<i", count)
        )
    else:
        head = struct.pack("<i", count) + about
    parts = [CSI if csi else TBI, head]
    for first, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        own = slice(first, stop)
        stretch = _Stretch(records.begin[own], records.end[own], begins[own], ends[own], levels)
        parts += stretch.packed(csi)
    return ".csi" if csi else ".tbi", b"".join([*parts, struct.pack("<Q", 0)])


def _places(text: bytes, blocks: Sequence[bytes], count: int) -> tuple[Numbers, Numbers]:
    """Where the last `count` lines begin and end: byte of the block << 16 | byte in its data."""
    newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    borders = newlines[len(newlines) - count - 1 :] + 1
    at = np.cumsum([0, *map(len, blocks)])
    places = (at[borders // BLOCK_DATA] << 16) | borders % BLOCK_DATA
    return places[:-1], places[1:]


@dataclass(frozen=True, eq=False)
class _Stretch:
    """The records of one chromosome: bases, and where they begin and stop in the file."""

    begin: Numbers
    end: Numbers
    at: Numbers
    behind: Numbers
    levels: int

    def packed(self, csi: bool) -> Iterator[bytes]:
        """Its bins with their chunks, and windows of 16 KiB of bases (not in CSI)."""
        bins, first, last = self._runs()
        order = np.argsort(bins, kind="stable")
        numbers, counts = np.unique(bins, return_counts=True)
        chunks = np.stack([self.at[first[order]], self.behind[last[order]]], axis=1)
        # One more bin, which is none: where all of it stands, and how many records there are.
        numbers, counts = np.append(numbers, _first_bin(self.levels + 1) + 1), np.append(counts, 2)
        every = [[self.at[0], self.behind[-1]], [len(self.at), 0]]
        chunks = np.concatenate([chunks, np.array(every, np.int64)])
        heads = [numbers, counts]
        if csi:
            heads[1:1] = [_low(places := self._from(self._begins(numbers))), places >> 32]
        yield struct.pack("<i", len(numbers)) + _interleaved(heads, counts, chunks)
        if not csi:
            windows = np.arange(((int(self.end.max()) - 1) >> WINDOW_BITS) + 1) << WINDOW_BITS
            yield struct.pack("<i", len(windows)) + self._from(windows).astype("<u8").tobytes()

    def _runs(self) -> tuple[Numbers, Numbers, Numbers]:
        """Records of one bin that follow each other: the bin, the first and the last of them."""
        bins = np.zeros(len(self.begin), np.int64)
        for level in range(1, self.levels + 1):
            bits = self._bits(level)
            within = self.begin >> bits == (self.end - 1) >> bits
            bins = np.where(within, _first_bin(level) + (self.begin >> bits), bins)
        first = np.flatnonzero(np.diff(bins, prepend=-1))
        return bins[first], first, np.append(first[1:], len(bins)) - 1

    def _bits(self, level: int) -> int:
        return WINDOW_BITS + 3 * (self.levels - level)

    def _begins(self, bins: Numbers) -> Numbers:
        """The first base of each bin; of what is none, the first of all."""
        firsts = np.array([_first_bin(level) for level in range(self.levels + 2)])
        level = np.searchsorted(firsts, bins, "right") - 1
        begins: Numbers = (bins - firsts[level]) << np.maximum(self._bits(0) - 3 * level, 0)
        return np.where(level > self.levels, 0, begins)

    def _from(self, bases: Numbers) -> Numbers:
        """Where the first record begins that reaches beyond each of these bases; 0: none does."""
        found = np.searchsorted(np.maximum.accumulate(self.end), bases, "right")
        return np.append(self.at, 0)[found]


def _first_bin(level: int) -> int:
    """The number of the first bin of a level."""
    return ((1 << 3 * level) - 1) // 7


def _low(places: Numbers) -> Numbers:
    return places & 0xFFFFFFFF


def _interleaved(heads: Sequence[Numbers], counts: Numbers, chunks: Numbers) -> bytes:
    """Every bin's head, numbers of 32 bits, and its chunks."""
    lengths = len(heads) + CHUNK_WORDS * counts
    begins = np.cumsum(lengths) - lengths
    words = np.empty(int(lengths.sum()), "<u4")
    for offset, numbers in enumerate(heads):
        words[begins + offset] = numbers
    before = np.cumsum(counts) - counts
    at = np.repeat(begins + len(heads) - CHUNK_WORDS * before, counts)
    at += CHUNK_WORDS * np.arange(len(chunks))
    words[at[:, None] + np.arange(CHUNK_WORDS)] = chunks.astype("<u8").view("<u4")
    return words.tobytes()
