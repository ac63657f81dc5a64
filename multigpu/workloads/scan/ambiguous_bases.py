"""Ambiguous bases of samples: where there are few enough for a match, and long runs of N."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan import Chunk, Hits, allowed_bases
from multigpu.kernels.scan.ambiguous_bases import copy_stretches, find_gaps, mark_stretches

# Runs of N are not made shorter than this.
LEAST_GAP = 1024
# Lengths up to this many times the shortest one share a window.
WIDENING = 1.25


@dataclass(frozen=True, eq=False)
class Stretches:
    """Pieces of the records of a chunk, outside of which no match has few enough ambiguous bases.

    chunk   letters of the pieces, each as a record
    record  int32[n]   record that each piece is of
    begin   int64[n]   first base of each piece, in its record
    """

    chunk: Chunk
    record: NDArray[np.int32]
    begin: NDArray[np.int64]

    def in_records(self, hits: Hits) -> Hits:
        """Return hits in the stretches as hits in the records; they are no longer in order."""
        begin = self.begin[hits.record]
        record = self.record[hits.record]
        return replace(hits, record=record, start=hits.start + begin, end=hits.end + begin)


class Windows:
    """Windows that show which bases of samples may have a match with few enough ambiguous bases.

    A match of n bases contains windows of every smaller length around each of its bases, none of
    which has more ambiguous bases than the match. So a base that lies in no window of the shortest
    length with few enough of them lies in no such match.
    """

    def __init__(self, limit: float, lengths: NDArray[np.int64]) -> None:
        """Take the limit (see `allowed_bases`) and the lengths of the patterns."""
        distinct = np.unique(lengths)
        windows: list[tuple[int, int]] = []
        for length, most in zip(
            distinct.tolist(), allowed_bases(limit, distinct).tolist(), strict=True
        ):
            if windows and (most == windows[-1][1] or length < WIDENING * windows[-1][0]):
                windows[-1] = (windows[-1][0], most)
            else:
                windows.append((length, most))
        self._lengths, self._most = np.array(windows, np.int64).T.copy()

    def find_stretches(self, chunk: Chunk, buffer: NDArray[np.uint8]) -> Stretches | None:
        """Return the stretches to search; None: all of the chunk, or a letter is illegal.

        buffer  uint8[n], as long as the chunk's letters, or longer; the stretches lie in it
        """
        alive = np.empty(len(chunk.letters), np.bool_)
        found = mark_stretches(chunk.letters, chunk.offsets, self._lengths, self._most, alive)
        if found < 0:
            return None
        record, begin = np.empty(found, np.int32), np.empty(found, np.int64)
        offsets = np.zeros(found + 1, np.int64)
        copy_stretches(chunk.letters, chunk.offsets, alive, buffer, record, begin, offsets)
        return Stretches(Chunk(buffer[: offsets[-1]], offsets), record, begin)


@dataclass(frozen=True, eq=False)
class ShortGaps:
    """Records whose long runs of N are made shorter: no match that is asked for spans their middle.

    In a run of N that is longer than a match every place has one without errors. The first of them,
    and those that reach into the run from before or after, are still there.

    chunk    the letters that are left
    offsets  int64[records + 1]  of the records as they were
    cuts     int64[n]      where in `chunk` bases are missing, in order
    missing  int64[n + 1]  how many are missing before each of these, and at the end
    """

    chunk: Chunk
    offsets: NDArray[np.int64]
    cuts: NDArray[np.int64]
    missing: NDArray[np.int64]

    @classmethod
    def find(cls, chunk: Chunk, longest: int, buffers: Buffers) -> "ShortGaps | None":
        """Return the records without the middle of runs longer than `longest`, if there are any.

        The letters that stay lie in one of the buffers.
        """
        room = np.empty((len(chunk.letters) // longest + 1, 2), np.int64)
        middles = room[: find_gaps(chunk.letters, chunk.offsets, longest, room)]
        if not len(middles):
            return None
        buffer = buffers.take(len(chunk.letters))
        at, ends = 0, [*middles[:, 0], len(chunk.letters)]
        for begin, end in zip([0, *middles[:, 1]], ends, strict=True):
            buffer[at : at + end - begin] = chunk.letters[begin:end]
            at += end - begin
        missing = np.concatenate([[0], np.cumsum(middles[:, 1] - middles[:, 0])])
        before = missing[np.searchsorted(middles[:, 0], chunk.offsets, "right")]
        return cls(
            chunk=Chunk(buffer[:at], chunk.offsets - before),
            offsets=chunk.offsets,
            cuts=middles[:, 0] - missing[:-1],
            missing=missing,
        )

    def in_records(self, hits: Hits) -> Hits:
        """Return hits in the short records as hits in the records."""
        begin, moved = self.offsets[hits.record], self.chunk.offsets[hits.record]
        start, end = moved + hits.start, moved + hits.end
        start += self.missing[np.searchsorted(self.cuts, start, "right")]
        end += self.missing[np.searchsorted(self.cuts, end, "left")]
        return replace(hits, start=start - begin, end=end - begin)
