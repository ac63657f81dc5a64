"""The direct way on a CPU: positions that the index cannot answer for, few or many of them."""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.compiled.native import matching_of_8, popcount, strike_8, trailing_zeros
from multigpu.kernels.scan.cpu_compare import check
from multigpu.kernels.scan.cpu_patterns import HELD, TILE, single, window
from multigpu.kernels.scan.cpu_singles import list_singles, strike_by_singles

# ---- the direct way, few positions -----------------------------------------------------------


@lean
def compare_each(
    planes: Any, tile: Any, wanted: Any, target: Any, reach: Any, sink: Any, first: Any, strict: Any
) -> None:
    for word in range(TILE):
        left = wanted[word]
        while left:
            position = 64 * (tile + word) + trailing_zeros(left)
            left &= left - np.uint64(1)
            compare(planes, position, target, reach, sink, first, strict)


@lean
def compare(
    planes: Any, position: Any, target: Any, reach: Any, sink: Any, first: Any, strict: Any
) -> None:
    """All patterns with a seed, their anchors at `position`."""
    under = window(planes, 0, position)
    block, matching = _next_matching(target.seeded_anchor, 0, under, strict)
    while matching:
        p = target.seeded[block + trailing_zeros(np.uint64(matching))]
        check(planes, position - target.anchors[p], p, target, reach, sink, first, strict)
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
def want(wanted: Any, tile: Any, begin: Any, end: Any) -> None:
    """All positions of the tile in [begin, end)."""
    for word in range(TILE):
        low = max(0, min(64, begin - 64 * (tile + word)))
        high = max(0, min(64, end - 64 * (tile + word)))
        bits = np.uint64(0)
        if high > low:
            bits = (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - (high - low))) << np.uint64(low)
        wanted[word] = bits


@lean
def count_bits(wanted: Any) -> Any:
    total = 0
    for word in wanted:
        total += popcount(word)
    return total


@lean
def hold(planes: Any, tile: Any, held: Any, strict: Any) -> None:
    """The planes of the tile and of what follows, each plane's words side by side."""
    for i in range(HELD):
        word = min(tile + i, planes.shape[0] - 1)
        a, c, g, t = planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3]
        usable = single(a, c, g, t) if strict else np.uint64(0xFFFFFFFFFFFFFFFF)
        held[i], held[HELD + i] = a & usable, c & usable
        held[2 * HELD + i], held[3 * HELD + i] = g & usable, t & usable


@lean
def sweep(
    planes: Any, tile: Any, held: Any, wanted: Any, alive: Any, singles: Any, target: Any,
    chosen: Any, reach: Any, sink: Any, first: Any, strict: Any,
) -> None:  # fmt: skip
    """Strikes out of the wanted positions those that differ in one of a pattern's bases.

    singles: int64[SINGLES], anything
    """
    listed = -1
    if not strict and target.backwards.shape[1]:
        listed = list_singles(planes, tile, singles)
    i = 0
    before = 64 * tile - reach[1] if first else -1  # starts whose anchor lies before the tile
    while True:
        i = _next_alive(
            i, chosen, held, target.steps, target.steps_begin, target.anchors, target.lengths,
            target.backwards, target.backwards_begin, singles, listed, sink.best, before,
            wanted, alive,
        )  # fmt: skip
        if i < 0:
            break
        _check_each(planes, tile, alive, chosen[i], target, reach, sink, first, strict)
        i += 1


@lean
def _next_alive(
    i: Any, chosen: Any, held: Any, steps: Any, steps_begin: Any, anchors: Any, lengths: Any,
    backwards: Any, begins: Any, singles: Any, listed: Any, best: Any, before: Any, wanted: Any,
    alive: Any,
) -> Any:  # fmt: skip
    """The next of the chosen patterns, from the i-th on, that is left positions: or -1.

    These are in `alive`. A pattern whose first hit was found `before` the tile is passed over.
    listed: of the sample's single bases, which then strike; -1: the steps do.
    """
    while i < chosen.shape[0]:
        p = chosen[i]
        if best[p] < 0 or best[p] + anchors[p] >= before:
            for word in range(TILE):
                alive[word] = wanted[word]
            if listed < 0 or begins[p] < 0:
                left = _strike_by_steps(held, steps, steps_begin[p], steps_begin[p + 1], alive)
            else:
                size = (lengths[p] + 63) >> 6
                left = strike_by_singles(
                    backwards, begins[p], size, anchors[p], singles, listed, alive
                )
            if left:
                return i
        i += 1
    return -1


@lean
def _strike_by_steps(held: Any, steps: Any, begin: Any, end: Any, alive: Any) -> Any:
    """Strikes out of `alive` what differs in one of the pattern's bases; 0: nothing is left."""
    left = 1
    for step in range(begin, end, 4):
        left = strike_8(held, steps, step, alive)
        if not left:
            break
    return left


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
            check(planes, start, p, target, reach, sink, first, strict)
            if first and 0 <= sink.best[p] <= start - reach[1]:
                return
