"""The scan on a CPU: the scheme of this package in Numba, one thread a call, without the GIL.

Bit planes are uint64[words, 4]: bit i of word w speaks of position 64 w + i. Behind the last base
every plane is set, so that a comparison may run over the end; the record's bounds decide.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kernels.native import matching_of_8, planes_of_64, popcount, trailing_zeros
from kernels.scan.seeds import LONGEST_RUN, Costs, SeedPlan, plan_seeds
from kernels.scan.types import BadBaseError, Chunk, Hits, Patterns, Rules

COSTS = Costs(probe=10.0, candidate=100.0, direct=0.12, entry=40.0, max_entries=1 << 24)  # ns
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
NOTHING = -1

_jit = njit(nogil=True, cache=True, error_model="numpy")


class Index(NamedTuple):
    """Seeds by the hash of their window: a bit filter before chains of entries.

    Entry e is window e // masks of all seeds (pattern-major, then phase), blanked by one mask.
    """

    clean_filter: NDArray[np.uint64]  # a bit per hash of a window without blanks: small, in cache
    blank_filter: NDArray[np.uint64]  # and of one with blanks
    heads: NDArray[np.int32]  # [2^bucket_bits], the last entry of the bucket or NOTHING
    entries: NDArray[np.int32]  # [entries, 2]: hash bits that the bucket does not tell; the next
    clean_shift: int
    blank_shift: int
    bucket_shift: int
    masks: int  # how many per window
    k: int
    stride: int
    blanks: int


class Target(NamedTuple):
    """The patterns as the search compares them."""

    planes: NDArray[np.uint64]  # [words, 4], every pattern from a new word
    words: NDArray[np.int64]  # [n + 1], the first word of each
    lengths: NDArray[np.int64]  # [n]
    anchors: NDArray[np.int32]  # [n], where the seed begins, or the best window for comparing
    seeded: NDArray[np.int32]  # patterns with a seed
    unseeded: NDArray[np.int32]  # and those without
    seeded_anchor: NDArray[np.uint64]  # [4, seeded + padding], 64 bases from the anchor on
    unseeded_anchor: NDArray[np.uint64]  # [4, unseeded + padding]


class Scanner:
    """Searches chunks for the same patterns. Safe to use from several threads at once."""

    def __init__(self, patterns: Patterns, rules: Rules) -> None:
        self.patterns, self.rules = patterns, rules
        planes, words = _pattern_planes(patterns)
        runs = _longest_runs(planes, words, patterns.lengths)
        self.plan = plan_seeds(runs, COSTS)
        anchors = _anchors(planes, words, patterns.lengths, self.plan.run)
        has_seed = runs >= self.plan.run
        seeded = np.flatnonzero(has_seed).astype(np.int32)
        unseeded = np.flatnonzero(~has_seed).astype(np.int32)
        self.target = Target(
            planes,
            words,
            patterns.lengths,
            anchors,
            seeded,
            unseeded,
            _anchor_planes(planes, words, anchors, seeded),
            _anchor_planes(planes, words, anchors, unseeded),
        )
        self.index = _make_index(self.target, self.plan)

    def scan(self, chunk: Chunk) -> Hits:
        """All hits of the chunk. Raises BadBaseError at the first illegal letter."""
        planes = np.empty((len(chunk.letters) // 64 + 3, 4), np.uint64)
        illegal = _pack(chunk.letters, planes)
        if illegal >= 0:
            raise BadBaseError(illegal)
        record, pattern, start = _search(
            planes, chunk.offsets, self.target, self.index, self.rules.first, self.rules.strict
        )
        hits = Hits(record, pattern, start)
        return hits.ordered(self.patterns.strands, self.rules.first)


@_jit
def _pack(letters: Any, planes: Any) -> Any:
    """Fills `planes`; returns the first illegal position or -1."""
    n = letters.shape[0]
    illegal = -1
    padded = np.full(64, np.uint8(ord("N")))
    for word in range(planes.shape[0]):
        begin = word * 64
        if begin + 64 <= n:
            a, c, g, t = planes_of_64(letters, begin)
        else:
            padded[:] = np.uint8(ord("N"))
            if begin < n:
                padded[: n - begin] = letters[begin:n]
            a, c, g, t = planes_of_64(padded, 0)
        planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3] = a, c, g, t
        legal = a | c | g | t
        if legal != ALL and illegal < 0:
            illegal = begin + trailing_zeros(~legal)
    return illegal


def _pattern_planes(patterns: Patterns) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Planes of every pattern from a word of its own, and their first words."""
    words: NDArray[np.int64] = np.zeros(len(patterns) + 1, np.int64)
    np.cumsum((patterns.lengths + 63) // 64 + 1, out=words[1:])  # a word of padding behind each
    planes = np.full((int(words[-1]) + 1, 4), ALL)
    _pack_patterns(patterns.sets, patterns.offsets, words, planes)
    return planes, words


@_jit
def _pack_patterns(sets: Any, offsets: Any, words: Any, planes: Any) -> None:
    for p in range(offsets.shape[0] - 1):
        for i in range(offsets[p + 1] - offsets[p]):
            bases = sets[offsets[p] + i]
            word, bit = words[p] + (i >> 6), np.uint64(1) << np.uint64(i & 63)
            for plane in range(4):
                if not (bases >> plane) & 1:
                    planes[word, plane] &= ~bit


@_jit
def _single(a: Any, c: Any, g: Any, t: Any) -> Any:
    """Which positions stand for exactly one base."""
    return ~((a & c) | ((a | c) & (g | t)) | (g & t))


@_jit
def _is_single(planes: Any, word: Any, position: Any) -> Any:
    w = word + (position >> 6)
    clean = _single(planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3])
    return (clean >> np.uint64(position & 63)) & np.uint64(1)


@_jit
def _longest_runs(planes: Any, words: Any, lengths: Any) -> Any:
    """int64[n]: the longest run of single bases in each pattern, not counted beyond LONGEST_RUN."""
    runs = np.zeros(lengths.shape[0], np.int64)
    for p in range(lengths.shape[0]):
        run = longest = 0
        for i in range(lengths[p]):
            run = run + 1 if _is_single(planes, words[p], i) else 0
            longest = max(longest, run)
            if longest == LONGEST_RUN:
                break
        runs[p] = longest
    return runs


@_jit
def _window(planes: Any, word: Any, position: Any) -> Any:
    """The four planes of the 64 bases from `position` on, counted from the word's first."""
    w, shift = word + (position >> 6), np.uint64(position & 63)
    a, c, g, t = planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3]
    if shift:
        back = np.uint64(64) - shift
        a = (a >> shift) | (planes[w + 1, 0] << back)
        c = (c >> shift) | (planes[w + 1, 1] << back)
        g = (g >> shift) | (planes[w + 1, 2] << back)
        t = (t >> shift) | (planes[w + 1, 3] << back)
    return a, c, g, t


@_jit
def _variety(low: Any, high: Any, run: Any) -> Any:
    """How many different pairs of neighbours a run has: seeds of few are found everywhere."""
    seen = np.uint64(0)
    for i in range(run - 1):
        pair = ((low >> np.uint64(i)) & np.uint64(3)) | (
            ((high >> np.uint64(i)) & np.uint64(3)) << np.uint64(2)
        )
        seen |= np.uint64(1) << pair
    return popcount(seen)


@_jit
def _anchors(planes: Any, words: Any, lengths: Any, run: Any) -> Any:
    """Where to begin comparing: the first seed of enough variety, else the best of the pattern.

    Patterns without a clean run of `run` bases begin at the word with the most single bases.
    """
    anchors = np.zeros(lengths.shape[0], np.int32)
    enough = min(8, run - 1)
    for p in range(lengths.shape[0]):
        clean = best = 0
        for i in range(lengths[p]):
            clean = clean + 1 if _is_single(planes, words[p], i) else 0
            if clean >= run:
                _, c, g, t = _window(planes, words[p], i + 1 - run)
                variety = 1 + _variety(c | t, g | t, run)
                if variety > best:
                    anchors[p], best = i + 1 - run, variety
                if variety > enough:
                    break
        if best == 0:
            anchors[p] = _densest_word(planes, words[p], lengths[p])
    return anchors


@_jit
def _densest_word(planes: Any, word: Any, length: Any) -> Any:
    best, where = -1, 0
    for i in range(0, length, 64):
        w = word + (i >> 6)
        clean = popcount(_single(planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3]))
        if clean > best:
            best, where = clean, i
    return where


@_jit
def _anchor_planes(planes: Any, words: Any, anchors: Any, chosen: Any) -> Any:
    """uint64[4, n]: 64 bases from the anchor on; behind the pattern's end every base matches.

    n is a multiple of 8: behind the chosen patterns stand windows that match nothing.
    """
    out = np.zeros((4, (chosen.shape[0] + 7) // 8 * 8), np.uint64)
    for i in range(chosen.shape[0]):
        p = chosen[i]
        out[0, i], out[1, i], out[2, i], out[3, i] = _window(planes, words[p], anchors[p])
    return out


@_jit
def _hash(mask: Any, low: Any, high: Any) -> Any:
    """64 mixed bits of a window: its blanked places and two bits a base (murmur's finalizer)."""
    x = np.uint64(mask) | (np.uint64(low) << np.uint64(16)) | (np.uint64(high) << np.uint64(32))
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


def _make_index(target: Target, plan: SeedPlan) -> Index:
    masks = plan.masks()
    seeds = len(target.seeded) * plan.stride
    bucket_bits = _bits(seeds * len(masks))
    clean_bits, blank_bits = _bits(128 * seeds), _bits(16 * seeds * (len(masks) - 1))
    index = Index(
        np.zeros(1 << (clean_bits - 6), np.uint64),
        np.zeros(1 << (blank_bits - 6), np.uint64),
        np.full(1 << bucket_bits, NOTHING, np.int32),
        np.empty((seeds * len(masks), 2), np.int32),
        64 - clean_bits,
        64 - blank_bits,
        64 - bucket_bits,
        len(masks),
        plan.k,
        plan.stride,
        plan.blanks,
    )
    _fill_index(index, target, masks)
    return index


def _bits(count: int) -> int:
    """How many bits number at least `count` things; six at least, the bits of a filter's word."""
    return max(6, count.bit_length())


@_jit
def _set_bit(bits: Any, i: Any) -> None:
    bits[i >> np.uint64(6)] |= np.uint64(1) << (i & np.uint64(63))


@_jit
def _bit(bits: Any, i: Any) -> Any:
    return (bits[i >> np.uint64(6)] >> (i & np.uint64(63))) & np.uint64(1)


@_jit
def _fill_index(index: Any, target: Any, masks: Any) -> None:
    entry = 0
    k_bits = (np.uint64(1) << np.uint64(index.k)) - np.uint64(1)
    for i in range(target.seeded.shape[0]):
        low = target.seeded_anchor[1, i] | target.seeded_anchor[3, i]
        high = target.seeded_anchor[2, i] | target.seeded_anchor[3, i]
        for phase in range(index.stride):
            for mask in masks:
                kept = k_bits & ~np.uint64(mask)
                key = _hash(
                    mask, (low >> np.uint64(phase)) & kept, (high >> np.uint64(phase)) & kept
                )
                if mask:
                    _set_bit(index.blank_filter, key >> np.uint64(index.blank_shift))
                else:
                    _set_bit(index.clean_filter, key >> np.uint64(index.clean_shift))
                bucket = key >> np.uint64(index.bucket_shift)
                index.entries[entry, 0] = np.int32(key)
                index.entries[entry, 1] = index.heads[bucket]
                index.heads[bucket] = entry
                entry += 1


@_jit
def _differ(s: Any, g: Any, strict: Any) -> Any:
    """Which of 64 bases of the sample `s` do not match the pattern `g` (four planes each)."""
    if strict:
        return (s[0] & ~g[0]) | (s[1] & ~g[1]) | (s[2] & ~g[2]) | (s[3] & ~g[3])
    return ~((s[0] & g[0]) | (s[1] & g[1]) | (s[2] & g[2]) | (s[3] & g[3]))


@_jit
def _occurs(planes: Any, position: Any, target: Any, p: Any, strict: Any) -> Any:
    """The complete comparison: does pattern p stand at `position`?"""
    word = target.words[p]
    for i in range(0, target.lengths[p], 64):
        w = word + (i >> 6)
        g = (target.planes[w, 0], target.planes[w, 1], target.planes[w, 2], target.planes[w, 3])
        differ = _differ(_window(planes, 0, position + i), g, strict)
        left = target.lengths[p] - i
        if left < 64:
            differ &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        if differ:
            return False
    return True


@_jit
def _grown(array: Any) -> Any:
    larger = np.empty(2 * array.shape[0], array.dtype)
    larger[: array.shape[0]] = array
    return larger


@_jit
def _search(planes: Any, offsets: Any, target: Any, index: Any, first: Any, strict: Any) -> Any:
    """(record, pattern, start) of every hit; with `first` the first of each record and pattern."""
    out = (np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.int64))
    count = 0
    n_patterns = target.lengths.shape[0]
    best = np.full(n_patterns, -1, np.int64)  # the current record's first start of each pattern
    found = np.empty(n_patterns, np.int32)  # the patterns that have one
    for record in range(offsets.shape[0] - 1):
        begin, end = offsets[record], offsets[record + 1]
        n_found = 0
        reach = (begin, end)
        if target.unseeded.shape[0]:
            for position in range(begin, end):
                out, count, n_found = _compare(
                    planes, position, target, target.unseeded, target.unseeded_anchor,
                    record, reach, out, count, best, found, n_found, first, strict,
                )  # fmt: skip
                if first and n_found == n_patterns:
                    break
        if target.seeded.shape[0]:
            out, count, n_found = _probe(
                planes,
                target,
                index,
                record,
                reach,
                out,
                count,
                best,
                found,
                n_found,
                first,
                strict,
            )
        for i in range(n_found):
            p = found[i]
            out, count = _append(out, count, record, p, best[p])
            best[p] = -1
    return out[0][:count], out[1][:count], out[2][:count]


@_jit
def _append(out: Any, count: Any, record: Any, p: Any, start: Any) -> Any:
    if count == out[0].shape[0]:
        out = (_grown(out[0]), _grown(out[1]), _grown(out[2]))
    out[0][count], out[1][count], out[2][count] = record, p, start
    return out, count + 1


@_jit
def _check(
    planes: Any, start: Any, p: Any, target: Any, record: Any, reach: Any,
    out: Any, count: Any, best: Any, found: Any, n_found: Any, first: Any, strict: Any,
) -> Any:  # fmt: skip
    """Compares pattern p at the position `start` of the chunk and keeps the hit."""
    begin, end = reach
    if start < begin or start + target.lengths[p] > end:
        return out, count, n_found
    if first and best[p] >= 0 and best[p] <= start - begin:
        return out, count, n_found
    if _occurs(planes, start, target, p, strict):
        if not first:
            out, count = _append(out, count, record, p, start - begin)
        else:
            if best[p] < 0:
                found[n_found] = p
                n_found += 1
            best[p] = start - begin
    return out, count, n_found


@_jit
def _next_matching(anchor: Any, block: Any, window: Any, strict: Any) -> Any:
    """The next eight anchors from `block` on of which one matches: (block, bits), bits 0: none."""
    while block < anchor.shape[1]:
        matching = matching_of_8(anchor, block, window, strict)
        if matching:
            return block, matching
        block += 8
    return block, 0


@_jit
def _compare(
    planes: Any, position: Any, target: Any, chosen: Any, anchor: Any, record: Any, reach: Any,
    out: Any, count: Any, best: Any, found: Any, n_found: Any, first: Any, strict: Any,
) -> Any:  # fmt: skip
    """The direct way: all `chosen` patterns with their anchor at `position`."""
    window = _window(planes, 0, position)
    block, matching = _next_matching(anchor, 0, window, strict)
    while matching:
        p = chosen[block + trailing_zeros(np.uint64(matching))]
        out, count, n_found = _check(
            planes, position - target.anchors[p], p, target, record, reach,
            out, count, best, found, n_found, first, strict,
        )  # fmt: skip
        matching &= matching - 1
        if not matching:
            block, matching = _next_matching(anchor, block + 8, window, strict)
    return out, count, n_found


@_jit
def _probe(
    planes: Any, target: Any, index: Any, record: Any, reach: Any,
    out: Any, count: Any, best: Any, found: Any, n_found: Any, first: Any, strict: Any,
) -> Any:  # fmt: skip
    """The indexed way: every `stride`-th window of the record is looked up."""
    begin, end = reach
    stride = index.stride
    q = (begin + stride - 1) // stride * stride
    while True:
        q, key, blanks = _next_candidate(
            planes, q, end, index.k, stride, index.blanks, strict,
            index.clean_filter, index.clean_shift, index.blank_filter, index.blank_shift,
        )  # fmt: skip
        if q < 0 or (first and n_found == target.lengths.shape[0]):
            break
        if blanks > index.blanks:
            for position in range(max(begin, q - stride + 1), q + 1):
                out, count, n_found = _compare(
                    planes, position, target, target.seeded, target.seeded_anchor,
                    record, reach, out, count, best, found, n_found, first, strict,
                )  # fmt: skip
        else:
            entry = index.heads[key >> np.uint64(index.bucket_shift)]
            while entry >= 0:
                if index.entries[entry, 0] == np.int32(key):
                    seed = entry // index.masks
                    p = target.seeded[seed // stride]
                    start = q - seed % stride - target.anchors[p]
                    out, count, n_found = _check(
                        planes, start, p, target, record, reach,
                        out, count, best, found, n_found, first, strict,
                    )  # fmt: skip
                entry = index.entries[entry, 1]
        q += stride
    return out, count, n_found


@_jit
def _next_candidate(
    planes: Any, q: Any, end: Any, k: Any, stride: Any, most_blanks: Any, strict: Any,
    clean_filter: Any, clean_shift: Any, blank_filter: Any, blank_shift: Any,
) -> Any:  # fmt: skip
    """The next window that the index may hold, or cannot: (position or -1, hash, blanks)."""
    k_bits = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
    while q + k <= end:
        a, c, g, t = _window(planes, 0, q)
        mask = ~_single(a, c, g, t) & k_bits
        if mask == 0:
            key = _hash(mask, (c | t) & k_bits, (g | t) & k_bits)
            if _bit(clean_filter, key >> np.uint64(clean_shift)):
                return q, key, 0
        elif not strict:  # else: a seed's single base is no superset of several
            blanks = popcount(mask)
            kept = k_bits & ~mask
            key = _hash(mask, (c | t) & kept, (g | t) & kept)
            if blanks > most_blanks or _bit(blank_filter, key >> np.uint64(blank_shift)):
                return q, key, blanks
        q += stride
    return -1, np.uint64(0), 0
