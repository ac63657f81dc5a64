"""Bit planes on a CPU, comparison of a pattern at one place, and the hits that searches keep.

Bit planes are uint64[words, 4]: bit i of word w speaks of position 64 w + i. After the last base
every plane is set up to the end of its word.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import encode
from multigpu.kernels.compiled.jit import jit, jit_no_alloc
from multigpu.kernels.compiled.native import popcount, trailing_zeros
from multigpu.kernels.scan.seeds import LONGEST_RUN
from multigpu.kernels.scan.types import BadBaseError, Limits, Patterns, Wanted

FIRST_ROOM = 1 << 20  # hits: memory that is not used costs nothing
EVERY, FIRST, BEST = range(3)
CHOICES: dict[Wanted, int] = {"all": EVERY, "first": FIRST, "best": BEST}
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


class Samples(NamedTuple):
    """A chunk that is searched.

    planes            uint64[words, 4], see above
    offsets, letters  as in `Chunk`
    """

    planes: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    letters: NDArray[np.uint8]


class HitSearch(NamedTuple):
    """Samples, patterns and rules of a search, and what it finds.

    strict   whether a base of a sample must be a subset of the pattern's
    choice   which of the hits of a record and a pattern are kept: all, the first, or the one with
             the fewest errors
    found    int64[room, 4] record, pattern, start in the record, mismatches
    latest   int64[patterns, 2] record of the latest hit of each pattern, and its number
    """

    samples: Samples
    patterns: PackedPatterns
    limits: Limits
    strict: bool
    choice: int
    found: NDArray[np.int64]
    latest: NDArray[np.int64]


def search_hits(
    search: Callable[[HitSearch], Any],
    samples: Samples,
    patterns: PackedPatterns,
    limits: Limits,
    *,
    strict: bool,
    wanted: Wanted,
) -> NDArray[np.int64]:
    """Return the hits that a search finds, int64[hits, 4] as in `HitSearch`.

    search  returns how many hits there are, even if there is no room for all; then it is repeated
    """

    def fill(found: NDArray[np.int64]) -> Any:
        latest = np.full((len(limits.most), 2), -1, np.int64)
        choice = CHOICES[wanted]
        return search(HitSearch(samples, patterns, limits, strict, choice, found, latest))

    return find_rows(fill)


def find_rows(search: Callable[[NDArray[np.int64]], Any], columns: int = 4) -> NDArray[np.int64]:
    """Return the rows that a search finds; it is repeated where int64[room, columns] is small."""
    room = FIRST_ROOM
    while True:
        found = np.empty((room, columns), np.int64)
        count = int(search(found))
        if count <= room:
            return found[:count]
        room = count


@jit_no_alloc
def settle(search: Any, record: Any, p: Any, start: Any, count: Any) -> Any:
    """Compare pattern p at a position of the chunk and keep the hit; return the number of hits."""
    begin, length = search.samples.offsets[record], search.patterns.lengths[p]
    if start < begin or start + length > search.samples.offsets[record + 1]:
        return count
    if _is_beaten(search, record, p, start - begin):
        return count
    errors = count_mismatches(search, p, start, np.int64(0), length)
    if errors > search.limits.most[p]:
        return count
    return keep(search, record, p, start - begin, errors, count)


@jit_no_alloc
def count_mismatches(search: Any, p: Any, start: Any, first: Any, stop: Any) -> Any:
    """Count mismatches of bases [first, stop), up to too many; an exact one is too many."""
    patterns, count = search.patterns, 0
    exact_stop = patterns.lengths[p] - search.limits.suffix[p]
    for place in range(first, stop, 64):
        under = window(search.samples.planes, 0, start + place)
        bases = window(patterns.planes, patterns.words[p], place)
        wrong = differing(under, bases, search.strict) & below(stop - place)
        count += popcount(wrong)
        if wrong & (below(search.limits.prefix[p] - place) | ~below(exact_stop - place)):
            return search.limits.most[p] + 1
        if count > search.limits.most[p]:
            break
    return count


@jit_no_alloc
def below(count: Any) -> Any:
    """Return a word with as many low bits set: none for a negative number, all from 64 on."""
    if count <= 0:
        return np.uint64(0)
    return ALL if count >= 64 else (ONE << np.uint64(count)) - ONE


@jit_no_alloc
def keep(search: Any, record: Any, p: Any, place: Any, errors: Any, count: Any) -> Any:
    """Keep a hit, or let it replace one that is less wanted; return the number of hits."""
    found, at = search.found, count
    if search.choice != EVERY and search.latest[p, 0] == record:
        at = search.latest[p, 1]
    if at < found.shape[0]:
        is_better = place < found[at, 2]
        if search.choice == BEST:
            is_better = errors < found[at, 3] or (errors == found[at, 3] and is_better)
        if at == count or is_better:
            found[at, 0], found[at, 1], found[at, 2], found[at, 3] = record, p, place, errors
    search.latest[p, 0], search.latest[p, 1] = record, at
    return max(count, at + 1)


@jit_no_alloc
def _is_beaten(search: Any, record: Any, p: Any, place: Any) -> Any:
    """Whether a hit is kept that is preferred to every one that begins at a place of the record."""
    if search.choice == EVERY or search.latest[p, 0] != record:
        return False
    at = search.latest[p, 1]
    if at >= search.found.shape[0] or search.found[at, 2] > place:
        return False
    return search.choice != BEST or search.found[at, 3] == 0
