"""Indexes of VCF files in BGZF: where the records of a place begin in the file.

TBI, and CSI where a chromosome is longer than that can tell, both as their specifications have them
(samtools.github.io/hts-specs). htslib makes them from the file; here the places are known, and all
records are gone about at once.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.storage.bgzf import BLOCK_DATA

TBI, CSI = b"TBI\x01", b"CSI\x01"
LARGEST_TBI = 1 << 29  # bases
WINDOW_BITS = 14  # log2 of the bases of the smallest bin, and of a window of the linear index
LEVELS = 5  # of bins below the one of all; each is cut in eight
VCF_COLUMNS = struct.pack("<6i", 2, 1, 2, 0, ord("#"), 0)  # layout, name, begin, end, meta, skipped
CHUNK_WORDS = 4  # of 32 bits: begin and end
MOST_BITS = 40  # of a base, or of the number of a bin

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
    longest = int(records.end.max(initial=0))
    csi, levels = longest >= LARGEST_TBI, LEVELS
    while 1 << (WINDOW_BITS + 3 * levels) < longest:
        levels += 1
    present = np.flatnonzero(np.bincount(records.chrom))
    names = b"".join(records.names[number].encode() + b"\0" for number in present.tolist())
    about = VCF_COLUMNS + struct.pack("<i", len(names)) + names
    head = TBI + struct.pack("<i", len(present)) + about
    if csi:
        form = struct.pack("<iii", WINDOW_BITS, levels, len(about))
        head = CSI + form + about + struct.pack("<i", len(present))
    tail = struct.pack("<Q", 0)  # records without a place
    if not len(present):
        return ".tbi", head + tail
    places = _Places(records, *_lines(text, blocks, len(records.chrom)))
    packed = _packed(_bins(places, levels, csi), None if csi else places.windows())
    return ".csi" if csi else ".tbi", b"".join([head, *packed, tail])


def _lines(text: bytes, blocks: Sequence[bytes], count: int) -> tuple[Numbers, Numbers]:
    """Where the last `count` lines begin and end: byte of the block << 16 | byte in its data."""
    newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    borders = newlines[len(newlines) - count - 1 :] + 1
    at = np.cumsum([0, *map(len, blocks)])
    places = (at[borders // BLOCK_DATA] << 16) | borders % BLOCK_DATA
    return places[:-1], places[1:]


class _Places:
    """Records in bases and in the file.

    chrom       int64[n]  number among those that have any
    at, behind  int64[n]  where they begin and end in the file
    first       int64[chromosomes]  the first record of each; `last` alike
    """

    def __init__(self, records: Records, at: Numbers, behind: Numbers) -> None:
        self.begin, self.end, self.at, self.behind = records.begin, records.end, at, behind
        self.first = np.flatnonzero(np.diff(records.chrom, prepend=-1))
        self.last = np.append(self.first[1:], len(at)) - 1
        self.counts = self.last - self.first + 1
        self.chrom = np.repeat(np.arange(len(self.first)), self.counts)
        self._reached = np.maximum.accumulate(self.chrom << MOST_BITS | self.end)

    def windows(self) -> tuple[Numbers, Numbers]:
        """How many windows of the linear index each chromosome has, and what stands for each.

        That is the first record which reaches beyond the window's first base.
        """
        reached = self._reached & ((1 << MOST_BITS) - 1)
        stop = ((reached - 1) >> WINDOW_BITS) + 1
        before = np.append(0, stop[:-1])
        before[self.first] = 0
        return stop[self.last], np.repeat(self.at, stop - before)

    def beyond(self, chrom: Numbers, base: Numbers) -> Numbers:
        """Where the first record stands that reaches beyond each of these bases, which one does."""
        return self.at[np.searchsorted(self._reached, chrom << MOST_BITS | base, "right")]


@dataclass(frozen=True, eq=False)
class _Bins:
    """Bins that have records, by chromosome and number.

    chrom   int64[bins]
    heads   int64[bins] each: numbers of 32 bits that stand before its chunks
    counts  int64[bins]     of chunks
    chunks  int64[chunks, 2]: where records begin and end that follow each other in the file
    """

    chrom: Numbers
    heads: Sequence[Numbers]
    counts: Numbers
    chunks: Numbers


def _bins(places: _Places, levels: int, csi: bool) -> _Bins:
    numbers = np.zeros(len(places.begin), np.int64)
    for level in range(1, levels + 1):
        bits = WINDOW_BITS + 3 * (levels - level)
        within = places.begin >> bits == (places.end - 1) >> bits
        numbers = np.where(within, _first_bin(level) + (places.begin >> bits), numbers)
    keys = places.chrom << MOST_BITS | numbers
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    last = np.append(first[1:], len(keys)) - 1
    # One bin more, which is none: where all of a chromosome stands, and how many records there are.
    about = np.arange(len(places.first)) << MOST_BITS | (_first_bin(levels + 1) + 1)
    nothing = np.zeros_like(about)
    keys = np.concatenate([keys[first], about, about])
    begins = np.concatenate([places.at[first], places.at[places.first], places.counts])
    ends = np.concatenate([places.behind[last], places.behind[places.last], nothing])
    order = np.argsort(keys, kind="stable")
    found, counts = np.unique(keys, return_counts=True)
    chrom, number = found >> MOST_BITS, found & ((1 << MOST_BITS) - 1)
    heads = [number, counts]
    if csi:
        at = places.beyond(chrom, _first_bases(number, levels))
        heads = [number, at & 0xFFFFFFFF, at >> 32, counts]
    return _Bins(chrom, heads, counts, np.stack([begins, ends], axis=1)[order])


def _first_bin(level: int) -> int:
    """The number of the first bin of a level."""
    return ((1 << 3 * level) - 1) // 7


def _first_bases(bins: Numbers, levels: int) -> Numbers:
    """The first base of each bin; of what is none, the first of all."""
    firsts = np.array([_first_bin(level) for level in range(levels + 2)])
    level = np.searchsorted(firsts, bins, "right") - 1
    bits = WINDOW_BITS + 3 * np.maximum(levels - level, 0)
    return np.where(level > levels, 0, (bins - firsts[level]) << bits)


def _packed(bins: _Bins, windows: tuple[Numbers, Numbers] | None) -> Iterator[Any]:
    """Of each chromosome the bins and, where there are any, the windows; as buffers."""
    lengths = len(bins.heads) + CHUNK_WORDS * bins.counts
    counts, words = np.bincount(bins.chrom), _words(bins, lengths)
    parts = [_counted(counts, words, np.bincount(bins.chrom, lengths))]
    if windows is not None:
        parts.append(_counted(windows[0], windows[1].view("<u8"), windows[0]))
    for each in zip(*parts, strict=True):
        for count, numbers in each:
            yield struct.pack("<i", count)
            yield numbers


def _counted(
    counts: Numbers, numbers: NDArray[Any], sizes: NDArray[Any]
) -> Iterator[tuple[int, NDArray[Any]]]:
    """What is told of each chromosome: how many there are, and their numbers, so many."""
    stops = np.cumsum(sizes)[:-1].astype(np.intp)
    return zip(counts.tolist(), np.split(numbers, stops), strict=True)


def _words(bins: _Bins, lengths: Numbers) -> NDArray[np.uint32]:
    """The heads and the chunks of every bin, as numbers of 32 bits."""
    begins = np.cumsum(lengths) - lengths
    words = np.empty(int(lengths.sum()), "<u4")
    for offset, numbers in enumerate(bins.heads):
        words[begins + offset] = numbers
    before = np.cumsum(bins.counts) - bins.counts
    at = np.repeat(begins + len(bins.heads) - CHUNK_WORDS * before, bins.counts)
    at += CHUNK_WORDS * np.arange(len(bins.chunks))
    words[at[:, None] + np.arange(CHUNK_WORDS)] = bins.chunks.astype("<u8").view("<u4")
    return words
