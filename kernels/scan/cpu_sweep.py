"""The sweep over all positions on a CPU: a few mismatches are counted for 64 positions a word.

Counter bit b of a position stands in plane b. A counter begins so high that it overflows with the
first mismatch too many, which takes the position out. Bases that must match take it out at once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import trailing_zeros
from multigpu.kernels.scan.cpu_patterns import ALL, ONE, PackedPatterns
from multigpu.kernels.scan.types import Limits, Wanted

TILE = 32  # words that are swept together: 2,048 positions
SEGMENT = 8  # words after them in which a pattern's bases are looked at before others are laid out
FEW_PLANES = 3  # of counters at least
MOST_PLANES = 24  # of counters: no pattern has 2^24 bases that differ

FIRST_ROOM = 1 << 20  # hits: memory that is not used costs nothing
EVERY, FIRST, BEST = range(3)
CHOICES: dict[Wanted, int] = {"all": EVERY, "first": FIRST, "best": BEST}
ANY_BASE = 15  # the set that matches everything


class _SweepOfSamples(NamedTuple):
    """Samples, patterns and rules of a sweep, what it finds, and its memory."""

    planes: NDArray[np.uint64]  # [words, 4] of the samples
    offsets: NDArray[np.int64]  # [records + 1]
    packed: PackedPatterns
    most: NDArray[np.int64]  # [patterns], as in `Limits`
    prefix: NDArray[np.int64]
    suffix: NDArray[np.int64]
    chosen: NDArray[np.int64]  # patterns that are searched
    tiles: NDArray[np.bool_]  # [tiles] whether hits may begin there
    strict: bool
    choice: int
    found: NDArray[np.int64]  # [room, 4] record, pattern, start in the record, mismatches
    latest: NDArray[np.int64]  # [patterns, 2] record of the latest hit of each, and its number
    alive: NDArray[np.uint64]  # [TILE]
    differ: NDArray[np.uint64]  # [2, TILE] positions that do not match one base, and the next one
    counters: NDArray[np.uint64]  # [MOST_PLANES, TILE]
    held: NDArray[np.uint64]  # [4, TILE + SEGMENT + 1] planes of a tile and of what follows it,
    held_from: NDArray[np.int64]  # [1] from this word on


def sweep(
    planes: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    packed: PackedPatterns,
    limits: Limits,
    chosen: NDArray[np.int64],
    *,
    strict: bool,
    wanted: Wanted,
    tiles: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Return hits: all, or of each record and pattern the first, or the one with fewest errors.

    planes   uint64[words, 4]    see `multigpu.kernels.scan.cpu_patterns`
    offsets  int64[records + 1]  as in `Chunk`
    chosen   int64[n]            patterns that are searched
    strict   whether a base of a sample must be a subset of the pattern's
    tiles    bool[n]             whether hits may begin in a tile; None: in every one

    Returns int64[hits, 4]: record, pattern, start in the record and mismatches.
    """
    n = len(packed.lengths)
    every_tile = np.ones(tiles_of(offsets), bool)

    def search(found: NDArray[np.int64]) -> int:
        return int(
            _sweep(
                _SweepOfSamples(
                    planes=planes,
                    offsets=offsets,
                    packed=packed,
                    most=limits.most,
                    prefix=limits.prefix,
                    suffix=limits.suffix,
                    chosen=chosen,
                    tiles=every_tile if tiles is None else tiles,
                    strict=strict,
                    choice=CHOICES[wanted],
                    found=found,
                    latest=np.full((n, 2), -1, np.int64),
                    alive=np.empty(TILE, np.uint64),
                    differ=np.empty((2, TILE), np.uint64),
                    counters=np.empty((MOST_PLANES, TILE), np.uint64),
                    held=np.empty((4, TILE + SEGMENT + 1), np.uint64),
                    held_from=np.full(1, -1, np.int64),
                )
            )
        )

    return find_rows(search, FIRST_ROOM)


def tiles_of(offsets: NDArray[np.int64]) -> int:
    """Return the number of tiles of a chunk."""
    return int(-(-offsets[-1] // (64 * TILE)))


def find_rows(
    search: Callable[[NDArray[np.int64]], int], room: int, columns: int = 4
) -> NDArray[np.int64]:
    """Return the rows that a search finds; it is repeated where there was no room for all.

    search  fills int64[room, columns] and returns how many rows there are
    """
    while True:
        found = np.empty((room, columns), np.int64)
        count = search(found)
        if count <= room:
            return found[:count]
        room = count


# ---- hits ---------------------------------------------------------------------------------------


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


@jit_no_alloc
def is_beaten(search: Any, record: Any, p: Any, place: Any) -> Any:
    """Whether a hit is kept that is preferred to every one that begins at a place of the record."""
    if search.choice == EVERY or search.latest[p, 0] != record:
        return False
    at = search.latest[p, 1]
    if at >= search.found.shape[0] or search.found[at, 2] > place:
        return False
    return search.choice != BEST or search.found[at, 3] == 0


# ---- tiles --------------------------------------------------------------------------------------


@jit_no_alloc
def _sweep(search: Any) -> Any:
    """Search all records; return how many hits there are, even if there is no room for all."""
    offsets, count, record = search.offsets, 0, 0
    for number in range(search.tiles.shape[0]):
        if not search.tiles[number]:
            continue
        tile = number * TILE
        while offsets[record + 1] <= 64 * tile:
            record += 1
        is_inside = offsets[record + 1] >= 64 * (tile + TILE)
        for p in search.chosen:
            if search.choice == FIRST and is_inside and search.latest[p, 0] == record:
                continue
            if _fill_alive(search.alive, tile, offsets, record, search.packed.lengths[p]):
                count = _sweep_tile(search, tile, record, p, count)
    return count


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
def _sweep_tile(search: Any, tile: Any, record: Any, p: Any, count: Any) -> Any:
    """Count the mismatches of pattern p at the positions of the tile that are alive.

    Returns the number of hits, with those of before.
    """
    alive, differ, length = search.alive, search.differ, search.packed.lengths[p]
    prefix = min(search.prefix[p], length)
    stop = max(prefix, length - search.suffix[p])
    for place in range(prefix):
        if _look(search, tile, p, place, 0) and not _take_out(alive, differ[0]):
            return count
    for place in range(stop, length):
        if _look(search, tile, p, place, 0) and not _take_out(alive, differ[0]):
            return count
    most, n_planes = search.most[p], FEW_PLANES
    while most >> n_planes:
        n_planes += 1
    begin_at = (1 << n_planes) - 1 - most
    for plane in range(n_planes):
        for i in range(TILE):
            search.counters[plane, i] = ALL if begin_at >> plane & 1 else np.uint64(0)
    looked_at = 0
    for place in range(prefix, stop):
        looked_at += _look(search, tile, p, place, looked_at)
        if looked_at == 2:
            if not _count(search, n_planes):
                return count
            looked_at = 0
    if looked_at:
        differ[1] = np.uint64(0)
        if not _count(search, n_planes):
            return count
    return _keep_alive(search, tile, record, p, n_planes, begin_at, count)


@jit_no_alloc
def _look(search: Any, tile: Any, p: Any, place: Any, k: Any) -> Any:
    """Set search.differ[k] to the positions of the tile that do not match a base of pattern p.

    Returns 0 for a base that matches everything, else 1.
    """
    bases = search.packed.sets[search.packed.offsets[p] + place]
    if bases == ANY_BASE:
        return 0
    segment = place // (64 * SEGMENT)
    if search.held_from[0] != tile + segment * SEGMENT:
        search.held_from[0] = tile + segment * SEGMENT
        _hold(search.planes, search.held_from[0], search.held)
    offset = place - segment * 64 * SEGMENT
    _compare(search.held, offset, bases, search.strict, search.differ[k])
    return 1


@jit_no_alloc
def _hold(planes: Any, word: Any, held: Any) -> None:
    """Lay the planes of a tile and of what follows out, each plane's words side by side."""
    for i in range(held.shape[1]):
        for plane in range(4):
            held[plane, i] = planes[min(word + i, planes.shape[0] - 1), plane]


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
def _count(search: Any, n_planes: Any) -> Any:
    """Add two bits to the counters of all positions; return whether any are left alive."""
    alive, first, second = search.alive, search.differ[0], search.differ[1]
    ones, twos, fours = search.counters[0], search.counters[1], search.counters[2]
    for i in range(TILE):
        either = first[i] ^ second[i]
        two = (first[i] & second[i]) | (either & ones[i])
        four = two & twos[i]
        ones[i] ^= either
        twos[i] ^= two
        first[i] = four & fours[i]  # what is carried over
        fours[i] ^= four
    for plane in range(FEW_PLANES, n_planes):
        counter = search.counters[plane]
        for i in range(TILE):
            both = counter[i] & first[i]
            counter[i] ^= first[i]
            first[i] = both
    return _take_out(alive, first)


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
