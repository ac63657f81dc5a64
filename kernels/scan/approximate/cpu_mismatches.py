"""Mismatches on a CPU: 64 positions a word, whose mismatches are counted in bit planes.

Counter bit b of a position stands in plane b. A counter begins so high that it overflows with the
first mismatch too many, which takes the position out.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import trailing_zeros
from multigpu.kernels.scan.approximate.types import Limits, Wanted
from multigpu.kernels.scan.cpu_compare import find_rows
from multigpu.kernels.scan.cpu_patterns import AHEAD, ALL, HELD, TILE, hold
from multigpu.kernels.scan.types import Patterns

SEGMENT = 64 * AHEAD  # bases that are looked at before others are laid out
FEW_PLANES = 3  # of counters at least
MOST_PLANES = 24  # of counters: no pattern has 2^24 bases that differ

FIRST_ROOM = 1 << 20  # hits: memory that is not used costs nothing
EVERY, FIRST, BEST = range(3)
CHOICES: dict[Wanted, int] = {"all": EVERY, "first": FIRST, "best": BEST}
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


class Search(NamedTuple):
    """Samples, patterns and rules of a search, what it finds, and its memory."""

    planes: NDArray[np.uint64]  # [words, 4]
    offsets: NDArray[np.int64]  # [records + 1]
    target: Target
    strict: bool
    choice: int
    found: NDArray[np.int64]  # [room, 4] record, pattern, start in the record, mismatches
    latest: NDArray[np.int64]  # [patterns, 2] record of the latest hit of each, and its number
    alive: NDArray[np.uint64]  # [TILE]
    differ: NDArray[np.uint64]  # [2, TILE] positions that do not match one base, and the next one
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


def find(
    planes: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    target: Target,
    strict: bool,
    wanted: Wanted,
) -> NDArray[np.int64]:
    """Return hits: all, or of each record and pattern the first, or the one with fewest errors.

    planes   uint64[words, 4], see `multigpu.kernels.scan.cpu_patterns`
    offsets  int64[records + 1] as in `Chunk`
    strict   whether a base of a sample must be a subset of the pattern's

    Returns int64[hits, 4], see `Search`.
    """

    def search(found: NDArray[np.int64]) -> Any:
        return _search(
            Search(
                planes=planes,
                offsets=offsets,
                target=target,
                strict=strict,
                choice=CHOICES[wanted],
                found=found,
                latest=np.full((len(target.most), 2), -1, np.int64),
                alive=np.empty(TILE, np.uint64),
                differ=np.empty((2, TILE), np.uint64),
                counters=np.empty((MOST_PLANES, TILE), np.uint64),
                held=np.empty((4, HELD), np.uint64),
                held_from=np.full(1, -1, np.int64),
            )
        )

    return find_rows(search, FIRST_ROOM)


@jit_no_alloc
def _search(search: Any) -> Any:
    """Search all records; return how many hits there are, even if there is no room for all."""
    offsets, target = search.offsets, search.target
    count = record = 0
    for tile in range(0, (offsets[offsets.shape[0] - 1] + 63) // 64, TILE):
        while offsets[record + 1] <= 64 * tile:
            record += 1
        is_inside = offsets[record + 1] >= 64 * (tile + TILE)
        for p in range(target.most.shape[0]):
            if search.choice == FIRST and is_inside and search.latest[p, 0] == record:
                continue
            if _fill_alive(search.alive, tile, offsets, record, target.lengths[p]):
                count = _search_tile(search, tile, record, p, count)
    return count


@jit_no_alloc
def _search_tile(search: Any, tile: Any, record: Any, p: Any, count: Any) -> Any:
    """Count the mismatches of pattern p at the positions of the tile that are alive.

    Returns the number of hits, with those of before.
    """
    target, alive, differ, counters = search.target, search.alive, search.differ, search.counters
    first, stop = target.offsets[p], target.offsets[p + 1]
    most = target.most[p]
    n_planes = FEW_PLANES
    while most >> n_planes:
        n_planes += 1
    begin_at = (1 << n_planes) - 1 - most
    for plane in range(n_planes):
        for i in range(TILE):
            counters[plane, i] = ALL if begin_at >> plane & 1 else np.uint64(0)
    first_inexact = first + target.n_exact[p]
    for i in range(first, first_inexact):
        _look(search, tile, i, 0)
        if not _take_out(alive, differ[0]):
            return count
    for i in range(first_inexact, stop, 2):
        _look(search, tile, i, 0)
        if i + 1 < stop:
            _look(search, tile, i + 1, 1)
        else:
            differ[1] = np.uint64(0)
        if n_planes == FEW_PLANES:
            any_left = _count(counters, differ, alive)
        else:
            for k in range(2):
                for plane in range(n_planes):
                    _add(counters[plane], differ[k])
                any_left = _take_out(alive, differ[k])
        if not any_left:
            return count
    return _keep_alive(search, tile, record, p, n_planes, begin_at, count)


@jit_no_alloc
def _fill_alive(alive: Any, tile: Any, offsets: Any, record: Any, length: Any) -> Any:
    """Set the positions of a tile at which a pattern may begin; return whether there are any.

    record  the first one with bases in the tile
    """
    for i in range(TILE):
        alive[i] = np.uint64(0)
    any_left = False
    begin, end = 64 * tile, 64 * (tile + TILE)
    while record < offsets.shape[0] - 1 and offsets[record] < end:
        low = max(offsets[record], begin) - begin
        high = min(offsets[record + 1] - length + 1, end) - begin
        while low < high:
            inside = min(high - low, 64 - (low & 63))
            alive[low >> 6] |= (ALL >> np.uint64(64 - inside)) << np.uint64(low & 63)
            low += inside
            any_left = True
        record += 1
    return any_left


@jit_no_alloc
def _look(search: Any, tile: Any, i: Any, k: Any) -> None:
    """Set search.differ[k] to the positions of the tile that do not match base i of the target."""
    target = search.target
    segment = target.places[i] // SEGMENT
    if search.held_from[0] != tile + segment * AHEAD:
        search.held_from[0] = tile + segment * AHEAD
        hold(search.planes, search.held_from[0], search.held, False)
    offset = target.places[i] - segment * SEGMENT
    _compare(search.held, offset, target.sets[i], search.strict, search.differ[k])


@jit_no_alloc
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


@jit_no_alloc
def _take_out(alive: Any, wrong: Any) -> Any:
    """Take positions out; return whether any are left."""
    any_left = np.uint64(0)
    for i in range(TILE):
        alive[i] &= ~wrong[i]
        any_left |= alive[i]
    return any_left != 0


@jit_no_alloc
def _count(counters: Any, differ: Any, alive: Any) -> Any:
    """Add two bits to each counter of three planes in one pass; return whether any are left."""
    ones, twos, fours = counters[0], counters[1], counters[2]
    first, second = differ[0], differ[1]
    any_left = np.uint64(0)
    for i in range(TILE):
        either = first[i] ^ second[i]
        two = (first[i] & second[i]) | (either & ones[i])
        four = two & twos[i]
        alive[i] &= ~(four & fours[i])
        ones[i] ^= either
        twos[i] ^= two
        fours[i] ^= four
        any_left |= alive[i]
    return any_left != 0


@jit_no_alloc
def _add(counter: Any, carry: Any) -> None:
    """Add a bit to each position's bit of a counter; what is carried over is left in `carry`."""
    for i in range(TILE):
        both = counter[i] & carry[i]
        counter[i] ^= carry[i]
        carry[i] = both


@jit_no_alloc
def _keep_alive(
    search: Any, tile: Any, record: Any, p: Any, n_planes: Any, begin_at: Any, count: Any
) -> Any:
    """Keep the positions that are left as hits, as far as they are wanted; return their number."""
    offsets = search.offsets
    for i in range(TILE):
        left = search.alive[i]
        while left:
            bit = np.uint64(trailing_zeros(left))
            left &= left - ONE
            position = 64 * (tile + i) + np.int64(bit)
            while offsets[record + 1] <= position:
                record += 1
            errors = -begin_at
            for plane in range(n_planes):
                errors += np.int64(search.counters[plane, i] >> bit & ONE) << plane
            count = keep(search, record, p, position - offsets[record], errors, count)
    return count


@jit_no_alloc
def keep(search: Any, record: Any, p: Any, place: Any, errors: Any, count: Any) -> Any:
    """Keep a hit, or let it replace one that is less wanted; return the number of hits."""
    found, at = search.found, count
    if search.choice != EVERY and search.latest[p, 0] == record:
        at = search.latest[p, 1]
    if at < found.shape[0]:
        is_better = place < found[at, 2]
        if search.choice == BEST:
            is_better = errors < found[at, 3] or (errors == found[at, 3] and is_better)
        if at == count or is_better:
            found[at, 0], found[at, 1], found[at, 2], found[at, 3] = record, p, place, errors
    search.latest[p, 0], search.latest[p, 1] = record, at
    return max(count, at + 1)
