"""Bit planes of samples and patterns on a CPU.

Bit planes are uint64[words, 4]: bit i of word w speaks of position 64 w + i. After the last base
every plane is set up to the end of its word.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import encode
from multigpu.kernels.compiled.jit import jit, jit_no_alloc
from multigpu.kernels.compiled.native import popcount, trailing_zeros
from multigpu.kernels.scan.seeds import LONGEST_RUN
from multigpu.kernels.scan.types import BadBaseError, Patterns

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)


def _spread(sets: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return sets of bases as one bit for each plane, 16 bits apart."""
    bits: NDArray[np.uint64] = np.zeros(len(sets), np.uint64)
    for plane in range(4):
        bits |= (sets >> plane & 1).astype(np.uint64) << np.uint64(16 * plane)
    return bits


LETTER_BITS = _spread(encode(np.arange(256, dtype=np.uint8)))  # uint64[256], 0 for no base
SET_BITS = _spread(np.arange(16, dtype=np.uint8))


class PackedPatterns(NamedTuple):
    """The patterns as bit planes, whatever the plan."""

    planes: NDArray[np.uint64]  # [words, 4], every pattern from a new word
    words: NDArray[np.int64]  # [n + 1], the first word of each
    sets: NDArray[np.uint8]  # as in Patterns
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]  # [n]
    runs: NDArray[np.uint8]  # [n], the longest clean run of each, see `plan_seeds`


def pack_patterns(patterns: Patterns) -> PackedPatterns:
    words = np.r_[0, np.cumsum((patterns.lengths + 63) // 64)]
    planes = np.full((int(words[-1]) + 1, 4), ALL)  # a window may reach into the word after
    _pack_patterns(patterns.sets, patterns.offsets, words, planes)
    return PackedPatterns(
        planes=planes,
        words=words,
        sets=patterns.sets,
        offsets=patterns.offsets,
        lengths=patterns.lengths,
        runs=_longest_runs(planes, words, patterns.lengths),
    )


def pack(letters: NDArray[np.uint8], planes: NDArray[np.uint64]) -> int:
    """Fill `planes`; return how many bases are ambiguous. Raises BadBaseError at an illegal one."""
    illegal, ambiguous = _pack(letters, planes)
    if illegal >= 0:
        raise BadBaseError(illegal)
    return int(ambiguous)


@jit_no_alloc
def _pack(letters: Any, planes: Any) -> Any:
    """Fill `planes`; return the first illegal position or -1, and how many bases are ambiguous."""
    n = letters.shape[0]
    illegal = -1
    ambiguous = n - 64 * planes.shape[0]  # what lies after the last letter is counted too
    for word in range(planes.shape[0]):
        begin = word * 64
        a, c, g, t = _planes_at(letters, begin, n, LETTER_BITS)
        planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3] = a, c, g, t
        ambiguous += popcount(~single(a, c, g, t))
        legal = a | c | g | t
        if legal != ALL and illegal < 0:
            illegal = begin + trailing_zeros(~legal)
    return illegal, ambiguous


@jit_no_alloc
def _pack_patterns(sets: Any, offsets: Any, words: Any, planes: Any) -> None:
    for p in range(offsets.shape[0] - 1):
        for begin in range(offsets[p], offsets[p + 1], 64):
            w = words[p] + (begin - offsets[p]) // 64
            a, c, g, t = _planes_at(sets, begin, offsets[p + 1], SET_BITS)
            planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3] = a, c, g, t


@jit_no_alloc
def _planes_at(values: Any, begin: Any, end: Any, table: Any) -> Any:
    """Return four words for values[begin : begin + 64]; from `end` on all bits are set."""
    if begin + 64 <= end:
        return _planes_of_64(values[begin : begin + 64], table)
    a = c = g = t = ALL << np.uint64(end - begin) if begin < end else ALL
    for i in range(max(0, end - begin)):
        bits, one, up = table[values[begin + i]], ONE, np.uint64(i)
        a |= (bits & one) << up
        c |= (bits >> np.uint64(16) & one) << up
        g |= (bits >> np.uint64(32) & one) << up
        t |= (bits >> np.uint64(48)) << up
    return a, c, g, t


@jit_no_alloc
def _planes_of_64(values: Any, table: Any) -> Any:
    a = c = g = t = np.uint64(0)
    for begin in range(0, 64, 16):
        bits = np.uint64(0)  # of 16 values, plane after plane
        for i in range(16):
            bits |= table[values[begin + i]] << np.uint64(i)
        low, up = np.uint64(0xFFFF), np.uint64(begin)
        a |= (bits & low) << up
        c |= (bits >> np.uint64(16) & low) << up
        g |= (bits >> np.uint64(32) & low) << up
        t |= (bits >> np.uint64(48)) << up
    return a, c, g, t


@jit_no_alloc
def single(a: Any, c: Any, g: Any, t: Any) -> Any:
    """Return the positions that stand for exactly one base."""
    return ~((a & c) | ((a | c) & (g | t)) | (g & t))


@jit_no_alloc
def two_bits(planes: Any, word: Any) -> Any:
    """Return which bases of a word are ambiguous; low and high bits: A 00, C 01, G 10, T 11."""
    a, c, g, t = planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3]
    return ~single(a, c, g, t), c | t, g | t


@jit_no_alloc
def bases_from(here: Any, after: Any, shift: Any) -> Any:
    """Return the same of the 64 bases from `shift` on, uint64, in a word and the one after it."""
    up = np.uint64(63) - shift
    return (
        here[0] >> shift | after[0] << ONE << up,
        here[1] >> shift | after[1] << ONE << up,
        here[2] >> shift | after[2] << ONE << up,
    )


@jit_no_alloc
def is_single(planes: Any, word: Any, position: Any) -> Any:
    w = word + (position >> 6)
    clean = single(planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3])
    return (clean >> np.uint64(position & 63)) & ONE


@jit
def _longest_runs(planes: Any, words: Any, lengths: Any) -> Any:
    """uint8[n]: the longest run of single bases in each pattern, not counted beyond LONGEST_RUN."""
    runs = np.zeros(lengths.shape[0], np.uint8)
    for p in range(lengths.shape[0]):
        run = longest = 0
        for i in range(lengths[p]):
            run = run + 1 if is_single(planes, words[p], i) else 0
            longest = max(longest, run)
            if longest == LONGEST_RUN:
                break
        runs[p] = longest
    return runs


@jit_no_alloc
def window(planes: Any, word: Any, position: Any) -> Any:
    """Return the four planes of the 64 bases from `position` on, counted from the word's first."""
    w, shift = word + (position >> 6), np.uint64(position & 63)
    a, c, g, t = planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3]
    if shift:
        back = np.uint64(64) - shift
        a = (a >> shift) | (planes[w + 1, 0] << back)
        c = (c >> shift) | (planes[w + 1, 1] << back)
        g = (g >> shift) | (planes[w + 1, 2] << back)
        t = (t >> shift) | (planes[w + 1, 3] << back)
    return a, c, g, t


@jit_no_alloc
def differing(s: Any, g: Any, strict: Any) -> Any:
    """Return which of 64 bases of sample `s` do not match pattern `g`, four planes each."""
    if strict:
        return (s[0] & ~g[0]) | (s[1] & ~g[1]) | (s[2] & ~g[2]) | (s[3] & ~g[3])
    return ~((s[0] & g[0]) | (s[1] & g[1]) | (s[2] & g[2]) | (s[3] & g[3]))
