"""The scan on a CPU: the scheme of this package in Numba, one thread a call, without the GIL."""

from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.buffers import Buffers
from kernels.jit import lean
from kernels.native import matching_of_8, popcount, strike_8, trailing_zeros
from kernels.scan.cpu_patterns import (
    HELD,
    STEPS,
    TILE,
    Index,
    Target,
    hashed,
    make_index,
    make_target,
    may_have,
    pack,
    single,
    window,
)
from kernels.scan.seeds import EXPECTED_BASES, EXPECTED_N, FEW_N, SeedPlan
from kernels.scan.types import BadBaseError, Chunk, Hits, Patterns, Rules

SPARSE = 128  # more of a tile's 512 positions than this are swept, fewer compared one by one
FIRST_ROOM = 1 << 14  # hits


class Sink(NamedTuple):
    """Where hits go, and what is known of the record under way."""

    record: NDArray[np.int32]
    pattern: NDArray[np.int32]
    start: NDArray[np.int64]
    counts: NDArray[np.int64]  # [0] hits, more than there is room for: full; [1] length of `found`
    best: NDArray[np.int64]  # [patterns] the record's first start of each, -1: none
    found: NDArray[np.int32]  # [patterns] those that have one


@dataclass(frozen=True, eq=False)
class Way:
    """The patterns made ready for samples with about as many ambiguous bases."""

    target: Target
    plan: SeedPlan
    index: Index


class Scanner:
    """Searches chunks for the same patterns. Safe to use from several threads at once.

    bases: about how many are going to be searched; nothing but speed depends on it.
    """

    def __init__(self, patterns: Patterns, rules: Rules, bases: float = EXPECTED_BASES) -> None:
        self.patterns, self.rules, self._bases = patterns, rules, bases
        self._ways: dict[float, Way] = {}
        self._lock = Lock()
        self._buffers = Buffers(lambda size: np.empty(size, np.uint8))

    def way(self, ambiguous: float) -> Way:
        """How chunks with this share of ambiguous bases are searched.

        The index for many is far larger, so each is made when a chunk needs it.
        """
        expected = FEW_N if ambiguous <= FEW_N else EXPECTED_N
        with self._lock:
            if expected not in self._ways:
                target, plan = make_target(self.patterns, self._bases, expected)
                self._ways[expected] = Way(target, plan, make_index(target, plan))
            return self._ways[expected]

    def scan(self, chunk: Chunk, limit: int | None = None) -> Hits:
        """All hits that begin before `limit`, a position in the chunk.

        Raises BadBaseError at the first illegal letter.
        """
        words = len(chunk.letters) // 64 + 3
        planes = self._buffers.take(4 * 8 * words).view(np.uint64).reshape(words, 4)
        try:
            return self._scan(chunk, planes, limit)
        finally:
            self._buffers.give(planes)

    def _scan(self, chunk: Chunk, planes: NDArray[np.uint64], limit: int | None) -> Hits:
        illegal, ambiguous = pack(chunk.letters, planes, np.empty(64, np.uint8))
        if illegal >= 0:
            raise BadBaseError(illegal)
        way = self.way(ambiguous / max(1, len(chunk.letters)))
        scratch = np.empty(4 * HELD + 2 * TILE, np.uint64)
        done, room, parts = 0, FIRST_ROOM, [Hits.none()]
        while done < len(chunk.offsets) - 1:
            sink = self._sink(room)
            stop = _search(
                planes, chunk.offsets, done, way.target, way.index, sink, scratch,
                self.rules.first, self.rules.strict,
            )  # fmt: skip
            count = int(sink.counts[0])
            parts.append(Hits(sink.record[:count], sink.pattern[:count], sink.start[:count]))
            room *= 1 if stop > done else 8
            done = stop
        hits = Hits.joined(parts)
        if limit is not None:
            hits = hits.where(chunk.offsets[hits.record] + hits.start < limit)
        return hits.ordered(self.patterns.strands, self.rules.first)

    def seconds(self) -> dict[str, float]:
        """There is nothing between the beginning of a scan and its end to tell apart."""
        return {}

    def close(self) -> None:
        self._buffers.clear()

    def _sink(self, room: int) -> Sink:
        n = len(self.patterns)
        return Sink(
            np.empty(room, np.int32),
            np.empty(room, np.int32),
            np.empty(room, np.int64),
            np.zeros(2, np.int64),
            np.full(n, -1, np.int64),
            np.empty(n, np.int32),
        )


@lean
def _search(
    planes: Any, offsets: Any, begin: Any, target: Any, index: Any, sink: Any, scratch: Any,
    first: Any, strict: Any,
) -> Any:  # fmt: skip
    """Searches the records from `begin` on; returns the first one for which there was no room.

    scratch: uint64[4 * HELD + 2 * TILE], anything.

    With `first` a record has at most one hit of each pattern, the first.
    """
    held, wanted, alive = scratch[: 4 * HELD], scratch[4 * HELD :][:TILE], scratch[-TILE:]
    for record in range(begin, offsets.shape[0] - 1):
        before = sink.counts[0]
        sink.counts[1] = 0
        reach = (record, offsets[record], offsets[record + 1])
        tile, stop = reach[1] // 64, (reach[2] + 63) // 64
        while tile < stop:
            if first and sink.counts[1] == target.lengths.shape[0]:
                break
            if not target.unseeded.shape[0]:
                tile = _pass_over(
                    planes, tile, stop, index.k, index.stride, index.clean_filter, index.clean_shift
                )
            if target.unseeded.shape[0]:
                _want(wanted, tile, reach[1], reach[2])
                _hold(planes, tile, held, strict)
                _sweep(
                    planes, tile, held, wanted, alive, target, target.unseeded, reach, sink,
                    first, strict,
                )  # fmt: skip
            if target.seeded.shape[0]:
                wanted[:] = 0
                _probe(planes, tile, wanted, target, index, reach, sink, first, strict)
                if _count(wanted) > SPARSE:
                    _hold(planes, tile, held, strict)
                    _sweep(
                        planes, tile, held, wanted, alive, target, target.seeded, reach, sink,
                        first, strict,
                    )  # fmt: skip
                else:
                    _compare_each(planes, tile, wanted, target, reach, sink, first, strict)
            tile += TILE
        for i in range(sink.counts[1]):
            p = sink.found[i]
            _append(sink, record, p, sink.best[p])
            sink.best[p] = -1
        if sink.counts[0] > sink.record.shape[0]:
            sink.counts[0] = before
            return record
    return offsets.shape[0] - 1


@lean
def _append(sink: Any, record: Any, p: Any, start: Any) -> None:
    """Keeps a hit, or counts that there is no room."""
    count = sink.counts[0]
    if count < sink.record.shape[0]:
        sink.record[count], sink.pattern[count], sink.start[count] = record, p, start
        count += 1
    else:
        count = sink.record.shape[0] + 1
    sink.counts[0] = count


# ---- comparing -------------------------------------------------------------------------------


@lean
def _differ(s: Any, g: Any, strict: Any) -> Any:
    """Which of 64 bases of the sample `s` do not match the pattern `g` (four planes each)."""
    if strict:
        return (s[0] & ~g[0]) | (s[1] & ~g[1]) | (s[2] & ~g[2]) | (s[3] & ~g[3])
    return ~((s[0] & g[0]) | (s[1] & g[1]) | (s[2] & g[2]) | (s[3] & g[3]))


@lean
def _occurs(planes: Any, position: Any, target: Any, p: Any, strict: Any) -> Any:
    """The complete comparison: does pattern p stand at `position`?"""
    word = target.words[p]
    for i in range(0, target.lengths[p], 64):
        w = word + (i >> 6)
        g = (target.planes[w, 0], target.planes[w, 1], target.planes[w, 2], target.planes[w, 3])
        differ = _differ(window(planes, 0, position + i), g, strict)
        left = target.lengths[p] - i
        if left < 64:
            differ &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        if differ:
            return False
    return True


@lean
def _check(
    planes: Any, start: Any, p: Any, target: Any, reach: Any, sink: Any, first: Any, strict: Any
) -> None:
    """Compares pattern p at the position `start` of the chunk and keeps the hit."""
    record, begin, end = reach
    if start < begin or start + target.lengths[p] > end:
        return
    if first and sink.best[p] >= 0 and sink.best[p] <= start - begin:
        return
    if not _occurs(planes, start, target, p, strict):
        return
    if not first:
        _append(sink, record, p, start - begin)
        return
    if sink.best[p] < 0:
        sink.found[sink.counts[1]] = p
        sink.counts[1] += 1
    sink.best[p] = start - begin


# ---- the indexed way -------------------------------------------------------------------------


@lean
def _probe(
    planes: Any, tile: Any, wanted: Any, target: Any, index: Any, reach: Any, sink: Any,
    first: Any, strict: Any,
) -> None:  # fmt: skip
    """Every `stride`-th window of the record that begins in the tile is looked up.

    The positions that only a window with too many ambiguous bases could find become `wanted`.
    """
    _, begin, end = reach
    stride = index.stride
    q = (max(begin, 64 * tile) + stride - 1) // stride * stride
    stop = min(end, 64 * (tile + TILE) + index.k - 1)  # of the last window that begins in the tile
    while True:
        q, key, mask = _next_candidate(
            planes, q, stop, index.k, stride, index.blanks, strict,
            index.clean_filter, index.clean_shift, index.blank_filter, index.blank_shift,
        )  # fmt: skip
        if q < 0:
            break
        if popcount(mask) > index.blanks:
            for position in range(max(begin, q - stride + 1), q + 1):
                if position < 64 * tile:
                    _compare(planes, position, target, reach, sink, first, strict)
                else:
                    i = position - 64 * tile
                    wanted[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
        else:
            _follow(planes, q, key, mask, target, index, reach, sink, first, strict)
        q += stride


@lean
def _follow(
    planes: Any, q: Any, key: Any, mask: Any, target: Any, index: Any, reach: Any, sink: Any,
    first: Any, strict: Any,
) -> None:  # fmt: skip
    """Checks every pattern that the index has for the window at q."""
    n_masks = index.masks.shape[0]
    entry = index.heads[key >> np.uint64(index.bucket_shift)]
    while entry >= 0:
        if index.entries[entry, 0] == np.int32(key) and index.masks[entry % n_masks] == mask:
            seed = entry // n_masks
            p = target.seeded[seed // index.stride]
            start = q - seed % index.stride - target.anchors[p]
            _check(planes, start, p, target, reach, sink, first, strict)
        entry = index.entries[entry, 1]


@lean
def _next_candidate(
    planes: Any, q: Any, end: Any, k: Any, stride: Any, most_blanks: Any, strict: Any,
    clean_filter: Any, clean_shift: Any, blank_filter: Any, blank_shift: Any,
) -> Any:  # fmt: skip
    """The next window that the index may hold, or cannot: (position or -1, hash, blanked)."""
    k_bits = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
    while q + k <= end:
        word = q >> 6
        here, behind = _two_bits(planes, word), _two_bits(planes, word + 1)
        clean = not (here[0] | (behind[0] & k_bits))
        if clean and not _any_known(here, behind, k_bits, stride, clean_filter, clean_shift):
            q = 64 * (word + 1)  # every stride divides 64
            continue
        stop = min(64 * (word + 1), end - k + 1)
        while q < stop:
            mask, low, high = _window_of(here, behind, q & 63, k_bits)
            key = hashed(mask, low & ~mask, high & ~mask)
            if mask == 0:
                found = may_have(clean_filter, clean_shift, key) != 0
            elif strict:  # a seed's single base is no superset of several
                found = False
            elif popcount(mask) > most_blanks:
                found = True
            else:
                found = may_have(blank_filter, blank_shift, key) != 0
            if found:
                return q, key, mask
            q += stride
    return -1, np.uint64(0), np.uint64(0)


@lean
def _pass_over(
    planes: Any, word: Any, stop: Any, k: Any, stride: Any, clean_filter: Any, clean_shift: Any
) -> Any:
    """The first word from `word` on in which a window may begin that the index has, or `stop`."""
    k_bits = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
    behind = _two_bits(planes, word)
    while word < stop:
        here, behind = behind, _two_bits(planes, word + 1)
        if here[0] | (behind[0] & k_bits):
            break
        if _any_known(here, behind, k_bits, stride, clean_filter, clean_shift):
            break
        word += 1
    return word


@lean
def _any_known(
    here: Any, behind: Any, k_bits: Any, stride: Any, clean_filter: Any, clean_shift: Any
) -> Any:
    """Whether the filter has one of the windows that begin in a word without ambiguous bases.

    All are looked up, without a branch in between; usual strides are literals, so that the compiler
    knows the shifts.
    """
    if stride == 16:
        return _known(here, behind, k_bits, 16, clean_filter, clean_shift)
    if stride == 8:
        return _known(here, behind, k_bits, 8, clean_filter, clean_shift)
    return _known(here, behind, k_bits, stride, clean_filter, clean_shift)


@lean
def _known(
    here: Any, behind: Any, k_bits: Any, stride: Any, clean_filter: Any, clean_shift: Any
) -> Any:
    known = np.uint64(0)
    for shift in range(0, 64, stride):
        _, low, high = _window_of(here, behind, shift, k_bits)
        known |= may_have(clean_filter, clean_shift, hashed(0, low, high))
    return known


@lean
def _two_bits(planes: Any, word: Any) -> Any:
    """A word of the sample: which bases are ambiguous, and two bits a base, A 00 C 01 G 10 T 11."""
    a, c, g, t = planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3]
    return ~single(a, c, g, t), c | t, g | t


@lean
def _window_of(here: Any, behind: Any, shift: Any, k_bits: Any) -> Any:
    """The window that begins at `shift` in the word `here`; `behind` is the word after it."""
    down, up = np.uint64(shift), np.uint64(63 - shift)
    return (
        ((here[0] >> down) | (behind[0] << np.uint64(1) << up)) & k_bits,
        ((here[1] >> down) | (behind[1] << np.uint64(1) << up)) & k_bits,
        ((here[2] >> down) | (behind[2] << np.uint64(1) << up)) & k_bits,
    )


# ---- the direct way, few positions -----------------------------------------------------------


@lean
def _compare_each(
    planes: Any, tile: Any, wanted: Any, target: Any, reach: Any, sink: Any, first: Any, strict: Any
) -> None:
    for word in range(TILE):
        left = wanted[word]
        while left:
            position = 64 * (tile + word) + trailing_zeros(left)
            left &= left - np.uint64(1)
            _compare(planes, position, target, reach, sink, first, strict)


@lean
def _compare(
    planes: Any, position: Any, target: Any, reach: Any, sink: Any, first: Any, strict: Any
) -> None:
    """All patterns with a seed, their anchors at `position`."""
    under = window(planes, 0, position)
    block, matching = _next_matching(target.seeded_anchor, 0, under, strict)
    while matching:
        p = target.seeded[block + trailing_zeros(np.uint64(matching))]
        _check(planes, position - target.anchors[p], p, target, reach, sink, first, strict)
        matching &= matching - 1
        if not matching:
            block, matching = _next_matching(target.seeded_anchor, block + 8, under, strict)


@lean
def _next_matching(anchor: Any, block: Any, under: Any, strict: Any) -> Any:
    """The next eight anchors from `block` on of which one matches: (block, bits), bits 0: none."""
    while block < anchor.shape[1]:
        matching = matching_of_8(anchor, block, under, strict)
        if matching:
            return block, matching
        block += 8
    return block, 0


# ---- the direct way, many positions ----------------------------------------------------------


@lean
def _want(wanted: Any, tile: Any, begin: Any, end: Any) -> None:
    """All positions of the tile in [begin, end)."""
    for word in range(TILE):
        low = max(0, min(64, begin - 64 * (tile + word)))
        high = max(0, min(64, end - 64 * (tile + word)))
        bits = np.uint64(0)
        if high > low:
            bits = (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - (high - low))) << np.uint64(low)
        wanted[word] = bits


@lean
def _count(wanted: Any) -> Any:
    total = 0
    for word in wanted:
        total += popcount(word)
    return total


@lean
def _hold(planes: Any, tile: Any, held: Any, strict: Any) -> None:
    """The planes of the tile and of what follows, each plane's words side by side."""
    for i in range(HELD):
        word = min(tile + i, planes.shape[0] - 1)
        a, c, g, t = planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3]
        usable = single(a, c, g, t) if strict else np.uint64(0xFFFFFFFFFFFFFFFF)
        held[i], held[HELD + i] = a & usable, c & usable
        held[2 * HELD + i], held[3 * HELD + i] = g & usable, t & usable


@lean
def _sweep(
    planes: Any, tile: Any, held: Any, wanted: Any, alive: Any, target: Any, chosen: Any,
    reach: Any, sink: Any, first: Any, strict: Any,
) -> None:  # fmt: skip
    """Strikes out of the wanted positions those that differ in one of a pattern's bases."""
    i = 0
    before = 64 * tile - reach[1] if first else -1  # starts whose anchor lies before the tile
    while True:
        i = _next_alive(
            i, chosen, held, target.steps, target.n_steps, target.anchors, sink.best, before,
            wanted, alive,
        )  # fmt: skip
        if i < 0:
            break
        _check_each(planes, tile, alive, chosen[i], target, reach, sink, first, strict)
        i += 1


@lean
def _next_alive(
    i: Any, chosen: Any, held: Any, steps: Any, n_steps: Any, anchors: Any, best: Any,
    before: Any, wanted: Any, alive: Any,
) -> Any:  # fmt: skip
    """The next of the chosen patterns, from the i-th on, that the steps leave positions: or -1.

    These are in `alive`. A pattern whose first hit was found `before` the tile is passed over.
    """
    while i < chosen.shape[0]:
        p = chosen[i]
        if best[p] < 0 or best[p] + anchors[p] >= before:
            for word in range(TILE):
                alive[word] = wanted[word]
            left = 1
            for step in range(p * STEPS, p * STEPS + n_steps[p], 4):
                left = strike_8(held, steps, step, alive)
                if not left:
                    break
            if left:
                return i
        i += 1
    return -1


@lean
def _check_each(
    planes: Any, tile: Any, alive: Any, p: Any, target: Any, reach: Any, sink: Any,
    first: Any, strict: Any,
) -> None:  # fmt: skip
    for word in range(TILE):
        left = alive[word]
        while left:
            position = 64 * (tile + word) + trailing_zeros(left)
            left &= left - np.uint64(1)
            start = position - target.anchors[p]
            _check(planes, start, p, target, reach, sink, first, strict)
            if first and 0 <= sink.best[p] <= start - reach[1]:
                return
