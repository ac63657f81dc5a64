"""Ambiguous bases of samples: how many lie in windows, and where there are few enough."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from multigpu.kernels.bases import SETS
from multigpu.kernels.compiled.jit import jit, jit_no_alloc
from multigpu.kernels.compiled.native import copy_bytes


def _letters(wanted: Sequence[str]) -> np.uint32:
    """Return bits: number i says whether the i-th letter of the alphabet, from 1, is wanted."""
    return np.uint32(sum(1 << (ord(letter) & 31) for letter in wanted))


_UNAMBIGUOUS, _KNOWN = _letters("ACGTU"), _letters(list(SETS))
_ONE = np.uint32(1)


@jit
def count_ambiguous(letters: Any, starts: Any, lengths: Any) -> Any:
    """Return int32[n]: the ambiguous bases of every window letters[start : start + length]."""
    out = np.empty(starts.shape[0], np.int32)
    for i in range(starts.shape[0]):
        out[i] = _ambiguous(letters[starts[i] : starts[i] + lengths[i]])
    return out


@jit_no_alloc
def _ambiguous(letters: Any) -> Any:
    unambiguous = np.uint32(0)
    for letter in letters:
        unambiguous += _UNAMBIGUOUS >> np.uint32(letter & 31) & _ONE
    return letters.shape[0] - np.int64(unambiguous)


@jit_no_alloc
def mark_stretches(letters: Any, offsets: Any, lengths: Any, most: Any, alive: Any) -> Any:
    """Mark the bases that lie in a window with few ambiguous ones; return the stretches they make.

    letters, offsets  as in `Chunk`
    lengths, most     int64[windows]  how long a window is, and its most ambiguous bases
    alive             bool[letters]   takes the marks

    Returns -1 where all bases are marked, or where a letter is illegal.
    """
    count, dead = 0, False
    for record in range(offsets.shape[0] - 1):
        begin, end = offsets[record], offsets[record + 1]
        here, marks = letters[begin:end], alive[begin:end]
        if is_illegal(here):
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


@jit_no_alloc
def is_illegal(letters: Any) -> Any:
    """Whether one of the letters is no IUPAC base."""
    known = np.uint32(1)
    # To the end, so that many letters go through a register at once.
    for letter in letters:
        known &= _KNOWN >> np.uint32(letter & 31) & np.uint32(letter >> 6 == 1)
    return known != _ONE


@jit_no_alloc
def _mark_windows(letters: Any, length: Any, most: Any, marks: Any) -> Any:
    """Mark the bases of every window of this length with at most `most` ambiguous bases."""
    inside = marked = np.int64(0)
    for end in range(1, letters.shape[0] + 1):
        inside += 1 - np.int64(_UNAMBIGUOUS >> np.uint32(letters[end - 1] & 31) & _ONE)
        if end > length:
            leaving = np.uint32(letters[end - 1 - length] & 31)
            inside -= 1 - np.int64(_UNAMBIGUOUS >> leaving & _ONE)
        if end >= length and inside <= most:
            for i in range(max(end - length, marked), end):
                marks[i] = True
            marked = np.int64(end)


@jit_no_alloc
def copy_stretches(
    letters: Any, offsets: Any, alive: Any, out: Any, record: Any, begin: Any, ends: Any
) -> None:
    """Copy the marked stretches one after the other.

    out     uint8[letters]       takes their letters
    record  int32[stretches]     takes the record of each
    begin   int64[stretches]     takes where each begins in its record
    ends    int64[stretches + 1] takes where each ends in `out`, after a 0 that is there
    """
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


@jit_no_alloc
def find_gaps(letters: Any, offsets: Any, longest: Any, cuts: Any) -> Any:
    """Find the runs of N that are longer than `longest`; return how many there are.

    Returns 0 where a letter is illegal.

    cuts  int64[gaps, 2]  takes the middle of each, without which it is as long as `longest`
    """
    count = 0
    for record in range(offsets.shape[0] - 1):
        at, end = offsets[record], offsets[record + 1]
        while at < end:  # every run of this length has one of the bases that are looked at
            if not _is_n(letters[at]):
                at += longest
                continue
            first = stop = at
            while first > offsets[record] and _is_n(letters[first - 1]):
                first -= 1
            while stop < end and _is_n(letters[stop]):
                stop += 1
            if stop - first > longest:
                cuts[count, 0] = first + longest // 2
                cuts[count, 1] = stop - (longest - longest // 2)
                count += 1
            at = stop + longest
    return 0 if count and is_illegal(letters) else count


@jit_no_alloc
def _is_n(letter: Any) -> Any:
    return letter == ord("N") or letter == ord("n")
