"""Hits with mismatches, and candidates with edits, by seeds, on a CPU."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.compiled.native import popcount
from multigpu.kernels.scan.approximate.seeds import CHECKED, Table
from multigpu.kernels.scan.approximate.types import Limits
from multigpu.kernels.scan.cpu_patterns import ALL, pack_patterns, single, window
from multigpu.kernels.scan.types import Patterns

ONE = np.uint64(1)
NO_HIT = -1


class Target(NamedTuple):
    """Patterns as they are compared; see `multigpu.kernels.scan.cpu_patterns.Packed`."""

    planes: NDArray[np.uint64]
    words: NDArray[np.int64]
    lengths: NDArray[np.int64]
    most: NDArray[np.int64]
    prefix: NDArray[np.int64]
    suffix: NDArray[np.int64]


class Search(NamedTuple):
    """Samples, patterns and rules, for all that is found.

    planes   uint64[words, 4], see `multigpu.kernels.scan.cpu_patterns`
    offsets  int64[records + 1] as in `Chunk`
    found    int64[room, 4]: record, pattern, start and mismatches; of edits the end of a hit with
             as many insertions after the seed as deletions, and 0
    """

    planes: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    target: Target
    table: Table
    edits: bool
    strict: bool
    found: NDArray[np.int64]


def make_target(patterns: Patterns, limits: Limits) -> Target:
    """Return the patterns ready for comparing."""
    packed = pack_patterns(patterns)
    return Target(
        planes=packed.planes,
        words=packed.words,
        lengths=patterns.lengths,
        most=limits.most,
        prefix=limits.prefix,
        suffix=limits.suffix,
    )


def search(
    planes: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    target: Target,
    table: Table,
    *,
    edits: bool,
    strict: bool,
    room: int,
) -> NDArray[np.int64]:
    """Return what is found in all records, as in `Search`."""
    while True:
        found = np.empty((room, 4), np.int64)
        count = int(_search(Search(planes, offsets, target, table, edits, strict, found)))
        if count <= room:
            return found[:count]
        room = count


@lean
def _search(search: Any) -> Any:
    """Look every window up; return how much is found, even if there is no room for all."""
    count, k = 0, search.table.k
    k_bits = (ONE << np.uint64(k)) - ONE
    for record in range(search.offsets.shape[0] - 1):
        position, stop = search.offsets[record], search.offsets[record + 1] - k + 1
        while position < stop:
            word = position >> 6
            here, after = _bits_of(search.planes, word), _bits_of(search.planes, word + 1)
            word_stop = min(64 * (word + 1), stop)
            while position < word_stop:
                bases = _bases_at(here, after, np.uint64(position & 63))
                if not bases[0] & k_bits:
                    key = (bases[1] & k_bits) | (bases[2] & k_bits) << np.uint64(k)
                    count = _look_up(search, record, position, bases, key, count)
                elif not search.strict:
                    count = _try_choices(search, record, position, bases, bases[0] & k_bits, count)
                position += 1
    return count


@lean
def _bits_of(planes: Any, word: Any) -> Any:
    """Return which bases of a word are ambiguous, and the low and the high bits of their codes."""
    a, c, g, t = planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3]
    return ~single(a, c, g, t), c | t, g | t


@lean
def _bases_at(here: Any, after: Any, shift: Any) -> Any:
    """Return the same of the 64 bases from `shift` on."""
    up = np.uint64(63) - shift
    return (
        here[0] >> shift | after[0] << ONE << up,
        here[1] >> shift | after[1] << ONE << up,
        here[2] >> shift | after[2] << ONE << up,
    )


@lean
def _try_choices(search: Any, record: Any, position: Any, bases: Any, mask: Any, count: Any) -> Any:
    """Follow the seeds that match a window with ambiguous bases, those of `mask`."""
    table = search.table
    choices = ONE << np.uint64(2 * popcount(mask))
    if choices > np.uint64(table.entries.shape[0]):
        for entry in range(table.entries.shape[0]):
            count = _compare_entry(search, record, position, bases, entry, count)
        return count
    k_bits = (ONE << np.uint64(table.k)) - ONE
    low, high = bases[1] & k_bits & ~mask, bases[2] & k_bits & ~mask
    # Subtracting the mask steps through all choices of the bits in it.
    of_low = np.uint64(0)
    while True:
        of_high = np.uint64(0)
        while True:
            key = (low | of_low) | (high | of_high) << np.uint64(table.k)
            count = _look_up(search, record, position, bases, key, count)
            of_high = (of_high - mask) & mask
            if not of_high:
                break
        of_low = (of_low - mask) & mask
        if not of_low:
            break
    return count


@lean
def _look_up(search: Any, record: Any, position: Any, bases: Any, key: Any, count: Any) -> Any:
    """Follow all seeds with this key."""
    table = search.table
    if not table.known[key >> np.uint64(5)] >> np.uint32(key & np.uint64(31)) & np.uint32(1):
        return count
    for entry in range(table.heads[key], table.heads[key + ONE]):
        count = _compare_entry(search, record, position, bases, entry, count)
    return count


@lean
def _compare_entry(
    search: Any, record: Any, position: Any, bases: Any, entry: Any, count: Any
) -> Any:
    """Compare the bases from a seed on; keep what is found by it."""
    row = search.table.entries[entry]
    differ = (bases[1] ^ np.uint64(row[0])) | (bases[2] ^ np.uint64(row[1]))
    if popcount(differ & np.uint64(row[2]) & ~bases[0]) > search.table.most:
        return count
    seed = np.int64(row[3])
    p = search.table.pattern[seed]
    start = position - search.table.begin[seed]
    if search.edits:
        if not _may_follow(search, record, position, seed):
            return count
        errors = 0
        place = start + search.target.lengths[p]
    else:
        end = start + search.target.lengths[p]
        if start < search.offsets[record] or end > search.offsets[record + 1]:
            return count
        errors = _count_errors(search, p, seed, start)
        if errors == NO_HIT:
            return count
        place = start
    if count < search.found.shape[0]:
        search.found[count, 0], search.found[count, 1] = record, p
        search.found[count, 2], search.found[count, 3] = place - search.offsets[record], errors
    return count + 1


# ---- mismatches ---------------------------------------------------------------------------------


@lean
def _count_errors(search: Any, p: Any, seed: Any, start: Any) -> Any:
    """Return the mismatches at a start; NO_HIT for too many, and where another piece reports it."""
    table, length = search.table, search.target.lengths[p]
    first, stop = np.int64(table.first[p]), np.int64(table.first[p + 1])
    left = np.int64(0)  # pieces from the seed's on, less their mismatches
    lowest = stop - first
    for step in range(stop - first):
        piece = seed + step
        if piece >= stop:
            piece -= stop - first
            lowest = min(lowest, left)
        end = length if piece + 1 == stop else np.int64(table.begin[piece + 1])
        left += 1 - _count_mismatches(search, p, start, np.int64(table.begin[piece]), end)
        if piece + 1 == stop:  # the bases before the first seed are the last piece's
            left -= _count_mismatches(search, p, start, np.int64(0), np.int64(table.begin[first]))
        if left <= 0:
            return NO_HIT
    return stop - first - left if left <= lowest else NO_HIT


@lean
def _count_mismatches(search: Any, p: Any, start: Any, first: Any, stop: Any) -> Any:
    """Return the mismatches of the bases [first, stop) of a pattern; too many in exact parts."""
    target, count = search.target, 0
    exact_stop = target.lengths[p] - target.suffix[p]
    for place in range(first, stop, 64):
        a, c, g, t = window(search.planes, 0, start + place)
        pa, pc, pg, pt = window(target.planes, target.words[p], place)
        if search.strict:
            wrong = (a & ~pa) | (c & ~pc) | (g & ~pg) | (t & ~pt)
        else:
            wrong = ~((a & pa) | (c & pc) | (g & pg) | (t & pt))
        wrong &= _below(stop - place)
        count += popcount(wrong)
        if wrong & (_below(target.prefix[p] - place) | ~_below(exact_stop - place)):
            return target.most[p] + 1
    return count


@lean
def _below(count: Any) -> Any:
    """Return a word with as many low bits set: none for a negative number, all from 64 on."""
    if count <= 0:
        return np.uint64(0)
    return ALL if count >= 64 else (ONE << np.uint64(count)) - ONE


# ---- edits --------------------------------------------------------------------------------------


@lean
def _may_follow(search: Any, record: Any, position: Any, seed: Any) -> Any:
    """Whether the bases after a piece without an error may be those of a hit.

    Of l pieces after it fewer than l + 1 edits are asked. The first bases after it are aligned in a
    column of bits (Myers 1999), to all that follows in the sample.
    """
    table, target = search.table, search.target
    p = table.pattern[seed]
    place = np.int64(table.begin[seed])
    is_last = seed + 1 == table.first[p + 1]
    end = target.lengths[p] if is_last else np.int64(table.begin[seed + 1])
    compared = min(np.int64(CHECKED), end - place)
    end = search.offsets[record + 1]
    if position + compared > end:
        return False
    rows = min(np.int64(CHECKED), target.lengths[p] - place - compared)
    if rows == 0:
        return True
    most = (CHECKED - 1) // table.k + 1  # so many pieces may begin there
    a, c, g, t = window(target.planes, target.words[p], place + compared)
    plus, minus, errors = ALL, np.uint64(0), rows
    last = np.uint64(rows - 1)
    at = position + compared
    stop = min(end, at + rows + most)
    while errors > most and at < stop:
        equal = _rows_equal(search.planes, at, (a, c, g, t), search.strict)
        vertical = equal | minus
        horizontal = (((equal & plus) + plus) ^ plus) | equal
        up, down = minus | ~(horizontal | plus), plus & horizontal
        errors += np.int64(up >> last & ONE) - np.int64(down >> last & ONE)
        up, down = up << ONE | ONE, down << ONE
        plus, minus = down | ~(vertical | up), up & vertical
        at += 1
    return errors <= most


@lean
def _rows_equal(planes: Any, at: Any, rows: Any, strict: Any) -> Any:
    """Return the bases of a pattern, given by their planes, that match the base of a sample."""
    word, bit = at >> 6, np.uint64(at & 63)
    equal = ALL if strict else np.uint64(0)
    for plane in range(4):
        is_set = np.uint64(0) - (planes[word, plane] >> bit & ONE)
        if strict:
            equal &= rows[plane] | ~is_set
        else:
            equal |= rows[plane] & is_set
    return equal
