"""Ambiguous bases of samples: how many lie in a match, and which places may have few enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import SETS
from multigpu.kernels.compiled.jit import jit, lean
from multigpu.kernels.compiled.native import copy_bytes
from multigpu.kernels.scan import Chunk, Hits

WIDENED = 1.25  # lengths up to so many times the shortest one share a window
SLACK = 1e-9  # 0.29 of 100 bases are 29, although 0.29 * 100 is a little less


def _letters(wanted: Sequence[str]) -> np.uint32:
    """Bit i: the i-th letter of the alphabet, counted from 1, is one of these."""
    return np.uint32(sum(1 << (ord(letter) & 31) for letter in wanted))


_PLAIN, _KNOWN = _letters("ACGTU"), _letters(list(SETS))
_ONE = np.uint32(1)


def allowed(limit: float, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: how many bases of matches of these lengths may be ambiguous.

    limit: so many, or, as a float, a share of the length, rounded down
    """
    if isinstance(limit, int):
        # A limit of any size: no match has more ambiguous bases than bases.
        return np.full(len(lengths), min(limit, int(lengths.max(initial=0))), np.int64)
    most: NDArray[np.int64] = np.floor(limit * lengths + SLACK).astype(np.int64)
    return most


@jit
def count(letters: Any, starts: Any, lengths: Any) -> Any:
    """int32[n]: ambiguous bases of every window letters[start : start + length]."""
    out = np.empty(starts.shape[0], np.int32)
    for i in range(starts.shape[0]):
        out[i] = _ambiguous(letters[starts[i] : starts[i] + lengths[i]])
    return out


@lean
def _ambiguous(letters: Any) -> Any:
    plain = np.uint32(0)
    for letter in letters:
        plain += _PLAIN >> np.uint32(letter & 31) & _ONE
    return letters.shape[0] - np.int64(plain)


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
        found = _mark(chunk.letters, chunk.offsets, self._lengths, self._most, alive)
        if found < 0:
            return None
        record, begin = np.empty(found, np.int32), np.empty(found, np.int64)
        offsets = np.zeros(found + 1, np.int64)
        _move(chunk.letters, chunk.offsets, alive, buffer, record, begin, offsets)
        return Stretches(Chunk(buffer[: offsets[-1]], offsets), record, begin)


@lean
def _mark(letters: Any, offsets: Any, lengths: Any, most: Any, alive: Any) -> Any:
    """Mark bases in windows with few ambiguous ones; how many stretches these make.

    -1 where all are, or where a letter is illegal.
    """
    count, dead = 0, False
    for record in range(offsets.shape[0] - 1):
        begin, end = offsets[record], offsets[record + 1]
        here, marks = letters[begin:end], alive[begin:end]
        if _is_illegal(here):
            return -1
        if _ambiguous(here) <= most[0]:
            marks[:] = True
            count += 1 if end > begin else 0
            continue
        marks[:] = False
        for window in range(lengths.shape[0]):
            _mark_windows(here, lengths[window], most[window], marks)
        for i in range(marks.shape[0]):
            count += 1 if marks[i] and not (i and marks[i - 1]) else 0
            dead |= not marks[i]
    return count if dead else -1


@lean
def _is_illegal(letters: Any) -> Any:
    known = np.uint32(1)
    for letter in letters:  # to the end, so that many go through a register at once
        known &= _KNOWN >> np.uint32(letter & 31) & np.uint32(letter >> 6 == 1)
    return known != _ONE


@lean
def _mark_windows(letters: Any, length: Any, most: Any, marks: Any) -> Any:
    """Mark the bases of every window of this length with at most so many ambiguous bases."""
    inside = marked = np.int64(0)
    for end in range(1, letters.shape[0] + 1):
        inside += 1 - np.int64(_PLAIN >> np.uint32(letters[end - 1] & 31) & _ONE)
        if end > length:
            inside -= 1 - np.int64(_PLAIN >> np.uint32(letters[end - 1 - length] & 31) & _ONE)
        if end >= length and inside <= most:
            for i in range(max(end - length, marked), end):
                marks[i] = True
            marked = np.int64(end)


@lean
def _move(
    letters: Any, offsets: Any, alive: Any, out: Any, record: Any, begin: Any, ends: Any
) -> None:
    """The marked stretches one after the other."""
    at, count = 0, 0
    for i in range(offsets.shape[0] - 1):
        first = offsets[i]
        while first < offsets[i + 1]:
            stop = first
            while stop < offsets[i + 1] and alive[stop]:
                stop += 1
            if stop > first:
                copy_bytes(out, at, letters, first, stop - first)
                record[count], begin[count] = i, first - offsets[i]
                at += stop - first
                count += 1
                ends[count] = at
            first = stop + 1
