"""Hits with mismatches, and candidates with edits, by tables of seeds, on a CPU.

`seed_tables.cu` makes the same tables on a GPU. See `seeds.py`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import popcount, trailing_zeros
from multigpu.kernels.scan.approximate.seeds import CHECKED, CHOICES, LONGEST, SHORTEST, TablePlan
from multigpu.kernels.scan.cpu_planes import (
    ALL,
    ONE,
    HitSearch,
    PackedPatterns,
    Samples,
    bases_from,
    below,
    count_mismatches,
    keep,
    search_hits,
    settle,
    single,
    two_bits,
    window,
)
from multigpu.kernels.scan.types import Limits, Wanted

ONE_EDIT = -1  # in place of a number of mismatches


class SeedTable(NamedTuple):
    """Seeds of `k` bases, by their bases.

    A key has the low bits of the bases' codes (A 0, C 1, G 2, T 3) and, above them, the high ones.
    Pieces are numbered pattern by pattern, in the order of their places. An entry is four words:
    low and high bits of CHECKED bases, as they were chosen where the seed is ambiguous; which of
    them to compare; the piece. The upper bits of the first two say how many of the bases the piece
    has, and how many together with the next one.
    """

    k: int
    most: int  # mismatches that an entry may have
    widest: int  # most bases from a piece to the next one of its pattern
    known: NDArray[np.uint32]  # [4^k / 32] a bit for every key that a seed has
    heads: NDArray[np.int32]  # [4^k + 1] the first entry of each key
    entries: NDArray[np.uint32]  # [entries, 4]
    pattern: NDArray[np.int32]  # [pieces]
    begin: NDArray[np.int32]  # [pieces] place of the piece and its seed in the pattern
    first: NDArray[np.int32]  # [patterns + 1] the first piece of each


def count_windows(packed: PackedPatterns) -> NDArray[np.int32]:
    """Return the windows of each length that each pattern has; see `plan_seeds`."""
    windows = np.zeros((LONGEST + 1, len(packed.lengths), 2), np.int32)
    for k in range(SHORTEST, LONGEST + 1):
        _count_windows(packed, k, windows[k])
    return windows


def make_table(packed: PackedPatterns, limits: Limits, plan: TablePlan) -> SeedTable:
    """Return the table of a plan."""
    count, keys = int(plan.first[-1]), 4**plan.k
    table = SeedTable(
        k=plan.k,
        most=plan.most,
        widest=0,
        known=np.zeros(keys // 32, np.uint32),
        heads=np.zeros(keys + 1, np.int32),
        entries=np.empty((0, 4), np.uint32),
        pattern=np.empty(count, np.int32),
        begin=np.empty(count, np.int32),
        first=plan.first,
    )
    choices = np.empty(count, np.uint8)
    _place_seeds(packed, limits.most, plan.windows, table, choices)
    _count_entries(packed, table, choices)
    np.cumsum(table.heads, out=table.heads)
    widest = np.diff(table.begin)[np.diff(table.pattern) == 0].max(initial=0)
    entries = np.empty((table.heads[-1], 4), np.uint32)
    table = table._replace(widest=int(widest), entries=entries)
    _fill_entries(packed, table, choices, table.heads.copy())
    return table


@jit_no_alloc
def _ambiguous(planes: Any, word: Any, at: Any, k: Any) -> Any:
    a, c, g, t = window(planes, word, at)
    return ~single(a, c, g, t) & ((ONE << np.uint64(k)) - ONE)


@jit_no_alloc
def _next_window(planes: Any, word: Any, length: Any, at: Any, k: Any, clean: Any) -> Any:
    """Return the next window of a pattern from `at` on: begin, whether clean, and the next clean.

    Clean windows, of no ambiguous base, are taken as if there were no others; between them those
    with one ambiguous base are taken. Without another the begin is the pattern's length.

    word   the pattern's first
    clean  the next clean window, or a negative number where it is to be found
    """
    if clean < at:
        clean = at
        while clean + k <= length:
            mask = _ambiguous(planes, word, clean, k)
            if not mask:
                break
            clean += trailing_zeros(mask) + 1
        if clean + k > length:
            clean = length
    while at + k <= clean:
        if popcount(_ambiguous(planes, word, at, k)) == 1:
            return at, False, clean
        at += 1
    return clean, True, clean


@jit_no_alloc
def _count_windows(packed: Any, k: Any, windows: Any) -> None:
    """Count the windows of each pattern that do not overlap: clean ones, and others."""
    planes = packed.planes
    for p in range(packed.lengths.shape[0]):
        word, length = packed.words[p], packed.lengths[p]
        at, is_clean, clean = _next_window(planes, word, length, np.int64(0), k, np.int64(-1))
        while at < length:
            windows[p, 0 if is_clean else 1] += 1
            at, is_clean, clean = _next_window(planes, word, length, at + k, k, clean)


@jit_no_alloc
def _place_seeds(packed: Any, most: Any, windows: Any, table: Any, choices: Any) -> None:
    """Choose windows of each pattern as evenly as there are any, clean ones if they are enough.

    choices  uint8[pieces]  entries of each; guards have none
    """
    planes = packed.planes
    for p in range(packed.lengths.shape[0]):
        word, length = packed.words[p], packed.lengths[p]
        place, stop = np.int64(table.first[p]), np.int64(table.first[p + 1])
        looked_up = place + most[p] + 1
        wanted_clean = min(stop - place, np.int64(windows[p, 0]))
        wanted_other = stop - place - wanted_clean
        seen_clean = taken_clean = seen_other = taken_other = 0
        at, clean = np.int64(0), np.int64(-1)
        while place < stop:
            at, is_clean, clean = _next_window(planes, word, length, at, table.k, clean)
            if is_clean:
                is_taken = seen_clean * wanted_clean >= taken_clean * windows[p, 0]
                is_taken &= taken_clean < wanted_clean
                seen_clean, taken_clean = seen_clean + 1, taken_clean + is_taken
            else:
                is_taken = seen_other * wanted_other >= taken_other * windows[p, 1]
                is_taken &= taken_other < wanted_other
                seen_other, taken_other = seen_other + 1, taken_other + is_taken
            if is_taken:
                table.pattern[place], table.begin[place] = p, at
                choices[place] = 0 if place >= looked_up else 1 if is_clean else CHOICES
                place += 1
            at += table.k


@jit_no_alloc
def _count_entries(packed: Any, table: Any, choices: Any) -> None:
    """Mark the keys that seeds have; count the entries of each where the next one's begin."""
    for piece in range(choices.shape[0]):
        for choice in range(choices[piece]):
            low, high, _ = _bases_of(packed, table, piece, choice)
            key = key_of(low, high, table.k)
            table.known[key >> np.uint64(5)] |= np.uint32(ONE << (key & np.uint64(31)))
            table.heads[key + ONE] += 1


@jit_no_alloc
def _fill_entries(packed: Any, table: Any, choices: Any, places: Any) -> None:
    """Write the entries. places: int32[4^k + 1], where the next one of each key goes."""
    for piece in range(choices.shape[0]):
        own = _bases_before(packed, table, piece, piece + 1)
        both = _bases_before(packed, table, piece, piece + 2)
        for choice in range(choices[piece]):
            low, high, compared = _bases_of(packed, table, piece, choice)
            key = key_of(low, high, table.k)
            entry = table.entries[places[key]]
            places[key] += 1
            entry[0] = low | np.uint64(own) << np.uint64(CHECKED)
            entry[1] = high | np.uint64(both) << np.uint64(CHECKED)
            entry[2], entry[3] = compared, piece


@jit_no_alloc
def _bases_of(packed: Any, table: Any, piece: Any, choice: Any) -> Any:
    """Return low and high bits of a piece's first bases, and which of them are compared.

    choice  the base that stands for the seed's ambiguous one
    """
    p, at = table.pattern[piece], np.int64(table.begin[piece])
    a, c, g, t = window(packed.planes, packed.words[p], at)
    inside = (ONE << np.uint64(min(np.int64(CHECKED), packed.lengths[p] - at))) - ONE
    compared = single(a, c, g, t) & inside
    chosen = ~compared & ((ONE << np.uint64(table.k)) - ONE)
    low, high = (c | t) & compared, (g | t) & compared
    if choice & 1:
        low |= chosen
    if choice & 2:
        high |= chosen
    return low, high, compared


@jit_no_alloc
def key_of(low: Any, high: Any, k: Any) -> Any:
    inside = (ONE << np.uint64(k)) - ONE
    return (low & inside) | (high & inside) << np.uint64(k)


@jit_no_alloc
def _bases_before(packed: Any, table: Any, piece: Any, other: Any) -> Any:
    """Return how many of the CHECKED bases of a piece lie before another one of its pattern."""
    p = table.pattern[piece]
    end = packed.lengths[p]
    if other < table.first[p + 1]:
        end = np.int64(table.begin[other])
    return min(np.int64(CHECKED), end - np.int64(table.begin[piece]))


class SeedSearch(NamedTuple):
    """A search by a table of seeds.

    Of edits a hit's start is the end of one with as many insertions after the seed as deletions.

    hits   samples, patterns and rules, and what is found
    edits  whether insertions and deletions count, too
    left   int64[pieces], scratch
    """

    hits: HitSearch
    table: SeedTable
    edits: bool
    left: NDArray[np.int64]


def search(
    samples: Samples,
    patterns: PackedPatterns,
    limits: Limits,
    table: SeedTable,
    *,
    edits: bool,
    strict: bool,
    wanted: Wanted,
) -> NDArray[np.int64]:
    """Return what is found in all records, as in `SeedSearch`; of edits all candidates."""
    left = np.empty(len(table.pattern), np.int64)
    return search_hits(
        lambda hits: _search(SeedSearch(hits, table, edits, left)), samples, patterns, limits,
        strict=strict, wanted="all" if edits else wanted,
    )  # fmt: skip


@jit_no_alloc
def _search(search: Any) -> Any:
    """Look every window up; return how much is found, even if there is no room for all."""
    table, offsets, planes = search.table, search.hits.samples.offsets, search.hits.samples.planes
    count, k = 0, table.k
    for record in range(offsets.shape[0] - 1):
        position, stop = offsets[record], offsets[record + 1] - k + 1
        while position < stop:
            word = position >> 6
            here, after = two_bits(planes, word), two_bits(planes, word + 1)
            wanted = _wanted(here, after, table, search.hits.strict)
            wanted &= ALL << np.uint64(position & 63)
            if stop - 64 * word < 64:
                wanted &= (ONE << np.uint64(stop & 63)) - ONE
            while wanted:
                at = trailing_zeros(wanted)
                wanted &= wanted - ONE
                bases = bases_from(here, after, np.uint64(at))
                place = 64 * word + at
                if _matches_everything(search.hits, record, place - table.widest, place + k):
                    count = _settle_in_gap(search, record, place, count)
                    continue
                most = ONE_EDIT if search.edits else table.most
                left = _follow(bases, table, most, search.left)
                for piece in search.left[:left]:
                    count = _settle(search, record, 64 * word + at, piece, count)
            position = 64 * (word + 1)
    return count


@jit_no_alloc
def _is_known(known: Any, key: Any) -> Any:
    return np.uint64(known[key >> np.uint64(5)]) >> (key & np.uint64(31)) & ONE


@jit_no_alloc
def _wanted(here: Any, after: Any, table: Any, strict: Any) -> Any:
    """Return the positions of a word whose windows a seed has, or may have by a choice of bases."""
    k_bits = (ONE << np.uint64(table.k)) - ONE
    wanted = np.uint64(0)
    for at in range(64):
        shift = np.uint64(at)
        ambiguous, low, high = bases_from(here, after, shift)
        is_known = _is_known(table.known, key_of(low, high, table.k))
        if ambiguous & k_bits:
            # With `strict` only the one base of a seed that may be ambiguous matches such a base.
            is_known = np.uint64(not strict or popcount(ambiguous & k_bits) == 1)
        wanted |= is_known << shift
    return wanted


@jit_no_alloc
def _follow(bases: Any, table: Any, most: Any, left: Any) -> Any:
    """Set the pieces that the bases may be those of, without an error; return their number.

    most  mismatches in the bases of an entry; ONE_EDIT for edits
    """
    k_bits, entries, heads = (ONE << np.uint64(table.k)) - ONE, table.entries, table.heads
    count = np.int64(0)
    if ONE << np.uint64(2 * popcount(bases[0] & k_bits)) > np.uint64(entries.shape[0]):
        return _compare(bases, k_bits, most, entries, 0, entries.shape[0], left, count)
    # Subtracting the mask steps through all choices of the bits in it.
    mask, chosen = key_of(bases[0], bases[0], table.k), np.uint64(0)
    unambiguous = key_of(bases[1], bases[2], table.k) & ~mask
    while True:
        key = unambiguous | chosen
        if _is_known(table.known, key):
            stop = heads[key + ONE]
            count = _compare(bases, k_bits, most, entries, heads[key], stop, left, count)
        chosen = (chosen - mask) & mask
        if not chosen:
            break
    return count


@jit_no_alloc
def _compare(
    bases: Any, k_bits: Any, most: Any, entries: Any, first: Any, stop: Any, left: Any, count: Any
) -> Any:
    for entry in range(first, stop):
        row = (entries[entry, 0], entries[entry, 1], entries[entry, 2])
        differ = _differ(bases, row)
        is_left = popcount(differ) <= most or (
            most == ONE_EDIT and _has_one_edit(bases, row, differ)
        )
        if is_left and not _has_other_choice(bases, row, k_bits):
            left[count] = entries[entry, 3]
            count += 1
    return count


@jit_no_alloc
def _differ(bases: Any, row: Any) -> Any:
    """Return which bases of an entry differ from those of a sample."""
    differ = (bases[1] ^ np.uint64(row[0])) | (bases[2] ^ np.uint64(row[1]))
    return differ & np.uint64(row[2]) & ~bases[0]


@jit_no_alloc
def _has_other_choice(bases: Any, row: Any, k_bits: Any) -> Any:
    """Whether another entry of a seed with an ambiguous base stands for the sample's base there."""
    known = ~bases[0]
    other = (bases[1] & known ^ np.uint64(row[0])) | (bases[2] & known ^ np.uint64(row[1]))
    return other & k_bits & ~np.uint64(row[2]) != 0


@jit_no_alloc
def _has_one_edit(bases: Any, row: Any, differ: Any) -> Any:
    """Whether a piece has no error, and the next one at most one edit; of the bases of an entry."""
    own = below(np.int64(row[0] >> np.uint32(CHECKED)))
    both = below(np.int64(row[1] >> np.uint32(CHECKED)))
    differ &= both
    if differ & own:
        return False
    # The first base that differs is the one after which there is no other.
    rest = both & ~(differ ^ (differ - ONE))
    if not differ & rest:
        return True
    inserted = (bases[0] >> ONE, bases[1] >> ONE, bases[2] >> ONE)
    deleted = (bases[0] << ONE, bases[1] << ONE, bases[2] << ONE)
    at = differ & (~differ + ONE)
    return not _differ(inserted, row) & (rest | at) or not _differ(deleted, row) & rest


@jit_no_alloc
def _matches_everything(search: Any, record: Any, first: Any, stop: Any) -> Any:
    """Whether all bases [first, stop) match every base, and are of the record."""
    offsets = search.samples.offsets
    if search.strict or first < offsets[record] or stop > offsets[record + 1]:
        return False
    for at in range(stop - 1, first - 1, -1):
        word = at >> 6
        planes = search.samples.planes[word]
        every = planes[0] & planes[1] & planes[2] & planes[3]
        if not every >> np.uint64(at & 63) & ONE:
            return False
    return True


@jit_no_alloc
def _settle_in_gap(search: Any, record: Any, position: Any, count: Any) -> Any:
    """Keep what is found by the first pieces of patterns, as every other one follows another.

    Far from the gap's ends the ends of hits with edits are one stretch, of which a part is enough.
    """
    first = search.table.first
    is_far = search.edits and _matches_everything(
        search.hits, record, position - search.table.widest - 1, position + CHECKED + 1
    )
    for p in range(first.shape[0] - 1):
        if first[p] == first[p + 1] or (is_far and position % (search.hits.limits.most[p] + 1)):
            continue
        count = _settle(search, record, position, first[p], count)
    return count


@jit_no_alloc
def _settle(search: Any, record: Any, position: Any, own: Any, count: Any) -> Any:
    hits, table = search.hits, search.table
    p = table.pattern[own]
    start = position - table.begin[own]
    if _follows_piece(hits, table, record, p, own, start):
        return count
    if not search.edits:
        return settle(hits, record, p, start, count)
    length, is_last = hits.patterns.lengths[p], own + 1 == table.first[p + 1]
    piece_end = length if is_last else np.int64(table.begin[own + 1])
    if start + piece_end > hits.samples.offsets[record + 1]:
        return count
    return keep(hits, record, p, start + length - hits.samples.offsets[record], 0, count)


@jit_no_alloc
def _follows_piece(hits: Any, table: Any, record: Any, p: Any, own: Any, start: Any) -> Any:
    """Whether the piece before has no error there, either, so that it finds what this one does."""
    if own == table.first[p]:
        return False
    begin = np.int64(table.begin[own - 1])
    if start + begin < hits.samples.offsets[record]:
        return False
    return count_mismatches(hits, p, start, begin, np.int64(table.begin[own])) == 0
