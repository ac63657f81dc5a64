"""The direct way on a CPU: positions that the index cannot answer for, few or many of them."""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import popcount, trailing_zeros
from multigpu.kernels.scan.cpu_compare import check, differing
from multigpu.kernels.scan.cpu_patterns import AHEAD, ALL, GROUP, TILE, hold, window

MANY = 2 * TILE  # more of a tile's positions than this are swept, fewer compared one by one


@jit_no_alloc
def compare_wanted(search: Any, tile: Any, reach: Any) -> None:
    """Compare all seeded patterns at the wanted positions of a tile."""
    count = 0
    for word in search.wanted:
        count += popcount(word)
    if count > MANY:
        sweep(search, tile, reach, search.target.seeded)
        return
    for word in range(TILE):
        left = search.wanted[word]
        while left:
            compare_at(search, 64 * (tile + word) + trailing_zeros(left), reach)
            left &= left - np.uint64(1)


# ---- few positions ----------------------------------------------------------------------------


@jit_no_alloc
def compare_at(search: Any, position: Any, reach: Any) -> None:
    """Compare all seeded patterns whose anchor may be at `position`."""
    target = search.target
    under = window(search.planes, 0, position)
    for begin in range(0, target.seeded_anchor.shape[1], GROUP):
        if not _any_matches(target.seeded_anchor, begin, under, search.is_strict):
            continue
        for i in range(begin, min(begin + GROUP, target.seeded.shape[0])):
            p = target.seeded[i]
            check(search, reach, position - target.anchors[p], p)


@jit_no_alloc
def _any_matches(anchors: Any, begin: Any, under: Any, is_strict: Any) -> Any:
    """Whether one of a group of anchors matches 64 bases of the sample."""
    end = begin + GROUP
    a, c = anchors[0, begin:end], anchors[1, begin:end]
    g, t = anchors[2, begin:end], anchors[3, begin:end]
    # All are counted: without a way out of the loop it becomes vector instructions.
    count = np.int64(0)
    for i in range(GROUP):
        count += np.int64(differing(under, (a[i], c[i], g[i], t[i]), is_strict) == 0)
    return count > 0


# ---- many positions ---------------------------------------------------------------------------


@jit_no_alloc
def want_all(wanted: Any, tile: Any, reach: Any) -> None:
    """Want all positions of the tile that are in the record."""
    _, begin, end = reach
    for word in range(TILE):
        low = max(0, min(64, begin - 64 * (tile + word)))
        high = max(0, min(64, end - 64 * (tile + word)))
        bits = np.uint64(0)
        if high > low:
            bits = (ALL >> np.uint64(64 - (high - low))) << np.uint64(low)
        wanted[word] = bits


@jit_no_alloc
def sweep(search: Any, tile: Any, reach: Any, chosen: Any) -> None:
    """Compare the chosen patterns at the wanted positions of a tile.

    Positions that differ from a pattern in one of its bases are struck out, base by base.
    """
    target, packed, best = search.target, search.target.packed, search.sink.best
    hold(search.planes, tile, search.held, search.is_strict)
    before = 64 * tile - reach[1] if search.is_first else -1
    for p in chosen:
        if 0 <= best[p] < before - target.anchors[p]:  # found before the tile
            continue
        bases = packed.sets[packed.offsets[p] + target.anchors[p] : packed.offsets[p + 1]]
        if _strike(search.held, bases[: 64 * AHEAD], search.wanted, search.alive):
            _check_alive(search, tile, reach, p)


@jit_no_alloc
def _strike(held: Any, bases: Any, wanted: Any, alive: Any) -> Any:
    """Set `alive` to the wanted positions that match all single bases; return if there are any."""
    left = np.uint64(1)
    for i in range(TILE):
        alive[i] = wanted[i]
    for offset in range(bases.shape[0]):
        base = np.uint64(bases[offset])
        if base & (base - np.uint64(1)):  # an ambiguous base is left to the complete comparison
            continue
        plane, word, shift = held[trailing_zeros(base)], offset >> 6, np.uint64(offset & 63)
        left = np.uint64(0)
        for i in range(TILE):
            high = (plane[word + i + 1] << np.uint64(1)) << (np.uint64(63) - shift)
            alive[i] &= (plane[word + i] >> shift) | high
            left |= alive[i]
        if not left:
            break
    return left


@jit_no_alloc
def _check_alive(search: Any, tile: Any, reach: Any, p: Any) -> None:
    """Compare pattern p at the positions that are alive, the first hit only where that is all."""
    for word in range(TILE):
        left = search.alive[word]
        while left:
            start = 64 * (tile + word) + trailing_zeros(left) - search.target.anchors[p]
            left &= left - np.uint64(1)
            check(search, reach, start, p)
            if search.is_first and 0 <= search.sink.best[p] <= start - reach[1]:
                return
