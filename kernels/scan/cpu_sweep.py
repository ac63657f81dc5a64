"""The sweep over all positions on a CPU: mismatches are counted in bytes, many at a time.

Of each pattern so many bases are compared at all positions of a tile that hardly one is left by
chance. Where few enough differ, the pattern is compared whole.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import LETTER_SETS
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.cpu_planes import FIRST, PackedPatterns, Samples, search_hits, settle
from multigpu.kernels.scan.types import Limits, Wanted

TILE = 2048  # positions that are swept together
REACH = 512  # bases of a pattern among which those are that are counted,
MOST_COUNTED = 255  # of which there are no more, as a counter is a byte
ANY_BASE = 15  # the set that matches everything


class _Tiles(NamedTuple):
    """Tiles of a chunk that are swept, and memory for one."""

    chosen: NDArray[np.bool_]  # [tiles]
    sets: NDArray[np.uint8]  # [TILE + REACH] of bases of a tile and of what follows it
    mismatches: NDArray[np.uint8]  # [TILE]


def sweep(
    samples: Samples,
    patterns: PackedPatterns,
    limits: Limits,
    chosen: NDArray[np.int64],
    *,
    strict: bool,
    wanted: Wanted,
    tiles: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Return hits: all, or of each record and pattern the first, or the one with fewest errors.

    chosen   int64[n]  patterns that are searched
    strict   whether a base of a sample must be a subset of the pattern's
    tiles    bool[n]   whether hits may begin in a tile; None: in every one

    Returns int64[hits, 4]: record, pattern, start in the record and mismatches.
    """
    if not len(chosen):
        return np.empty((0, 4), np.int64)
    swept = _Tiles(
        chosen=np.ones(tiles_of(samples.letters), bool) if tiles is None else tiles,
        sets=np.empty(TILE + REACH, np.uint8),
        mismatches=np.empty(TILE, np.uint8),
    )
    search = partial(_sweep, swept, chosen)
    return search_hits(search, samples, patterns, limits, strict=strict, wanted=wanted)


def tiles_of(letters: NDArray[np.uint8]) -> int:
    """Return the number of tiles of a chunk."""
    return -(-len(letters) // TILE)


@jit_no_alloc
def _sweep(tiles: Any, chosen: Any, search: Any) -> Any:
    """Search all records; return how many hits there are, even if there is no room for all."""
    offsets, count, record = search.samples.offsets, 0, 0
    for number in range(tiles.chosen.shape[0]):
        if not tiles.chosen[number]:
            continue
        begin = number * TILE
        end = min(begin + TILE, offsets[-1])
        while offsets[record + 1] <= begin:
            record += 1
        is_inside = offsets[record + 1] >= end
        _lay_out(search.samples.letters[begin : end + REACH], tiles.sets)
        for p in chosen:
            if search.choice == FIRST and is_inside and search.latest[p, 0] == record:
                continue
            mismatches = tiles.mismatches[: end - begin]
            if _count(search, p, tiles.sets, mismatches) <= search.limits.most[p]:
                count = _settle_few(search, begin, record, p, mismatches, count)
    return count


@jit_no_alloc
def _lay_out(letters: Any, sets: Any) -> None:
    """Set the sets of the letters; after the last one nothing matches."""
    for i in range(letters.shape[0]):
        sets[i] = LETTER_SETS[letters[i]]
    sets[letters.shape[0] :] = 0


@jit_no_alloc
def _count(search: Any, p: Any, sets: Any, mismatches: Any) -> Any:
    """Count mismatches of the first bases of a pattern at all positions; return the fewest."""
    bases = search.patterns.sets[search.patterns.offsets[p] : search.patterns.offsets[p + 1]]
    left = min(MOST_COUNTED, search.limits.most[p] * 3 // 2 + 16)
    mismatches[:] = 0
    for i in range(min(bases.shape[0], REACH)):
        if not left:
            break
        if bases[i] != ANY_BASE:
            _compare(sets[i : i + mismatches.shape[0]], bases[i], search.strict, mismatches)
            left -= 1
    fewest = np.uint8(MOST_COUNTED)
    for each in mismatches:
        fewest = min(fewest, each)
    return fewest


@jit_no_alloc
def _compare(under: Any, base: Any, strict: Any, mismatches: Any) -> None:
    # Loops without a condition inside become vector instructions.
    if strict:
        for i in range(mismatches.shape[0]):
            mismatches[i] += np.uint8(under[i] & ~base != 0)
    else:
        for i in range(mismatches.shape[0]):
            mismatches[i] += np.uint8(under[i] & base == 0)


@jit_no_alloc
def _settle_few(search: Any, begin: Any, record: Any, p: Any, mismatches: Any, count: Any) -> Any:
    """Compare the pattern where few bases differ; return the number of hits."""
    for i in range(mismatches.shape[0]):
        if mismatches[i] <= search.limits.most[p]:
            while search.samples.offsets[record + 1] <= begin + i:
                record += 1
            count = settle(search, record, p, begin + i, count)
    return count
