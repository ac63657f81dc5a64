"""Patterns on a CPU: bit planes, where comparing begins, the index of the seeds.

Bit planes are uint64[words, 4]: bit i of word w speaks of position 64 w + i. Behind the last base
every plane is set, so that a comparison may run over the end; the record's bounds decide.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit, lean
from kernels.native import planes_of_64, planes_of_64_sets, popcount, trailing_zeros
from kernels.scan.seeds import FEW_N, LONGEST_RUN, Costs, SeedPlan, plan_seeds
from kernels.scan.types import Patterns

COSTS = Costs(probe=10.0, candidate=100.0, direct=0.12, entry=40.0, max_entries=1 << 24)  # ns
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ANY = np.uint8(15)  # the set of all bases
NOTHING = -1
TILE = 8  # words that a sweep holds: 512 positions
AHEAD = 64  # words behind them in which a pattern's bases are looked at
HELD = TILE + AHEAD + 1
STEPS = 512  # bases of a pattern that a sweep looks at
PADDING = TILE + 1  # words on both sides of a pattern backwards: all that a tile may reach over
LONG = 64 * TILE  # bases; only patterns so long are there backwards: the steps of others are few
REVERSED = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint8)


class Index(NamedTuple):
    """Seeds by the hash of their window: bit filters before chains of entries.

    Entry e is window e // masks of all seeds (pattern-major, then phase), blanked by one mask.
    """

    clean_filter: NDArray[np.uint64]  # two bits per hash of a clean window: small, in cache
    blank_filter: NDArray[np.uint64]  # and of one with blanks
    heads: NDArray[np.int32]  # [2^bucket_bits], the last entry of the bucket or NOTHING
    entries: NDArray[np.int32]  # [entries, 2]: hash bits that the bucket does not tell; the next
    clean_shift: int
    blank_shift: int
    bucket_shift: int
    masks: NDArray[np.uint64]  # the blanked places of each entry of a window
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
    steps: NDArray[np.uint16]  # [n * STEPS], single bases from the anchor on: see `_list_steps`
    n_steps: NDArray[np.int32]  # [n]
    backwards: NDArray[np.uint64]  # [4, words], the planes in the opposite order: see `_backwards`
    backwards_begin: NDArray[np.int64]  # [n], the first word of each there, or NOTHING


def make_target(patterns: Patterns, bases: float, ambiguous: float) -> tuple[Target, SeedPlan]:
    """The patterns ready for comparing, and how they are indexed; see `plan_seeds`."""
    planes, words = _pattern_planes(patterns)
    runs = _longest_runs(planes, words, patterns.lengths)
    plan = plan_seeds(runs, COSTS, bases, ambiguous)
    anchors = _anchors(planes, words, patterns.lengths, plan.run)
    seeded = np.flatnonzero(runs >= plan.run).astype(np.int32)
    unseeded = np.flatnonzero(runs < plan.run).astype(np.int32)
    anchor = _anchor_planes(planes, words, anchors, seeded)
    steps, n_steps = _list_steps(planes, words, patterns.lengths, anchors)
    target = Target(
        planes, words, patterns.lengths, anchors, seeded, unseeded, anchor, steps, n_steps,
        *_backwards(planes, words, patterns.lengths, ambiguous > FEW_N),
    )  # fmt: skip
    return target, plan


@lean
def pack(letters: Any, planes: Any, padded: Any) -> Any:
    """Fills `planes`; returns the first illegal position or -1, and how many bases are ambiguous.

    padded: uint8[64], anything.
    """
    n = letters.shape[0]
    illegal = -1
    ambiguous = n - 64 * planes.shape[0]  # the padding, which is counted too
    for word in range(planes.shape[0]):
        begin = word * 64
        if begin + 64 <= n:
            a, c, g, t = planes_of_64(letters, begin)
        else:
            for i in range(64):
                padded[i] = letters[begin + i] if begin + i < n else np.uint8(ord("N"))
            a, c, g, t = planes_of_64(padded, 0)
        planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3] = a, c, g, t
        ambiguous += popcount(~single(a, c, g, t))
        legal = a | c | g | t
        if legal != ALL and illegal < 0:
            illegal = begin + trailing_zeros(~legal)
    return illegal, ambiguous


def _pattern_planes(patterns: Patterns) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Planes of every pattern from a word of its own, and their first words."""
    words: NDArray[np.int64] = np.zeros(len(patterns) + 1, np.int64)
    np.cumsum((patterns.lengths + 63) // 64 + 1, out=words[1:])  # a word of padding behind each
    planes = np.full((int(words[-1]) + 1, 4), ALL)
    _pack_patterns(patterns.sets, patterns.offsets, words, planes, np.empty(64, np.uint8))
    return planes, words


@lean
def _pack_patterns(sets: Any, offsets: Any, words: Any, planes: Any, padded: Any) -> None:
    """padded: uint8[64], anything."""
    for p in range(offsets.shape[0] - 1):
        for begin in range(offsets[p], offsets[p + 1], 64):
            if begin + 64 <= offsets[p + 1]:
                a, c, g, t = planes_of_64_sets(sets, begin)
            else:
                for i in range(64):
                    padded[i] = sets[begin + i] if begin + i < offsets[p + 1] else ANY
                a, c, g, t = planes_of_64_sets(padded, 0)
            w = words[p] + (begin - offsets[p]) // 64
            planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3] = a, c, g, t


@lean
def single(a: Any, c: Any, g: Any, t: Any) -> Any:
    """Which positions stand for exactly one base."""
    return ~((a & c) | ((a | c) & (g | t)) | (g & t))


@lean
def _is_single(planes: Any, word: Any, position: Any) -> Any:
    w = word + (position >> 6)
    clean = single(planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3])
    return (clean >> np.uint64(position & 63)) & np.uint64(1)


@jit
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


@lean
def window(planes: Any, word: Any, position: Any) -> Any:
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


@lean
def _variety(low: Any, high: Any, run: Any) -> Any:
    """How many different pairs of neighbours a run has: seeds of few are found everywhere."""
    seen = np.uint64(0)
    for i in range(run - 1):
        pair = ((low >> np.uint64(i)) & np.uint64(3)) | (
            ((high >> np.uint64(i)) & np.uint64(3)) << np.uint64(2)
        )
        seen |= np.uint64(1) << pair
    return popcount(seen)


@jit
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
                _, c, g, t = window(planes, words[p], i + 1 - run)
                variety = 1 + _variety(c | t, g | t, run)
                if variety > best:
                    anchors[p], best = i + 1 - run, variety
                if variety > enough:
                    break
        if best == 0:
            anchors[p] = _densest_word(planes, words[p], lengths[p])
    return anchors


@lean
def _densest_word(planes: Any, word: Any, length: Any) -> Any:
    best, where = -1, 0
    for i in range(0, length, 64):
        w = word + (i >> 6)
        clean = popcount(single(planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3]))
        if clean > best:
            best, where = clean, i
    return where


@jit
def _anchor_planes(planes: Any, words: Any, anchors: Any, chosen: Any) -> Any:
    """uint64[4, n]: 64 bases from the anchor on; behind the pattern's end every base matches.

    n is a multiple of 8: behind the chosen patterns stand windows that match nothing.
    """
    out = np.zeros((4, (chosen.shape[0] + 7) // 8 * 8), np.uint64)
    for i in range(chosen.shape[0]):
        p = chosen[i]
        out[0, i], out[1, i], out[2, i], out[3, i] = window(planes, words[p], anchors[p])
    return out


@lean
def hashed(mask: Any, low: Any, high: Any) -> Any:
    """64 mixed bits of a window: its blanked places and two bits a base (murmur's finalizer)."""
    x = np.uint64(mask) | (np.uint64(low) << np.uint64(16)) | (np.uint64(high) << np.uint64(32))
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


def make_index(target: Target, plan: SeedPlan) -> Index:
    masks = plan.masks().astype(np.uint64)
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
        masks,
        plan.k,
        plan.stride,
        plan.blanks,
    )
    _fill_index(index, target, masks)
    return index


def _bits(count: int) -> int:
    """How many bits number at least `count` things; six at least, the bits of a filter's word."""
    return max(6, count.bit_length())


@jit
def _list_steps(planes: Any, words: Any, lengths: Any, anchors: Any) -> Any:
    """For sweeps: the first single bases of each pattern from its anchor on.

    A step is the word of the held planes in which the base is looked up, and the shift, as
    word * 64 + shift. The list repeats its last step, so that it can be read in fours.
    """
    steps = np.zeros(lengths.shape[0] * STEPS, np.uint16)
    counts = np.zeros(lengths.shape[0], np.int32)
    for p in range(lengths.shape[0]):
        count = 0
        for offset in range(min(lengths[p] - anchors[p], 64 * AHEAD)):
            if count == STEPS:
                break
            if _is_single(planes, words[p], anchors[p] + offset):
                _, c, g, t = window(planes, words[p], anchors[p] + offset)
                plane = 3 * (t & np.uint64(1)) | 2 * (g & np.uint64(1)) | (c & np.uint64(1))
                steps[p * STEPS + count] = (
                    np.int64(plane) * HELD + offset // 64
                ) * 64 + offset % 64
                count += 1
        counts[p] = count
        for i in range(count, STEPS):
            steps[p * STEPS + i] = steps[p * STEPS + count - 1] if count else 0
    return steps, counts


def _backwards(
    planes: NDArray[np.uint64], words: NDArray[np.int64], lengths: NDArray[np.int64], wanted: bool
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The planes of each long pattern from its last base to its first, and where each begins.

    Around each there are PADDING words that match everything. wanted: else none are made
    """
    begins = np.full(len(lengths), NOTHING, np.int64)
    chosen = np.flatnonzero(lengths >= LONG) if wanted else np.empty(0, np.int64)
    sizes = (lengths[chosen] + 63) // 64
    begins[chosen] = ours = np.cumsum(sizes + 2 * PADDING) - sizes - PADDING
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    forwards = planes[np.repeat(words[chosen], sizes) + within].T
    flipped = REVERSED[np.ascontiguousarray(forwards).view(np.uint8)].reshape(4, -1, 8)[:, :, ::-1]
    out = np.full((4, int(sizes.sum()) + 2 * PADDING * len(sizes)), ALL)
    out[:, np.repeat(ours + sizes - 1, sizes) - within] = (
        np.ascontiguousarray(flipped).reshape(4, -1).view(np.uint64)
    )
    return out, begins


@lean
def _remember(known: Any, shift: Any, key: Any) -> None:
    """Sets the two bits of a hash in a filter, both in one word."""
    i = key >> np.uint64(shift)
    both = (np.uint64(1) << (i & np.uint64(63))) | (np.uint64(1) << (key & np.uint64(63)))
    known[i >> np.uint64(6)] |= both


@lean
def may_have(known: Any, shift: Any, key: Any) -> Any:
    """1 where a filter has both bits of a hash, else 0."""
    i = key >> np.uint64(shift)
    word = known[i >> np.uint64(6)]
    return (word >> (i & np.uint64(63))) & (word >> (key & np.uint64(63))) & np.uint64(1)


@lean
def _fill_index(index: Any, target: Any, masks: Any) -> None:
    entry = 0
    k_bits = (np.uint64(1) << np.uint64(index.k)) - np.uint64(1)
    for i in range(target.seeded.shape[0]):
        low = target.seeded_anchor[1, i] | target.seeded_anchor[3, i]
        high = target.seeded_anchor[2, i] | target.seeded_anchor[3, i]
        for phase in range(index.stride):
            for mask in masks:
                kept = k_bits & ~np.uint64(mask)
                key = hashed(
                    mask, (low >> np.uint64(phase)) & kept, (high >> np.uint64(phase)) & kept
                )
                if mask:
                    _remember(index.blank_filter, index.blank_shift, key)
                else:
                    _remember(index.clean_filter, index.clean_shift, key)
                bucket = key >> np.uint64(index.bucket_shift)
                index.entries[entry, 0] = np.int32(key)
                index.entries[entry, 1] = index.heads[bucket]
                index.heads[bucket] = entry
                entry += 1
