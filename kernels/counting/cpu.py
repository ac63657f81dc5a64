"""The count in Numba: reads are put into two histograms, over the ends and over the starts.

A read covers a region that ends after the read's first base and does not start after its last one.
So a region's count is the number of reads that begin before its end, less those that end before its
start; both are cumulative sums over the sorted borders of the regions. What a read costs does not
depend on how many regions it covers, and regions may overlap.
"""

from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.counting.types import READ_DTYPES, Counting, Reads


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
        rows = np.bincount(chrom, minlength=references)
        self._offsets = np.zeros(references + 1, np.int64)
        np.cumsum(rows, out=self._offsets[1:])
        self._by_start, self._by_end = np.lexsort((start, chrom)), np.lexsort((end, chrom))
        self._starts, self._ends = start[self._by_start], end[self._by_end]
        # A bin more than regions for each reference: reads after its last border.
        self._begun = np.zeros(len(chrom) + references, np.int64)
        self._ended = np.zeros(len(chrom) + references, np.int64)
        self._seen = np.full((2, 1), -1, np.int64)

    def add(self, reads: Reads) -> None:
        """The next reads. With `remove_duplicates` they are sorted by position, over all calls."""
        options = self._options
        if options.remove_duplicates and options.get_width and len(reads):
            self._make_room(int(reads.length.max()) + 1)
        columns = tuple(getattr(reads, name) for name in READ_DTYPES)
        borders = (self._offsets, self._starts, self._ends)
        _add(columns, astuple(options), borders, (self._begun, self._ended), self._seen)

    def _make_room(self, lengths: int) -> None:
        more = lengths - self._seen.shape[1]
        if more > 0:
            self._seen = np.pad(self._seen, ((0, 0), (0, more)), constant_values=-1)

    def counts(self) -> NDArray[np.int64]:
        """int64[regions], in the order given."""
        counts = np.empty(len(self._starts), np.int64)
        counts[self._by_end] = self._totals(self._begun)
        counts[self._by_start] -= self._totals(self._ended)
        return counts

    def _totals(self, bins: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cumulative sums over the sorted regions of each reference."""
        totals = np.empty(len(self._starts), np.int64)
        for reference in np.flatnonzero(np.diff(self._offsets)).tolist():
            low, high = self._offsets[reference : reference + 2].tolist()
            np.cumsum(bins[low + reference : high + reference], out=totals[low:high])
        return totals


@jit
def _add(columns: Any, rules: Any, borders: Any, bins: Any, seen: Any) -> None:
    chrom, start, end, length, mapq, reverse = columns
    min_mapq, remove_duplicates, read_width, get_width, stranded_start = rules
    offsets, starts, ends = borders
    begun, ended = bins
    at = -1  # the reference whose borders are loaded: rows of them from `low` on
    low = rows = first_border = last_border = begins = stops = 0
    for i in range(len(chrom)):
        if chrom[i] != at:
            at = chrom[i]
            low, high = offsets[at], offsets[at + 1]
            rows = high - low
            if rows:
                first_border, last_border = starts[low], ends[high - 1]
                begins = np.searchsorted(ends[low:high], start[i], "right")
                stops = np.searchsorted(starts[low:high], start[i])
        # R asks the file for what lies from the first to the last region.
        if not rows or end[i] <= first_border or start[i] >= last_border:
            continue
        if remove_duplicates and _seen(seen, at, start[i], reverse[i], length[i] * get_width):
            continue
        if mapq[i] < min_mapq:
            continue
        first = start[i]
        if stranded_start and reverse[i]:
            first += length[i] - read_width
        last = first + (length[i] if get_width and not stranded_start else read_width)
        begins = _below(ends, low, rows, begins, first + 1)
        stops = _below(starts, low, rows, stops, last)
        begun[low + at + begins] += 1
        ended[low + at + stops] += 1


@jit
def _seen(seen: Any, chrom: Any, start: Any, reverse: Any, length: Any) -> Any:
    """Whether the read before with this strand and length stands here too. Notes this one."""
    strand, place = np.int64(reverse), np.int64(chrom) << 40 | start
    same = seen[strand, length] == place
    seen[strand, length] = place
    return same


@jit
def _below(borders: Any, low: Any, rows: Any, guess: Any, limit: Any) -> Any:
    """Return the number of sorted borders[low : low + rows] below `limit`, from a guess nearby."""
    while guess < rows and borders[low + guess] < limit:
        guess += 1
    while guess > 0 and borders[low + guess - 1] >= limit:
        guess -= 1
    return guess
