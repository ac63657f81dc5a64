"""Ambiguous bases of samples: how many lie in a match, and which places may have few enough."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan import Chunk, Hits
from multigpu.kernels.scan.ambiguity import copy_stretches, mark_stretches

WIDENED = 1.25  # lengths up to so many times the shortest one share a window
SLACK = 1e-9  # 0.29 of 100 bases are 29, although 0.29 * 100 is a little less


def allowed(limit: float, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: how many bases of matches of these lengths may be ambiguous.

    limit: so many, or, as a float, a share of the length, rounded down
    """
    if isinstance(limit, int):
        # A limit of any size: no match has more ambiguous bases than bases.
        return np.full(len(lengths), min(limit, int(lengths.max(initial=0))), np.int64)
    most: NDArray[np.int64] = np.floor(limit * lengths + SLACK).astype(np.int64)
    return most


@dataclass(frozen=True, eq=False)
class Stretches:
    """Pieces of the records of a chunk, outside of which no match has few enough ambiguous bases.

    chunk   their letters one after the other, each as a record
    record  int32[n]   the record that each is a piece of
    begin   int64[n]   where it begins in there
    """

    chunk: Chunk
    record: NDArray[np.int32]
    begin: NDArray[np.int64]

    def placed(self, hits: Hits) -> Hits:
        """Hits in the stretches as hits in the records; no longer in order."""
        return Hits(self.record[hits.record], hits.pattern, hits.start + self.begin[hits.record])


class Windows:
    """Which places of samples may have a match with few enough ambiguous bases.

    A match of n bases contains windows of every smaller length around each of its bases, none of
    which has more ambiguous bases than the match. So a base that lies in no window of the shortest
    length with few enough of them lies in no such match.
    """

    def __init__(self, limit: float, lengths: NDArray[np.int64]) -> None:
        """`lengths`: of the matches that are possible."""
        distinct = np.unique(lengths)
        windows: list[tuple[int, int]] = []
        for length, most in zip(distinct.tolist(), allowed(limit, distinct).tolist(), strict=True):
            if windows and (most == windows[-1][1] or length < WIDENED * windows[-1][0]):
                windows[-1] = (windows[-1][0], most)
            else:
                windows.append((length, most))
        self._lengths, self._most = np.array(windows, np.int64).T.copy()

    def stretches(self, chunk: Chunk, buffer: NDArray[np.uint8]) -> Stretches | None:
        """What is to be searched; None: all of it, or a letter is illegal.

        buffer: uint8[n], as long as the chunk's letters, or longer; the stretches lie in it
        """
        alive = np.empty(len(chunk.letters), np.bool_)
        found = mark_stretches(chunk.letters, chunk.offsets, self._lengths, self._most, alive)
        if found < 0:
            return None
        record, begin = np.empty(found, np.int32), np.empty(found, np.int64)
        offsets = np.zeros(found + 1, np.int64)
        copy_stretches(chunk.letters, chunk.offsets, alive, buffer, record, begin, offsets)
        return Stretches(Chunk(buffer[: offsets[-1]], offsets), record, begin)
