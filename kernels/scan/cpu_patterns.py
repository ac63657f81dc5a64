"""Patterns on a CPU: bit planes, where comparing begins, what the direct way needs.

Bit planes are uint64[words, 4]: bit i of word w speaks of position 64 w + i. After the last base
every plane is set up to the end of its word.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import encode
from multigpu.kernels.compiled.jit import jit, lean
from multigpu.kernels.compiled.native import popcount, trailing_zeros
from multigpu.kernels.scan.seeds import LONGEST_RUN, SeedPlan
from multigpu.kernels.scan.types import Patterns

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
NOTHING = -1
TILE = 32  # words that a sweep holds: 2,048 positions
AHEAD = 64  # words after them in which a pattern's bases are looked at
HELD = TILE + AHEAD + 1
GROUP = 64  # anchors that are compared together
STEPS = 512  # bases of a pattern that a sweep looks at,
STEPS_OF_ALL = 1 << 24  # and of all patterns together, but never fewer than
FEWEST_STEPS = 16  # of each


def _spread(sets: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return sets of bases as one bit for each plane, 16 bits apart."""
    bits = sets.astype(np.uint64)
    one = np.uint64(1)
    return np.bitwise_or.reduce(
        [(bits >> np.uint64(plane) & one) << np.uint64(16 * plane) for plane in range(4)]
    )


LETTER_BITS = _spread(encode(np.arange(256, dtype=np.uint8)))  # uint64[256], 0 for no base
SET_BITS = _spread(np.arange(16, dtype=np.uint8))


class Packed(NamedTuple):
    """The patterns as bit planes, whatever the plan."""

    planes: NDArray[np.uint64]  # [words, 4], every pattern from a new word
    words: NDArray[np.int64]  # [n + 1], the first word of each
    lengths: NDArray[np.int64]  # [n]
    runs: NDArray[np.uint8]  # [n], the longest clean run of each, see `plan_seeds`


class Target(NamedTuple):
    """The patterns as the search compares them."""

    planes: NDArray[np.uint64]  # as in Packed
    words: NDArray[np.int64]
    lengths: NDArray[np.int64]
    anchors: NDArray[np.int32]  # [n], where the seed begins, or the best window for comparing
    seeded: NDArray[np.int32]  # patterns with a seed
    unseeded: NDArray[np.int32]  # and those without
    seeded_anchor: NDArray[np.uint64]  # [4, seeded + padding], 64 bases from the anchor on
    steps: NDArray[np.uint16]  # single bases from the anchor on: see `_list_steps`
    steps_begin: NDArray[np.int64]  # [n + 1], the first step of each


def pack_patterns(patterns: Patterns) -> Packed:
    words: NDArray[np.int64] = np.zeros(len(patterns) + 1, np.int64)
    np.cumsum((patterns.lengths + 63) // 64, out=words[1:])
    planes = np.full((int(words[-1]) + 1, 4), ALL)  # a window may reach into the word after
    _pack_patterns(patterns.sets, patterns.offsets, words, planes)
    return Packed(planes, words, patterns.lengths, _longest_runs(planes, words, patterns.lengths))


def make_target(packed: Packed, plan: SeedPlan, is_compared: bool) -> Target:
    """Make patterns ready for comparing.

    is_compared: whether seeded patterns may go the direct way; else what this needs is not made, as
    it takes most of the memory
    """
    planes, words, lengths, runs = packed
    anchors = _anchors(planes, words, lengths, plan.run)
    seeded = np.flatnonzero(runs >= plan.run).astype(np.int32)
    unseeded = np.flatnonzero(runs < plan.run).astype(np.int32)
    stepping = np.full(len(lengths), is_compared)
    stepping[unseeded] = True
    most = min(STEPS, max(FEWEST_STEPS, STEPS_OF_ALL // len(lengths)))
    compared = seeded[: len(seeded) * is_compared]
    steps, steps_begin = _list_steps(planes, words, lengths, anchors, stepping, most)
    return Target(
        planes=planes,
        words=words,
        lengths=lengths,
        anchors=anchors,
        seeded=seeded,
        unseeded=unseeded,
        seeded_anchor=_anchor_planes(planes, words, lengths, anchors, compared),
        steps=steps,
        steps_begin=steps_begin,
    )


@lean
def pack(letters: Any, planes: Any) -> Any:
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


@lean
def _pack_patterns(sets: Any, offsets: Any, words: Any, planes: Any) -> None:
    for p in range(offsets.shape[0] - 1):
        for begin in range(offsets[p], offsets[p + 1], 64):
            w = words[p] + (begin - offsets[p]) // 64
            a, c, g, t = _planes_at(sets, begin, offsets[p + 1], SET_BITS)
            planes[w, 0], planes[w, 1], planes[w, 2], planes[w, 3] = a, c, g, t


@lean
def _planes_at(values: Any, begin: Any, end: Any, table: Any) -> Any:
    """Return four words for values[begin : begin + 64]; from `end` on all bits are set."""
    if begin + 64 <= end:
        return _planes_of_64(values[begin : begin + 64], table)
    a = c = g = t = ALL << np.uint64(end - begin) if begin < end else ALL
    for i in range(max(0, end - begin)):
        bits, one, up = table[values[begin + i]], np.uint64(1), np.uint64(i)
        a |= (bits & one) << up
        c |= (bits >> np.uint64(16) & one) << up
        g |= (bits >> np.uint64(32) & one) << up
        t |= (bits >> np.uint64(48)) << up
    return a, c, g, t


@lean
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
    """uint8[n]: the longest run of single bases in each pattern, not counted beyond LONGEST_RUN."""
    runs = np.zeros(lengths.shape[0], np.uint8)
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
def _anchor_planes(planes: Any, words: Any, lengths: Any, anchors: Any, chosen: Any) -> Any:
    """uint64[4, n]: 64 bases from the anchor on; after the pattern's end every base matches.

    n is a multiple of GROUP: after the chosen patterns stand windows that match nothing.
    """
    out = np.zeros((4, (chosen.shape[0] + GROUP - 1) // GROUP * GROUP), np.uint64)
    for i in range(chosen.shape[0]):
        p = chosen[i]
        a, c, g, t = window(planes, words[p], anchors[p])
        left = lengths[p] - anchors[p]
        behind = ALL << np.uint64(left) if left < 64 else np.uint64(0)
        out[0, i], out[1, i], out[2, i], out[3, i] = a | behind, c | behind, g | behind, t | behind
    return out


def _list_steps(
    planes: NDArray[np.uint64], words: NDArray[np.int64], lengths: NDArray[np.int64],
    anchors: NDArray[np.int32], stepping: NDArray[np.bool_], most: int,
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:  # fmt: skip
    """For sweeps: the first single bases of each pattern from its anchor on, and where they begin.

    A step is the word of the held planes in which the base is looked up, and the shift, as
    word * 64 + shift. A list repeats its last step, so that it can be read in fours.

    stepping: which patterns have a list; most: steps of each
    """
    steps, begins = np.empty(0, np.uint16), np.zeros(len(lengths) + 1, np.int64)
    if stepping.any():
        np.cumsum(_count_steps(planes, words, lengths, anchors, stepping, most), out=begins[1:])
        steps = np.empty(int(begins[-1]), np.uint16)
        _fill_steps(planes, words, lengths, anchors, begins, steps)
    return steps, begins


@jit
def _count_steps(
    planes: Any, words: Any, lengths: Any, anchors: Any, stepping: Any, most: Any
) -> Any:
    """int32[n]: steps of each pattern, in fours."""
    counts = np.zeros(lengths.shape[0], np.int32)
    for p in range(lengths.shape[0]):
        count = 0
        if stepping[p]:
            for offset in range(min(lengths[p] - anchors[p], 64 * AHEAD)):
                if count == most:
                    break
                if _is_single(planes, words[p], anchors[p] + offset):
                    count += 1
        counts[p] = (count + 3) // 4 * 4
    return counts


@lean
def _fill_steps(
    planes: Any, words: Any, lengths: Any, anchors: Any, begins: Any, steps: Any
) -> None:
    for p in range(lengths.shape[0]):
        at, step = begins[p], np.int64(0)
        for offset in range(min(lengths[p] - anchors[p], 64 * AHEAD)):
            if at == begins[p + 1]:
                break
            if _is_single(planes, words[p], anchors[p] + offset):
                _, c, g, t = window(planes, words[p], anchors[p] + offset)
                plane = 3 * (t & np.uint64(1)) | 2 * (g & np.uint64(1)) | (c & np.uint64(1))
                step = (np.int64(plane) * HELD + offset // 64) * 64 + offset % 64
                steps[at] = np.uint16(step)
                at += 1
        steps[at : begins[p + 1]] = np.uint16(step)
