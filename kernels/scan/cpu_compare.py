"""The complete comparison on a CPU: where a match is decided, and where hits go."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.cpu_index import Index
from multigpu.kernels.scan.cpu_patterns import Target, window


class Sink(NamedTuple):
    """Room for hits, and what is known of the record in progress."""

    hits: NDArray[np.int64]  # [room, 3] record, pattern, start
    counts: NDArray[np.int64]  # [0] hits, also those without room; [1] length of `found`
    best: NDArray[np.int64]  # [patterns] the record's first start of each, -1: none
    found: NDArray[np.int32]  # [patterns] those that have one


class Search(NamedTuple):
    """One search of a chunk: what is searched for, by which rules, and its scratch memory."""

    planes: NDArray[np.uint64]  # [words, 4] of the chunk
    target: Target
    seeds: Index
    sink: Sink
    is_first: bool  # a record has at most one hit of each pattern, the first
    is_strict: bool
    held: NDArray[np.uint64]  # [4, HELD] planes of a tile and of what follows
    wanted: NDArray[np.uint64]  # [TILE] positions of the tile to compare directly
    alive: NDArray[np.uint64]  # [TILE] those of them that one pattern may have


def find_rows(
    search: Callable[[NDArray[np.int64]], Any], room: int, columns: int = 4
) -> NDArray[np.int64]:
    """Return the rows that a search finds; it is repeated where there was no room for all.

    search  fills int64[room, columns] and returns how many rows there are
    """
    while True:
        found = np.empty((room, columns), np.int64)
        count = int(search(found))
        if count <= room:
            return found[:count]
        room = count


@jit_no_alloc
def append(sink: Any, record: Any, p: Any, start: Any) -> None:
    """Keep a hit if there is room for it, and count it."""
    count = sink.counts[0]
    if count < sink.hits.shape[0]:
        sink.hits[count, 0], sink.hits[count, 1], sink.hits[count, 2] = record, p, start
    sink.counts[0] = count + 1


@jit_no_alloc
def differing(s: Any, g: Any, is_strict: Any) -> Any:
    """Return which of 64 bases of sample `s` do not match pattern `g`, four planes each."""
    if is_strict:
        return (s[0] & ~g[0]) | (s[1] & ~g[1]) | (s[2] & ~g[2]) | (s[3] & ~g[3])
    return ~((s[0] & g[0]) | (s[1] & g[1]) | (s[2] & g[2]) | (s[3] & g[3]))


@jit_no_alloc
def occurs(planes: Any, position: Any, packed: Any, p: Any, is_strict: Any) -> Any:
    """Whether pattern p stands at `position`: the complete comparison, which every way ends in."""
    for i in range(0, packed.lengths[p], 64):
        g = packed.planes[packed.words[p] + (i >> 6)]
        differ = differing(window(planes, 0, position + i), g, is_strict)
        left = packed.lengths[p] - i
        if left < 64:
            differ &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        if differ:
            return False
    return True


@jit_no_alloc
def check(search: Any, reach: Any, start: Any, p: Any) -> None:
    """Compare pattern p at the position `start` of the chunk and keep the hit."""
    packed, sink = search.target.packed, search.sink
    record, begin, end = reach
    if start < begin or start + packed.lengths[p] > end:
        return
    if search.is_first and sink.best[p] >= 0 and sink.best[p] <= start - begin:
        return
    if not occurs(search.planes, start, packed, p, search.is_strict):
        return
    if not search.is_first:
        append(sink, record, p, start - begin)
        return
    if sink.best[p] < 0:
        sink.found[sink.counts[1]] = p
        sink.counts[1] += 1
    sink.best[p] = start - begin
