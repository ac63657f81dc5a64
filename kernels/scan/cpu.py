"""The exact scan on a CPU: the scheme of this package in Numba, one thread a call, without GIL."""

from bisect import bisect_left
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import popcount, trailing_zeros
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan.cpu_index import (
    GROUP,
    SeedIndex,
    bases_of,
    hashed,
    make_index,
    may_have,
)
from multigpu.kernels.scan.cpu_patterns import (
    ONE,
    PackedPatterns,
    bases_from,
    differing,
    pack,
    pack_patterns,
    two_bits,
    window,
)
from multigpu.kernels.scan.cpu_sweep import (
    CHOICES,
    FIRST_ROOM,
    TILE,
    find_rows,
    is_beaten,
    keep,
    sweep,
    tiles_of,
)
from multigpu.kernels.scan.seeds import CPU, EXPECTED_BASES, SeedPlan, plan_seeds
from multigpu.kernels.scan.types import (
    Chunk,
    Hits,
    Limits,
    Patterns,
    ScanRules,
    TooManyPatternsError,
)

SHARES = (0.0, 0.0005, 0.002, 0.008, 0.032, 0.128, 0.256, 0.512, 1.0)  # of ambiguous bases
# A tile with more positions that the index cannot answer for is swept; fewer are compared.
MANY = 2 * TILE


class ExactScanner:
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
        none = np.zeros(len(self.patterns), np.int64)
        return Limits(most=none, prefix=self.patterns.lengths, suffix=none)

    def index(self, ambiguous: float) -> SeedIndex:
        """Return the index for chunks with this share of ambiguous bases; made when one needs it.

        Raises TooManyPatternsError.
        """
        share = 0.0 if self.rules.strict else SHARES[bisect_left(SHARES, ambiguous)]
        with self._lock:
            try:
                plan = plan_seeds(self._packed.runs, CPU, self._bases, share)
                if plan not in self._indices:
                    self._indices[plan] = make_index(self._packed, plan)
                return self._indices[plan]
            except MemoryError as error:
                raise TooManyPatternsError(str(error) or "no memory") from error

    def scan(self, chunk: Chunk, *, limit: int | None = None) -> Hits:
        """Return the hits of a chunk; `limit` as in `ChunkScanner`.

        Raises BadBaseError at the first illegal letter, and TooManyPatternsError.
        """
        words = len(chunk.letters) // 64 + 3
        planes = self._buffers.take(4 * 8 * words).view(np.uint64).reshape(words, 4)
        try:
            index = self.index(pack(chunk.letters, planes) / max(1, len(chunk.letters)))
            record, pattern, start, errors = self._find(planes, chunk.offsets, index).T
        finally:
            self._buffers.give(planes)
        hits = Hits.at_places(record, pattern, start, errors, self.patterns.lengths)
        return hits.chosen(self.rules.wanted, self.patterns.strands, by_end=False)

    def _find(
        self, planes: NDArray[np.uint64], offsets: NDArray[np.int64], index: SeedIndex
    ) -> NDArray[np.int64]:
        """Return int64[hits, 4] as `sweep` does, some of them twice."""
        rules, crowded = self.rules, np.zeros(tiles_of(offsets), bool)

        def search(found: NDArray[np.int64]) -> int:
            return int(
                _search(
                    _Search(
                        planes=planes,
                        offsets=offsets,
                        packed=self._packed,
                        seeds=index,
                        strict=rules.strict,
                        choice=CHOICES[rules.wanted],
                        found=found,
                        latest=np.full((len(self.patterns), 2), -1, np.int64),
                        unanswered=np.empty(TILE, np.uint64),
                        crowded=crowded,
                    )
                )
            )

        def swept(chosen: NDArray[np.int64], tiles: NDArray[np.bool_] | None) -> Any:
            return sweep(
                planes, offsets, self._packed, self._limits, chosen,
                strict=rules.strict, wanted=rules.wanted, tiles=tiles,
            )  # fmt: skip

        parts = [find_rows(search, FIRST_ROOM)] if len(index.seeded) else []
        if len(index.unseeded):
            parts.append(swept(index.unseeded, None))
        if crowded.any():  # some of their hits are found twice
            reach = 1 + int(index.anchors.max()) // (64 * TILE)
            tiles = crowded.copy()
            for before in range(1, min(reach, len(crowded) - 1) + 1):
                tiles[:-before] |= crowded[before:]
            parts.append(swept(index.seeded, tiles))
        return np.concatenate(parts)

    def seconds(self) -> dict[str, float]:
        """Return nothing: a scan on a CPU has no steps that are timed."""
        return {}

    def close(self) -> None:
        """Free the buffers."""
        self._buffers.clear()


class _Search(NamedTuple):
    """One search of a chunk by the index: what is searched for, and its scratch memory."""

    planes: NDArray[np.uint64]  # [words, 4] of the chunk
    offsets: NDArray[np.int64]  # [records + 1]
    packed: PackedPatterns
    seeds: SeedIndex
    strict: bool
    choice: int
    found: NDArray[np.int64]  # [room, 4] record, pattern, start in the record, 0
    latest: NDArray[np.int64]  # [patterns, 2] record of the latest hit of each, and its number
    unanswered: NDArray[np.uint64]  # [TILE] positions that the index cannot answer for
    crowded: NDArray[np.bool_]  # [tiles] takes whether they are left to the sweep


@jit_no_alloc
def _search(search: Any) -> Any:
    """Search all records; return how many hits there are, even if there is no room for all.

    Every `stride`-th window of the samples is looked up.
    """
    index, end, count = search.seeds, search.offsets[-1], 0
    for number in range(search.crowded.shape[0]):
        begin = 64 * TILE * number
        search.unanswered[:] = 0
        q = (begin + index.stride - 1) // index.stride * index.stride
        stop = min(end, begin + 64 * TILE + index.k - 1)
        while True:
            q, mask, low, high = _next_candidate(
                search.planes, q, stop, index.k, index.stride, search.strict, index.known,
                index.known_shift,
            )  # fmt: skip
            if q < 0:
                break
            if popcount(mask) <= index.blanks:
                count = _follow_choices(search, q, (mask, low, high), count)
            else:
                for position in range(max(0, q - index.stride + 1), q + 1):
                    if position >= begin:
                        i = position - begin
                        search.unanswered[i >> 6] |= ONE << np.uint64(i & 63)
                    elif not search.crowded[number - 1]:
                        count = _compare_at(search, position, count)
            q += index.stride
        count = _compare_unanswered(search, number, count)
    return count


@jit_no_alloc
def _compare_unanswered(search: Any, number: Any, count: Any) -> Any:
    """Compare all seeded patterns at the unanswered positions of a tile; return all hits."""
    positions = 0
    for word in search.unanswered:
        positions += popcount(word)
    if positions > MANY:
        search.crowded[number] = True
        return count
    for word in range(TILE):
        left = search.unanswered[word]
        while left:
            position = 64 * (TILE * number + word) + trailing_zeros(left)
            count = _compare_at(search, position, count)
            left &= left - ONE
    return count


@jit_no_alloc
def _compare_at(search: Any, position: Any, count: Any) -> Any:
    """Compare all seeded patterns whose anchor may be at `position`; return all hits."""
    index, under = search.seeds, window(search.planes, 0, position)
    for begin in range(0, index.windows.shape[1], GROUP):
        if not _any_matches(index.windows, begin, under, search.strict):
            continue
        for p in index.seeded[begin : begin + GROUP]:
            count = _check(search, position - index.anchors[p], p, count)
    return count


@jit_no_alloc
def _any_matches(windows: Any, begin: Any, under: Any, strict: Any) -> Any:
    """Whether one of a group of anchors matches 64 bases of the sample."""
    end = begin + GROUP
    a, c = windows[0, begin:end], windows[1, begin:end]
    g, t = windows[2, begin:end], windows[3, begin:end]
    # All are counted: without a way out of the loop it becomes vector instructions.
    count = np.int64(0)
    for i in range(GROUP):
        count += np.int64(differing(under, (a[i], c[i], g[i], t[i]), strict) == 0)
    return count > 0


@jit_no_alloc
def _check(search: Any, start: Any, p: Any, count: Any) -> Any:
    """Compare pattern p at a position of the chunk, keep the hit and return all hits."""
    offsets, packed = search.offsets, search.packed
    if start < 0:
        return count
    record = np.searchsorted(offsets, start, "right") - 1
    if start + packed.lengths[p] > offsets[record + 1]:
        return count
    place = start - offsets[record]
    if is_beaten(search, record, p, place):
        return count
    for i in range(0, packed.lengths[p], 64):
        g = packed.planes[packed.words[p] + (i >> 6)]
        differ = differing(window(search.planes, 0, start + i), g, search.strict)
        left = packed.lengths[p] - i
        if left < 64:
            differ &= (ONE << np.uint64(left)) - ONE
        if differ:
            return count
    return keep(search, record, p, place, 0, count)


# ---- looking up ---------------------------------------------------------------------------------


@jit_no_alloc
def _follow_choices(search: Any, q: Any, bases: Any, count: Any) -> Any:
    """Check every pattern that the index has for the window at q, whatever its ambiguous bases."""
    (mask, low, high), index = bases, search.seeds
    mask, unambiguous, chosen = bases_of(mask, mask), bases_of(low, high), np.uint64(0)
    while True:
        key = hashed(unambiguous | chosen)
        if may_have(index.known, index.known_shift, key):
            count = _follow(search, q, unambiguous | chosen, key, count)
        chosen = (chosen - mask) & mask
        if not chosen:
            break
    return count


@jit_no_alloc
def _follow(search: Any, q: Any, bases: Any, key: Any, count: Any) -> Any:
    """Check every pattern that the index has for these bases at q."""
    index = search.seeds
    entry = index.heads[key >> np.uint64(index.bucket_shift)]
    while entry >= 0:
        if index.entries[entry, 0] == np.int32(bases):
            p = index.seeded[entry // index.stride]
            count = _check(search, q - entry % index.stride - index.anchors[p], p, count)
        entry = index.entries[entry, 1]
    return count


@jit_no_alloc
def _next_candidate(
    planes: Any, q: Any, end: Any, k: Any, stride: Any, strict: Any, known: Any, shift: Any
) -> Any:  # fmt: skip
    """Return the next window that the index may hold, or cannot answer for: (position, *window).

    Position -1: there is none.
    """
    # On its own: where a loop follows what it finds, too, the search takes half as long again.
    k_bits = (ONE << np.uint64(k)) - ONE
    while q + k <= end:
        word = q >> 6
        here, after = two_bits(planes, word), two_bits(planes, word + 1)
        clean = not (here[0] | (after[0] & k_bits))
        if clean and not _any_known(here, after, k_bits, stride, known, shift):
            q = 64 * (word + 1)  # every stride divides 64
            continue
        stop = min(64 * (word + 1), end - k + 1)
        while q < stop:
            mask, low, high = _window_of(here, after, q & 63, k_bits)
            low, high = low & ~mask, high & ~mask
            # With `strict` a seed's single base matches no ambiguous one.
            if mask and not strict:
                return q, mask, low, high
            if not mask and may_have(known, shift, hashed(bases_of(low, high))):
                return q, mask, low, high
            q += stride
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
