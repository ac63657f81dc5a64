"""Letters of samples: ambiguous ones in windows, long runs of N, and windows that are copied."""

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
        out[i] = ambiguous_in(letters, starts[i], lengths[i])
    return out


@jit_no_alloc
def ambiguous_in(letters: Any, start: Any, length: Any) -> Any:
    """Return the number of ambiguous bases of a window of letters."""
    unambiguous = np.uint32(0)
    for letter in letters[start : start + length]:
        unambiguous += _UNAMBIGUOUS >> np.uint32(letter & 31) & _ONE
    return length - np.int64(unambiguous)


@jit_no_alloc
def is_illegal(letters: Any) -> Any:
    """Whether one of the letters is no IUPAC base."""
    known = np.uint32(1)
    # To the end, so that many letters go through a register at once.
    for letter in letters:
        known &= _KNOWN >> np.uint32(letter & 31) & np.uint32(letter >> 6 == 1)
    return known != _ONE


@jit_no_alloc
def find_gaps(letters: Any, offsets: Any, longest: Any, cuts: Any) -> Any:
    """Find the runs of N longer than `longest`; return their number, 0 where a letter is illegal.

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


@jit_no_alloc
def copy_windows(letters: Any, offsets: Any, begins: Any, ends: Any, out: Any) -> Any:
    """Copy the window [begin, end) of every record, a slice or a part of a circle, in a row.

    letters, offsets  as in `Chunk`
    begins, ends      int64[records]  in the record; an end beyond its last base continues at its
                      first, up to twice its length
    out               uint8[sum of ends - begins]  takes the letters

    Returns whether all letters of the records are bases; where one is not, `out` is not complete.
    """
    at = 0
    for record in range(offsets.shape[0] - 1):
        first, stop = offsets[record], offsets[record + 1]
        if is_illegal(letters[first:stop]):
            return False
        begin, end, length = begins[record], ends[record], stop - first
        inside = min(end, length) - begin
        copy_bytes(out, at, letters, first + begin, inside)
        copy_bytes(out, at + inside, letters, first, end - begin - inside)
        at += end - begin
    return True
