"""The exact scan on a CPU, one thread a call, without the interpreter's lock.

The index of the seeds is a bit filter before chains of entries.
"""

from bisect import bisect_left
from functools import cached_property, partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit, jit_no_alloc
from multigpu.kernels.compiled.native import popcount
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan.cpu_planes import (
    ONE,
    PackedPatterns,
    Samples,
    bases_from,
    is_single,
    pack,
    pack_patterns,
    search_hits,
    settle,
    two_bits,
    window,
)
from multigpu.kernels.scan.cpu_sweep import TILE, sweep, tiles_of
from multigpu.kernels.scan.seeds import CPU, EXPECTED_BASES, SeedPlan, bits_of, plan_seeds
from multigpu.kernels.scan.types import (
    Chunk,
    ChunkScanner,
    Hits,
    Limits,
    Patterns,
    ScanRules,
    TooManyPatternsError,
)

SHARES = (0.0, 0.0005, 0.002, 0.008, 0.032, 0.128, 0.256, 0.512, 1.0)  # of ambiguous bases
FILTER_BITS = 128  # of each window, as long as
CACHED_BITS = 1 << 23  # are in the filter; a larger one does not stay in a core's cache, so it has
FEWEST_FILTER_BITS = 16
NOTHING = -1


class SeedIndex(NamedTuple):
    """Windows of seeds by their hashes; entry e is window e % stride of seed e // stride."""

    known: NDArray[np.uint64]  # the filter: two bits per window
    heads: NDArray[np.int32]  # [2^bucket_bits], the last entry of the bucket or NOTHING
    entries: NDArray[np.int32]  # [entries, 2]: the window's bases; the next of its bucket
    known_shift: int
    bucket_shift: int
    k: int
    stride: int
    blanks: int
    anchors: NDArray[np.int32]  # [patterns], where the seed of each begins
    seeded: NDArray[np.int64]  # patterns with a seed
    unseeded: NDArray[np.int64]  # and those without


class ExactScanner(ChunkScanner):
    """Searches chunks for the same patterns. Safe to use from several threads at once.

    bases: about how many are going to be searched; nothing but speed depends on it.
    """

    def __init__(self, patterns: Patterns, rules: ScanRules, bases: float = EXPECTED_BASES) -> None:
        self.patterns, self.rules, self._bases = patterns, rules, bases
        self._indices: dict[SeedPlan, SeedIndex] = {}
        self._lock = Lock()
        self._buffers = Buffers(lambda size: np.empty(size, np.uint8))

    @cached_property
    def _packed(self) -> PackedPatterns:
        return pack_patterns(self.patterns)

    @cached_property
    def _limits(self) -> Limits:
        return Limits.of(self.patterns, 0)

    def index(self, ambiguous: float) -> SeedIndex:
        """Return the index for this share of ambiguous bases. Raises TooManyPatternsError."""
        share = 0.0 if self.rules.strict else SHARES[bisect_left(SHARES, ambiguous)]
        with self._lock:
            try:
                plan = plan_seeds(self._packed.runs, CPU, self._bases, share)
                if plan not in self._indices:
                    self._indices[plan] = make_index(self._packed, plan)
                return self._indices[plan]
            except MemoryError as error:
                raise TooManyPatternsError(str(error) or "no memory") from error

    def scan(self, chunk: Chunk) -> Hits:
        words = len(chunk.letters) // 64 + 3
        planes = self._buffers.take(4 * 8 * words).view(np.uint64).reshape(words, 4)
        try:
            index = self.index(pack(chunk.letters, planes) / max(1, len(chunk.letters)))
            samples = Samples(planes, chunk.offsets, chunk.letters)
            record, pattern, start, errors = self._find(samples, index).T
        finally:
            self._buffers.give(planes)
        hits = Hits.at_places(record, pattern, start, errors, self.patterns.lengths)
        return hits.chosen(self.rules.wanted, self.patterns.strands, by_end=False)

    def _find(self, samples: Samples, index: SeedIndex) -> NDArray[np.int64]:
        """Return int64[hits, 4] as `sweep` does, some of them twice."""
        searched = (samples, self._packed, self._limits)
        rules: Any = {"strict": self.rules.strict, "wanted": self.rules.wanted}
        crowded = np.zeros(tiles_of(samples.letters), bool)
        parts = [sweep(*searched, index.unseeded, **rules)]
        if len(index.seeded):
            parts.append(search_hits(partial(_search, index, crowded), *searched, **rules))
        if crowded.any():
            reach = 1 + int(index.anchors.max()) // TILE
            tiles = crowded.copy()
            for before in range(1, min(reach, len(crowded) - 1) + 1):
                tiles[:-before] |= crowded[before:]
            parts.append(sweep(*searched, index.seeded, tiles=tiles, **rules))
        return np.concatenate(parts)

    def close(self) -> None:
        """Free the buffers."""
        self._buffers.clear()


@jit_no_alloc
def _search(index: Any, crowded: Any, search: Any) -> Any:
    """Look every `stride`-th window up; return how many hits there are, if there is room or not.

    crowded  bool[tiles]  takes where the index cannot answer for all positions
    """
    q, end, count = 0, search.samples.offsets[-1], 0
    while True:
        q, mask, low, high = _next_candidate(search.samples.planes, q, end, index, search.strict)
        if q < 0:
            return count
        if popcount(mask) <= index.blanks:
            count = _follow_choices(search, index, q, (mask, low, high), count)
        else:
            crowded[max(0, q - index.stride + 1) // TILE] = crowded[q // TILE] = True
        q += index.stride


@jit_no_alloc
def _follow_choices(search: Any, index: Any, q: Any, bases: Any, count: Any) -> Any:
    """Check every pattern that the index has for the window at q, whatever its ambiguous bases."""
    mask, low, high = bases
    mask, unambiguous, chosen = bases_of(mask, mask), bases_of(low, high), np.uint64(0)
    while True:
        key = hashed(unambiguous | chosen)
        if may_have(index.known, index.known_shift, key):
            count = _follow(search, index, q, unambiguous | chosen, key, count)
        chosen = (chosen - mask) & mask
        if not chosen:
            break
    return count


@jit_no_alloc
def _follow(search: Any, index: Any, q: Any, bases: Any, key: Any, count: Any) -> Any:
    """Check every pattern that the index has for these bases at q."""
    entry = index.heads[key >> np.uint64(index.bucket_shift)]
    while entry >= 0:
        if index.entries[entry, 0] == np.int32(bases):
            p = index.seeded[entry // index.stride]
            start = q - entry % index.stride - index.anchors[p]
            if start >= 0:
                record = np.searchsorted(search.samples.offsets, start, "right") - 1
                count = settle(search, record, p, start, count)
        entry = index.entries[entry, 1]
    return count


@jit_no_alloc
def _next_candidate(planes: Any, q: Any, end: Any, index: Any, strict: Any) -> Any:
    """Return the next window in question: (position, *window); position -1: there is none."""
    # On its own: where a loop follows what it finds, too, the search takes half as long again.
    k_bits = (ONE << np.uint64(index.k)) - ONE
    known, shift = index.known, index.known_shift
    while q + index.k <= end:
        word = q >> 6
        here, after = two_bits(planes, word), two_bits(planes, word + 1)
        clean = not (here[0] | (after[0] & k_bits))
        if clean and not _any_known(here, after, k_bits, index.stride, known, shift):
            q = 64 * (word + 1)  # every stride divides 64
            continue
        stop = min(64 * (word + 1), end - index.k + 1)
        while q < stop:
            mask, low, high = _window_of(here, after, q & 63, k_bits)
            low, high = low & ~mask, high & ~mask
            # With `strict` a seed's single base matches no ambiguous one.
            if mask and not strict:
                return q, mask, low, high
            if not mask and may_have(known, shift, hashed(bases_of(low, high))):
                return q, mask, low, high
            q += index.stride
    return -1, np.uint64(0), np.uint64(0), np.uint64(0)


@jit_no_alloc
def _any_known(here: Any, after: Any, k_bits: Any, stride: Any, known: Any, shift: Any) -> Any:
    """Whether the filter has one of the windows that begin in a word without ambiguous bases."""
    found = np.uint64(0)
    for at in range(0, 64, stride):
        _, low, high = _window_of(here, after, at, k_bits)
        found |= may_have(known, shift, hashed(bases_of(low, high)))
    return found


@jit_no_alloc
def _window_of(here: Any, after: Any, shift: Any, k_bits: Any) -> Any:
    """Return the window that begins at `shift` in the word `here`; `after` is the word after it."""
    mask, low, high = bases_from(here, after, np.uint64(shift))
    return mask & k_bits, low & k_bits, high & k_bits


# ---- the index ----------------------------------------------------------------------------------


def make_index(packed: PackedPatterns, plan: SeedPlan) -> SeedIndex:
    """Return the index of a plan. Raises MemoryError."""
    seeded = np.flatnonzero(packed.runs >= plan.run)
    anchors, entries = _anchors(packed, plan.run), len(seeded) * plan.stride
    known_bits = bits_of(max(min(FILTER_BITS * entries, CACHED_BITS), FEWEST_FILTER_BITS * entries))
    bucket_bits = bits_of(entries)
    index = SeedIndex(
        known=np.zeros(1 << (known_bits - 6), np.uint64),
        heads=np.full(1 << bucket_bits, NOTHING, np.int32),
        entries=np.empty((entries, 2), np.int32),
        known_shift=64 - known_bits,
        bucket_shift=64 - bucket_bits,
        k=plan.k,
        stride=plan.stride,
        blanks=plan.blanks,
        anchors=anchors,
        seeded=seeded,
        unseeded=np.flatnonzero(packed.runs < plan.run),
    )
    _fill_index(index, packed)
    return index


@jit_no_alloc
def bases_of(low: Any, high: Any) -> Any:
    """Return two bits a base of up to 16 bases as one number, uint64."""
    return low | (high << np.uint64(16))


@jit_no_alloc
def hashed(bases: Any) -> Any:
    """Return 64 bits, of which the high ones are mixed best."""
    return np.uint64(bases) * np.uint64(0x9E3779B97F4A7C15)


@jit_no_alloc
def may_have(known: Any, shift: Any, key: Any) -> Any:
    """Return 1 where a filter has both bits of a hash, else 0."""
    i = key >> np.uint64(shift)
    word = known[i >> np.uint64(6)]
    other = key >> np.uint64(26)
    return (word >> (i & np.uint64(63))) & (word >> (other & np.uint64(63))) & ONE


@jit_no_alloc
def _fill_index(index: Any, packed: Any) -> None:
    entry = 0
    k_bits = (ONE << np.uint64(index.k)) - ONE
    for p in index.seeded:
        _, c, g, t = window(packed.planes, packed.words[p], index.anchors[p])
        low, high = c | t, g | t
        for phase in range(index.stride):
            shift = np.uint64(phase)
            bases = bases_of((low >> shift) & k_bits, (high >> shift) & k_bits)
            key = hashed(bases)
            # Both bits of a hash are in one word.
            bit, other = key >> np.uint64(index.known_shift), key >> np.uint64(26)
            both = (ONE << (bit & np.uint64(63))) | (ONE << (other & np.uint64(63)))
            index.known[bit >> np.uint64(6)] |= both
            bucket = key >> np.uint64(index.bucket_shift)
            index.entries[entry, 0] = np.int32(bases)
            index.entries[entry, 1] = index.heads[bucket]
            index.heads[bucket] = entry
            entry += 1


@jit
def _anchors(packed: Any, run: Any) -> Any:
    """Return where the seeds begin: the first one of enough variety, else the best one."""
    planes, words, lengths = packed.planes, packed.words, packed.lengths
    anchors = np.zeros(lengths.shape[0], np.int32)
    enough = min(8, run - 1)
    for p in range(lengths.shape[0]):
        clean = best = 0
        for i in range(lengths[p]):
            clean = clean + 1 if is_single(planes, words[p], i) else 0
            if clean >= run:
                _, c, g, t = window(planes, words[p], i + 1 - run)
                variety = 1 + _variety(c | t, g | t, run)
                if variety > best:
                    anchors[p], best = i + 1 - run, variety
                if variety > enough:
                    break
    return anchors


@jit_no_alloc
def _variety(low: Any, high: Any, run: Any) -> Any:
    """Return the number of different pairs of neighbours: seeds of few are found everywhere."""
    seen, two = np.uint64(0), np.uint64(3)
    for i in range(run - 1):
        pair = ((low >> np.uint64(i)) & two) | (((high >> np.uint64(i)) & two) << np.uint64(2))
        seen |= ONE << pair
    return popcount(seen)
