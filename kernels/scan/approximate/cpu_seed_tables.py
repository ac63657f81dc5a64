"""Tables of seeds, made on a CPU; `seed_tables.cu` makes the same on a GPU. See `seeds.py`."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import popcount, trailing_zeros
from multigpu.kernels.scan.approximate.seeds import CHECKED, CHOICES, LONGEST, SHORTEST, TablePlan
from multigpu.kernels.scan.cpu_patterns import ONE, PackedPatterns, single, window
from multigpu.kernels.scan.types import Limits


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
    """Return which of k bases of a pattern are ambiguous."""
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
    """Write the entries.

    places  int32[4^k + 1]  where the next one of each key goes
    """
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
