"""Mismatches on a CPU: 64 positions a word, whose mismatches are counted in bit planes.

Counter bit b of a position stands in plane b. A counter begins so high that it overflows with the
first mismatch too many, which takes the position out.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.compiled.native import trailing_zeros
from multigpu.kernels.scan.approximate.types import Limits
from multigpu.kernels.scan.cpu_patterns import ALL
from multigpu.kernels.scan.types import Patterns

TILE = 32  # words that are counted together: 2,048 positions
AHEAD = 8  # words after them in which bases are looked at before others are laid out
HELD = TILE + AHEAD + 1
SEGMENT = 64 * AHEAD
FEW_PLANES = 3  # of counters at least
MOST_PLANES = 24  # of counters: no pattern has 2^24 bases that differ

ANY_BASE = 15  # the set that matches everything
ONE = np.uint64(1)


class Target(NamedTuple):
    """The patterns as they are compared: in which order their bases, and from which count on."""

    sets: NDArray[np.uint8]  # of the bases that may differ, the exact ones of each pattern first
    places: NDArray[np.int64]  # of these bases in their pattern
    offsets: NDArray[np.int64]  # [n + 1]
    lengths: NDArray[np.int64]  # [n]
    n_exact: NDArray[np.int64]  # [n]
    most: NDArray[np.int64]  # [n]


class Room(NamedTuple):
    """Room for hits, and scratch memory."""

    record: NDArray[np.int32]
    pattern: NDArray[np.int32]
    start: NDArray[np.int64]
    errors: NDArray[np.int32]
    filled: NDArray[np.int64]  # [1] number of hits; more than there is room for: full
    alive: NDArray[np.uint64]  # [TILE]
    carry: NDArray[np.uint64]  # [TILE]
    counters: NDArray[np.uint64]  # [MOST_PLANES, TILE]
    held: NDArray[np.uint64]  # [4, HELD] planes of a tile and of what follows it,
    held_from: NDArray[np.int64]  # [1] from this word on


def make_target(patterns: Patterns, limits: Limits) -> Target:
    """Return the patterns ready for comparing: what must match comes first, as most fail there."""
    places, n_exact = [], np.zeros(len(patterns), np.int64)
    for p, length in enumerate(patterns.lengths.tolist()):
        bases = patterns.sets[patterns.offsets[p] : patterns.offsets[p + 1]]
        place = np.flatnonzero(bases != ANY_BASE)
        is_exact = (place < limits.prefix[p]) | (place >= length - limits.suffix[p])
        places.append(np.concatenate([place[is_exact], place[~is_exact]]))
        n_exact[p] = is_exact.sum()
    offsets = np.zeros(len(patterns) + 1, np.int64)
    np.cumsum([len(each) for each in places], out=offsets[1:])
    joined = np.concatenate(places)
    return Target(
        sets=patterns.sets[np.repeat(patterns.offsets[:-1], np.diff(offsets)) + joined],
        places=joined,
        offsets=offsets,
        lengths=patterns.lengths,
        n_exact=n_exact,
        most=limits.most,
    )


def make_room(hits: int) -> Room:
    """Return room for as many hits."""
    return Room(
        record=np.empty(hits, np.int32),
        pattern=np.empty(hits, np.int32),
        start=np.empty(hits, np.int64),
        errors=np.empty(hits, np.int32),
        filled=np.zeros(1, np.int64),
        alive=np.empty(TILE, np.uint64),
        carry=np.empty(TILE, np.uint64),
        counters=np.empty((MOST_PLANES, TILE), np.uint64),
        held=np.empty((4, HELD), np.uint64),
        held_from=np.empty(1, np.int64),
    )


@lean
def search(planes: Any, offsets: Any, begin: Any, target: Any, strict: Any, room: Any) -> Any:
    """Search the records from `begin` on; return the first one for which there was no room.

    planes   uint64[words, 4], see `multigpu.kernels.scan.cpu_patterns`
    offsets  int64[records + 1] as in `Chunk`
    strict   whether a base of a sample must be a subset of the pattern's
    """
    room.held_from[0] = -1
    for record in range(begin, offsets.shape[0] - 1):
        before = room.filled[0]
        reach = (record, offsets[record], offsets[record + 1])
        for tile in range(reach[1] // 64, (reach[2] + 63) // 64, TILE):
            for p in range(target.most.shape[0]):
                _search_tile(planes, tile, reach, p, target, strict, room)
        if room.filled[0] > room.record.shape[0]:
            room.filled[0] = before
            return record
    return offsets.shape[0] - 1


@lean
def _search_tile(
    planes: Any, tile: Any, reach: Any, p: Any, target: Any, strict: Any, room: Any
) -> None:
    """Count the mismatches of pattern p at the positions of the tile that are in the record."""
    first, stop = target.offsets[p], target.offsets[p + 1]
    most = target.most[p]
    if not _fill_alive(room.alive, tile, reach[1], reach[2] - target.lengths[p] + 1):
        return
    n_planes = FEW_PLANES
    while most >> n_planes:
        n_planes += 1
    begin_at = (1 << n_planes) - 1 - most
    for plane in range(n_planes):
        for i in range(TILE):
            room.counters[plane, i] = ALL if begin_at >> plane & 1 else np.uint64(0)
    for i in range(first, stop):
        segment = target.places[i] // SEGMENT
        if room.held_from[0] != tile + segment * AHEAD:
            room.held_from[0] = tile + segment * AHEAD
            _hold(planes, room.held_from[0], room.held)
        offset, bases = target.places[i] - segment * SEGMENT, target.sets[i]
        _compare(room.held, offset, bases, strict, room.carry)
        if i < first + target.n_exact[p]:
            any_left = _take_out(room.alive, room.carry)
        elif n_planes == FEW_PLANES:
            any_left = _count(room.counters, room.carry, room.alive)
        else:
            for plane in range(n_planes):
                _add(room.counters[plane], room.carry)
            any_left = _take_out(room.alive, room.carry)
        if not any_left:
            return
    _keep(room, tile, reach, p, n_planes, begin_at)


@lean
def _fill_alive(alive: Any, tile: Any, begin: Any, end: Any) -> Any:
    """Set the positions of the tile within [begin, end); return whether there are any."""
    any_left = np.uint64(0)
    for i in range(TILE):
        low = max(0, min(64, begin - 64 * (tile + i)))
        high = max(0, min(64, end - 64 * (tile + i)))
        alive[i] = np.uint64(0)
        if high > low:
            alive[i] = (ALL >> np.uint64(64 - (high - low))) << np.uint64(low)
        any_left |= alive[i]
    return any_left != 0


@lean
def _compare(held: Any, offset: Any, bases: Any, strict: Any, differ: Any) -> None:
    """Set the bits of positions whose base, `offset` bases on, does not match the set `bases`."""
    down, up = np.uint64(offset & 63), np.uint64(63 - (offset & 63))
    word = offset >> 6
    if not bases & (bases - np.uint8(1)) and not strict:
        plane = held[trailing_zeros(np.uint64(bases))]
        here, after = plane[word : word + TILE], plane[word + 1 : word + 1 + TILE]
        for i in range(TILE):
            differ[i] = ~((here[i] >> down) | (after[i] << ONE << up))
        return
    for i in range(TILE):
        has, lacks = np.uint64(0), np.uint64(0)
        for plane in range(4):
            under = (held[plane, word + i] >> down) | (held[plane, word + i + 1] << ONE << up)
            if bases >> plane & 1:
                has |= under
            else:
                lacks |= under
        differ[i] = lacks if strict else ~has


@lean
def _hold(planes: Any, word: Any, held: Any) -> None:
    """Lay the planes of a tile and of what follows out, each plane's words side by side."""
    last = planes.shape[0] - 1
    for i in range(HELD):
        for plane in range(4):
            held[plane, i] = planes[min(word + i, last), plane]


@lean
def _take_out(alive: Any, wrong: Any) -> Any:
    """Take positions out; return whether any are left."""
    any_left = np.uint64(0)
    for i in range(TILE):
        alive[i] &= ~wrong[i]
        any_left |= alive[i]
    return any_left != 0


@lean
def _count(counters: Any, differ: Any, alive: Any) -> Any:
    """Add the bits to counters of three planes, all steps in one; return whether any are left."""
    ones, twos, fours = counters[0], counters[1], counters[2]
    any_left = np.uint64(0)
    for i in range(TILE):
        one = differ[i]
        two = one & ones[i]
        four = two & twos[i]
        alive[i] &= ~(four & fours[i])
        ones[i] ^= one
        twos[i] ^= two
        fours[i] ^= four
        any_left |= alive[i]
    return any_left != 0


@lean
def _add(counter: Any, carry: Any) -> None:
    """Add a bit to each position's bit of a counter; what is carried over is left in `carry`."""
    for i in range(TILE):
        both = counter[i] & carry[i]
        counter[i] ^= carry[i]
        carry[i] = both


@lean
def _keep(room: Any, tile: Any, reach: Any, p: Any, n_planes: Any, begin_at: Any) -> None:
    """Keep the positions that are left as hits."""
    for i in range(TILE):
        left = room.alive[i]
        while left:
            bit = np.uint64(trailing_zeros(left))
            left &= left - ONE
            errors = np.int64(0)
            for plane in range(n_planes):
                errors |= np.int64(room.counters[plane, i] >> bit & ONE) << plane
            at = room.filled[0]
            if at >= room.record.shape[0]:
                room.filled[0] = room.record.shape[0] + 1
                return
            room.record[at], room.pattern[at] = reach[0], p
            room.start[at] = 64 * (tile + i) + np.int64(bit) - reach[1]
            room.errors[at] = errors - begin_at
            room.filled[0] = at + 1
