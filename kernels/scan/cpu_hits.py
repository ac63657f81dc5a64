"""Comparison of a pattern at one place, and the hits that are kept, for all searches on a CPU."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import popcount
from multigpu.kernels.scan.cpu_patterns import ALL, ONE, PackedPatterns, differing, window
from multigpu.kernels.scan.types import Limits, Wanted

FIRST_ROOM = 1 << 20  # hits: memory that is not used costs nothing
EVERY, FIRST, BEST = range(3)
CHOICES: dict[Wanted, int] = {"all": EVERY, "first": FIRST, "best": BEST}


class Samples(NamedTuple):
    """A chunk that is searched.

    planes            uint64[words, 4], see `multigpu.kernels.scan.cpu_patterns`
    offsets, letters  as in `Chunk`
    """

    planes: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    letters: NDArray[np.uint8]


class HitSearch(NamedTuple):
    """Samples, patterns and rules of a search, and what it finds.

    strict   whether a base of a sample must be a subset of the pattern's
    choice   which of the hits of a record and a pattern are kept: all, the first, or the one with
             the fewest errors
    found    int64[room, 4] record, pattern, start in the record, mismatches
    latest   int64[patterns, 2] record of the latest hit of each pattern, and its number
    """

    samples: Samples
    patterns: PackedPatterns
    limits: Limits
    strict: bool
    choice: int
    found: NDArray[np.int64]
    latest: NDArray[np.int64]


def search_hits(
    search: Callable[[HitSearch], Any],
    samples: Samples,
    patterns: PackedPatterns,
    limits: Limits,
    *,
    strict: bool,
    wanted: Wanted,
) -> NDArray[np.int64]:
    """Return the hits that a search finds, int64[hits, 4] as in `HitSearch`.

    search  returns how many hits there are, even if there is no room for all; then it is repeated
    """

    def fill(found: NDArray[np.int64]) -> Any:
        latest = np.full((len(limits.most), 2), -1, np.int64)
        choice = CHOICES[wanted]
        return search(HitSearch(samples, patterns, limits, strict, choice, found, latest))

    return find_rows(fill)


def find_rows(search: Callable[[NDArray[np.int64]], Any], columns: int = 4) -> NDArray[np.int64]:
    """Return the rows that a search finds; it is repeated where int64[room, columns] is small."""
    room = FIRST_ROOM
    while True:
        found = np.empty((room, columns), np.int64)
        count = int(search(found))
        if count <= room:
            return found[:count]
        room = count


@jit_no_alloc
def settle(search: Any, record: Any, p: Any, start: Any, count: Any) -> Any:
    """Compare pattern p at a position of the chunk and keep the hit; return the number of hits."""
    begin, length = search.samples.offsets[record], search.patterns.lengths[p]
    if start < begin or start + length > search.samples.offsets[record + 1]:
        return count
    if _is_beaten(search, record, p, start - begin):
        return count
    errors = count_mismatches(search, p, start, np.int64(0), length)
    if errors > search.limits.most[p]:
        return count
    return keep(search, record, p, start - begin, errors, count)


@jit_no_alloc
def count_mismatches(search: Any, p: Any, start: Any, first: Any, stop: Any) -> Any:
    """Count mismatches of bases [first, stop), up to too many; an exact one is too many."""
    patterns, count = search.patterns, 0
    exact_stop = patterns.lengths[p] - search.limits.suffix[p]
    for place in range(first, stop, 64):
        under = window(search.samples.planes, 0, start + place)
        bases = window(patterns.planes, patterns.words[p], place)
        wrong = differing(under, bases, search.strict) & below(stop - place)
        count += popcount(wrong)
        if wrong & (below(search.limits.prefix[p] - place) | ~below(exact_stop - place)):
            return search.limits.most[p] + 1
        if count > search.limits.most[p]:
            break
    return count


@jit_no_alloc
def below(count: Any) -> Any:
    """Return a word with as many low bits set: none for a negative number, all from 64 on."""
    if count <= 0:
        return np.uint64(0)
    return ALL if count >= 64 else (ONE << np.uint64(count)) - ONE


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
def _is_beaten(search: Any, record: Any, p: Any, place: Any) -> Any:
    """Whether a hit is kept that is preferred to every one that begins at a place of the record."""
    if search.choice == EVERY or search.latest[p, 0] != record:
        return False
    at = search.latest[p, 1]
    if at >= search.found.shape[0] or search.found[at, 2] > place:
        return False
    return search.choice != BEST or search.found[at, 3] == 0
