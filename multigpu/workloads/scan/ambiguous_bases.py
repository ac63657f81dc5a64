"""Long runs of N in samples."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan import Chunk, Hits
from multigpu.kernels.scan.letters import find_gaps

# Runs of N are not made shorter than this.
LEAST_GAP = 1024


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
