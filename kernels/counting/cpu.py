"""The count in NumPy: reads are put into two histograms, over the ends and over the starts.

A read covers a region that ends after the read's first base and does not start after its last one.
So a region's count is the number of reads that begin before its end, less those that end before its
start; both are cumulative sums over the sorted borders of the regions. Reads of an earlier
chromosome are in both sums. Regions may overlap.
"""

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.alignments import POSITION_BITS
from multigpu.kernels.counting.types import NO_FRAGMENT, Counting, Reads

_LAST = (1 << POSITION_BITS) - 1  # position; no region reaches it

Places = NDArray[np.int64]


def _places(chrom: NDArray[np.int32], position: NDArray[np.int64]) -> Places:
    places: Places = (chrom.astype(np.int64) << POSITION_BITS) + position.clip(0, _LAST)
    return places


def _are_asked_for(reads: Reads, options: Counting) -> NDArray[np.bool_]:
    without = options.exclude_flags | (NO_FRAGMENT if options.count == "fragments" else 0)
    found = np.asarray(reads.flag & options.include_flags == options.include_flags)
    found &= reads.flag & without == 0
    return found & ~reads.is_right_mate if options.count == "fragments" else found


class Counter:
    """Reads of one file, counted as they come."""

    def __init__(
        self,
        chrom: NDArray[np.int32],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        references: int,
        options: Counting,
    ) -> None:
        """chrom, start, end: [regions], 0-based half-open, none empty, chrom < references."""
        self._options = options
        starts, ends = _places(chrom, start), _places(chrom, end)
        self._by_start, self._by_end = np.argsort(starts), np.argsort(ends)
        self._starts, self._ends = starts[self._by_start], ends[self._by_end]
        # Of each reference; no read is between them where it has no region.
        self._first, self._last = np.full(references, _LAST), np.zeros(references, np.int64)
        np.minimum.at(self._first, chrom, start)
        np.maximum.at(self._last, chrom, end)
        self._begun = np.zeros(len(chrom) + 1, np.int64)
        self._ended = np.zeros(len(chrom) + 1, np.int64)
        self._seen = np.empty((2, 0), np.int64)

    def add(self, reads: Reads) -> None:
        """Count the next reads; with `remove_duplicates` they are sorted over all calls."""
        options, chrom = self._options, reads.chrom
        # R asks the file for what lies from the first to the last region.
        counts = (reads.end > self._first[chrom]) & (reads.start < self._last[chrom])
        counts &= _are_asked_for(reads, options)
        if options.remove_duplicates:
            asked = np.flatnonzero(counts)
            counts[asked] = self._are_new(reads, asked)
        counts &= reads.mapq >= options.min_mapq
        chrom, first, length = chrom[counts], reads.start[counts], reads.length[counts]
        width = length if options.get_width and not options.stranded_start else options.read_width
        if options.aligned_width:
            width = reads.end[counts] - first
        elif options.stranded_start:
            first = first + np.where(reads.reverse[counts], length - options.read_width, 0)
        begins, stops = _places(chrom, first), _places(chrom, first + width)
        bins = len(self._begun)
        self._begun += np.bincount(np.searchsorted(self._ends, begins, "right"), minlength=bins)
        self._ended += np.bincount(np.searchsorted(self._starts, stops), minlength=bins)

    def _are_new(self, reads: Reads, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether no earlier read has the place, the strand and the length of each."""
        kind = reads.reverse[rows].astype(np.int64)
        if self._options.get_width:
            kind += 2 * reads.length[rows]
        earlier = self._seen.shape[1]
        new = np.stack([_places(reads.chrom[rows], reads.start[rows]), kind])
        keys = np.concatenate([self._seen, new], axis=1)
        self._seen = keys[:, keys[0] == keys[0, -1]] if keys.size else keys
        order = np.lexsort(keys)  # of equal ones the earliest comes first
        are_new = np.empty(len(order), np.bool_)
        are_new[order] = np.diff(keys[:, order], prepend=-1).any(axis=0)
        return are_new[earlier:]

    def counts(self) -> NDArray[np.int64]:
        """Return int64[regions], in the order given."""
        counts = np.empty(len(self._starts), np.int64)
        counts[self._by_end] = np.cumsum(self._begun[:-1])
        counts[self._by_start] -= np.cumsum(self._ended[:-1])
        return counts
