"""The plan of seeds: which patterns are found by pieces without an error, and a table of these.

A pattern that may have K errors is cut into K + 1 pieces, each of which begins with a seed, k bases
of which at most one is ambiguous. Imagine the pieces in a ring. Of every hit one piece has no
error, and l pieces from it on have fewer than l together, for every l: the sum of 1 - errors over
the whole ring is at least 1, so it is above 0 all along from the last place where it is lowest when
it begins at the first piece. So

1. every window of k bases of the samples is looked up in a table of 4^k lists of seeds. An
   ambiguous base of a sample stands for all four, one after the other, and so does one of a seed,
   which has four entries. Where both are ambiguous, A alone counts;
2. the first bases of the seed's piece and the next one, which stand in the table, are compared.
   They rule almost all out;
3. a piece that follows one without an error leaves it to that one;
4. mismatches: the ring is followed from the piece on until too many are found. A hit is reported
   by the last piece at which the sum is lowest, so once. Edits: the bases after the piece are
   aligned, and the ends where a hit may lie become candidates. After a pattern's last pieces there
   is little to compare: with g pieces more the sum is above g, which leaves a piece to begin at
   even if the last g are never looked up.

Counted for 1,000 patterns of 6,500 bases with 5 % errors (326,000 pieces of 20 bases) in 330 Mb and
k = 10: 0.3 entries a position, nearly all ruled out by step 2; with a tenth of all bases N
1.3^10 = 14 lookups and 4 entries. The sweep takes 200 pieces a pattern at every position.
"""

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.scan.approximate.types import Limits
from multigpu.kernels.scan.seeds import EXPECTED_BASES, EXPECTED_N
from multigpu.kernels.scan.types import Patterns

logger = logging.getLogger(__name__)

SHORTEST, LONGEST = 4, 11  # bases of a seed
CHECKED = 27  # bases from a seed on that stand in the table
CHOICES = 4  # entries of a seed with an ambiguous base
GUARDS = 2  # pieces that are never looked up, where edits are searched and there are windows for it


@dataclass(frozen=True)
class Costs:
    """Time that a machine spends on each kind of work at a position; only proportions matter."""

    position: float  # taking a window of a sample
    lookup: float  # looking up one choice of its bases
    candidate: float  # comparing the bases of one entry
    settled: float  # finding out on CPUs whether a candidate with edits is a hit
    mismatch: float  # comparing one base of a pattern in the sweep, for up to 8 mismatches
    edit: float  # one piece in the sweep for edits
    piece: int  # bases of the sweep's pieces
    whole: int  # bases of a pattern up to which the sweep takes it as a whole
    entry: float  # making one entry of a table, or one of its lists


CPU = Costs(  # ns
    position=8.0, lookup=6.0, candidate=60.0, settled=1e3, mismatch=0.025, edit=1.0, piece=64,
    whole=1 << 62, entry=100.0,
)  # fmt: skip
GPU = Costs(  # ps
    position=3.0, lookup=5.0, candidate=15.0, settled=1e5, mismatch=0.008, edit=0.9, piece=32,
    whole=32, entry=1e5,
)  # fmt: skip


class Table(NamedTuple):
    """Seeds of `k` bases, by their bases.

    A key has the low bits of the bases' codes (A 0, C 1, G 2, T 3) and, above them, the high ones.
    Pieces are numbered pattern by pattern, in the order of their places. An entry is four words:
    low and high bits of CHECKED bases, as they were chosen where the seed is ambiguous; which of
    them to compare; the piece. The upper bits of the first two say how many of the bases the piece
    has, and how many together with the next one.
    """

    k: int
    most: int  # mismatches that an entry may have
    known: NDArray[np.uint32]  # [4^k / 32] a bit for every key that a seed has
    heads: NDArray[np.int32]  # [4^k + 1] the first entry of each key
    entries: NDArray[np.uint32]  # [entries, 4]
    pattern: NDArray[np.int32]  # [pieces]
    begin: NDArray[np.int32]  # [pieces] place of the piece and its seed in the pattern
    first: NDArray[np.int32]  # [patterns + 1] the first piece of each


@dataclass(frozen=True, eq=False)
class Plan:
    """Tables of seeds, and the patterns that are in none.

    swept  int64[n], ascending
    work   expected time for a position, in the unit of the costs
    """

    tables: list[Table]
    swept: NDArray[np.int64]
    work: float


def plan_seeds(
    patterns: Patterns,
    limits: Limits,
    costs: Costs,
    *,
    edits: bool,
    strict: bool,
    bases: float = EXPECTED_BASES,
) -> Plan:
    """Return the plan with the least expected work, found greedily: one table after the other.

    strict  an ambiguous base of a sample does not match a single one
    bases   about how many are going to be searched
    """
    windows = np.zeros((LONGEST + 1, len(patterns), 2), np.int64)
    for k in range(SHORTEST, LONGEST + 1):
        _count_windows(patterns.sets, patterns.offsets, k, windows[k])
    clean, blurred = windows[:, :, 0], windows[:, :, 1]
    ambiguous = 0.0 if strict else EXPECTED_N
    swept_work = _sweep_work(patterns.lengths, limits.most, costs, edits)
    settled_work = _settled_work(patterns.lengths, limits.most, costs, ambiguous)
    pieces = limits.most + 1
    entries = pieces + (CHOICES - 1) * np.maximum(pieces - clean, 0)
    left, tables, work = np.arange(len(patterns)), [], 0.0
    while True:
        best, chosen, best_k = swept_work[left].sum(), left[:0], 0
        for k in range(SHORTEST, LONGEST + 1):
            chance = ((1 - ambiguous) / 4 + ambiguous) ** k
            each = entries[k, left] * (costs.candidate * chance + costs.entry / bases)
            if edits:
                each = each + settled_work[left]
            is_in = (clean + blurred)[k, left] >= pieces[left]
            is_in &= each < swept_work[left]
            here = costs.position + costs.lookup * (1 + 3 * ambiguous) ** k
            here += costs.entry * 4**k / bases / 32
            total = here + each[is_in].sum() + swept_work[left][~is_in].sum()
            if total < best:
                best, chosen, best_k = total, left[is_in], k
        if not len(chosen):
            break
        tables.append(make_table(patterns, limits, chosen, windows[best_k], best_k, edits))
        left = np.setdiff1d(left, chosen)
        work += best - swept_work[left].sum()
    work += swept_work[left].sum()
    logger.debug(
        "seeds of %s bases for %d patterns, a sweep for %d: %.3g a position expected",
        [table.k for table in tables], len(patterns) - len(left), len(left), work,
    )  # fmt: skip
    return Plan(tables, left, float(work))


def select(
    patterns: Patterns, limits: Limits, chosen: NDArray[np.int64]
) -> tuple[Patterns, Limits]:
    """Return some of the patterns, each as a signature of its own, and their limits."""
    offsets = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(patterns.lengths[chosen], out=offsets[1:])
    shift = np.repeat(patterns.offsets[chosen] - offsets[:-1], patterns.lengths[chosen])
    sets = patterns.sets[np.arange(offsets[-1]) + shift]
    return Patterns(sets, offsets), Limits(
        most=limits.most[chosen], prefix=limits.prefix[chosen], suffix=limits.suffix[chosen]
    )


def _sweep_work(
    lengths: NDArray[np.int64], most: NDArray[np.int64], costs: Costs, edits: bool
) -> NDArray[np.float64]:
    """Return the expected time of the sweep for each pattern at a position."""
    if edits:
        return costs.edit * -(-lengths // costs.piece).astype(np.float64)
    count = np.where(lengths > costs.whole, np.minimum(lengths // costs.piece, most + 1), 1)
    length = np.where(count > 1, costs.piece, lengths)
    # Three of four bases differ by chance, and of a thousand positions the last one is waited for.
    allowed = most // count + 1
    looked_at = np.minimum(length, allowed / 0.75 + 4 * np.sqrt(allowed) + 4)
    planes = np.maximum(1.0, np.log2(allowed) / 3)
    return np.asarray(costs.mismatch * count * looked_at * planes, np.float64)


def _settled_work(
    lengths: NDArray[np.int64], most: NDArray[np.int64], costs: Costs, ambiguous: float
) -> NDArray[np.float64]:
    """Return the expected time for settling candidates with edits of each pattern at a position.

    By chance a piece has no error and the next one up to one edit, which can be one of about eight
    at each base.
    """
    piece = lengths / (most + 1)
    chance = 8 * piece * ((1 - ambiguous) / 4 + ambiguous) ** (2 * piece)
    return np.asarray(costs.settled * (most + 1) * np.minimum(chance, 1.0), np.float64)


def make_table(
    patterns: Patterns,
    limits: Limits,
    chosen: NDArray[np.int64],
    windows: NDArray[np.int64],
    k: int,
    edits: bool,
) -> Table:
    """Return the table of the chosen patterns.

    windows  int64[patterns, 2]  see `_count_windows`
    """
    wanted = limits.most[chosen] + 1
    guards = np.minimum(GUARDS, windows[chosen].sum(1) - wanted) if edits else 0
    first = np.zeros(len(patterns) + 1, np.int32)
    first[chosen + 1] = wanted + guards
    np.cumsum(first, out=first)
    pattern = np.repeat(np.arange(len(patterns), dtype=np.int32), np.diff(first))
    begin = np.empty(len(pattern), np.int32)
    is_clean = np.empty(len(pattern), bool)
    _place_seeds(patterns.sets, patterns.offsets, windows, k, first, begin, is_clean)
    is_guard = np.arange(len(pattern)) - first[pattern] > limits.most[pattern]
    choices = np.where(is_guard, 0, np.where(is_clean, 1, CHOICES))
    piece = np.repeat(np.arange(len(pattern)), choices)
    choice = np.arange(len(piece)) - np.repeat(np.cumsum(choices) - choices, choices)
    entries = np.empty((len(piece), 4), np.uint32)
    keys = np.empty(len(piece), np.int64)
    _fill_entries(
        patterns.sets, patterns.offsets, piece, choice, pattern, begin, k, keys, entries
    )  # fmt: skip
    order = np.argsort(keys, kind="stable")
    heads = np.zeros(4**k + 1, np.int32)
    np.cumsum(np.bincount(keys, minlength=4**k), out=heads[1:])
    is_known = heads[1:] > heads[:-1]
    return Table(
        k=k,
        most=(CHECKED - 1) // k,  # so many pieces may begin after the seed's
        known=np.packbits(is_known, bitorder="little").view(np.uint32),
        heads=heads,
        entries=entries[order],
        pattern=pattern,
        begin=begin,
        first=first,
    )


@lean
def _is_single(bases: Any) -> Any:
    return bases & (bases - np.uint8(1)) == 0


@lean
def _next_window(sets: Any, at: Any, end: Any, k: Any, clean: Any) -> Any:
    """Return the next window of a pattern from `at` on: begin, whether clean, and the next clean.

    Clean windows, of no ambiguous base, are taken as if there were no others; between them those
    with one ambiguous base are taken. Without another the begin is `end`.

    clean  the next clean window, or a negative number where it is to be found
    """
    if clean < at:
        run, clean = 0, at
        while clean < end and run < k:
            run = run + 1 if _is_single(sets[clean]) else 0
            clean += 1
        clean = clean - k if run == k else end
    while at + k <= clean:
        ambiguous = 0
        for base in sets[at : at + k]:
            ambiguous += 1 - _is_single(base)
        if ambiguous == 1:
            return at, False, clean
        at += 1
    return clean, True, clean


@lean
def _count_windows(sets: Any, offsets: Any, k: Any, windows: Any) -> None:
    """Count the windows of each pattern that do not overlap: clean ones, and others."""
    for p in range(offsets.shape[0] - 1):
        end = offsets[p + 1]
        at, is_clean, clean = _next_window(sets, offsets[p], end, k, -1)
        while at < end:
            windows[p, 0 if is_clean else 1] += 1
            at, is_clean, clean = _next_window(sets, at + k, end, k, clean)


@lean
def _place_seeds(
    sets: Any, offsets: Any, windows: Any, k: Any, first: Any, begin: Any, is_clean: Any
) -> None:
    """Choose windows of each pattern as evenly as there are any, clean ones if they are enough."""
    for p in range(offsets.shape[0] - 1):
        place, stop, end = first[p], first[p + 1], offsets[p + 1]
        wanted_clean = min(np.int64(stop - place), windows[p, 0])
        wanted_other = stop - place - wanted_clean
        seen_clean = taken_clean = seen_other = taken_other = 0
        at, clean = offsets[p], np.int64(-1)
        while place < stop:
            at, is_one, clean = _next_window(sets, at, end, k, clean)
            if is_one:
                is_taken = seen_clean * wanted_clean >= taken_clean * windows[p, 0]
                is_taken &= taken_clean < wanted_clean
                seen_clean, taken_clean = seen_clean + 1, taken_clean + is_taken
            else:
                is_taken = seen_other * wanted_other >= taken_other * windows[p, 1]
                is_taken &= taken_other < wanted_other
                seen_other, taken_other = seen_other + 1, taken_other + is_taken
            if is_taken:
                begin[place], is_clean[place] = at - offsets[p], is_one
                place += 1
            at += k


@lean
def _fill_entries(
    sets: Any, offsets: Any, pieces: Any, choices: Any, pattern: Any, begin: Any, k: Any,
    keys: Any, entries: Any,
) -> None:  # fmt: skip
    for entry in range(pieces.shape[0]):
        piece, choice = pieces[entry], choices[entry]
        p = pattern[piece]
        at, end = offsets[p] + begin[piece], offsets[p + 1]
        low = high = compared = np.uint32(0)
        for i in range(min(CHECKED, end - at)):
            bases, bit = sets[at + i], np.uint32(1) << np.uint32(i)
            if _is_single(bases):
                compared |= bit
                low |= bit if bases & np.uint8(2 | 8) else np.uint32(0)
                high |= bit if bases & np.uint8(4 | 8) else np.uint32(0)
            elif i < k:
                low |= bit if choice & 1 else np.uint32(0)
                high |= bit if choice & 2 else np.uint32(0)
        inside = (np.uint32(1) << np.uint32(k)) - np.uint32(1)
        keys[entry] = np.int64(low & inside) | np.int64(high & inside) << k
        own = _bases_before(piece + 1, p, at, end, offsets, pattern, begin)
        both = _bases_before(piece + 2, p, at, end, offsets, pattern, begin)
        entries[entry, 0] = low | np.uint32(own) << np.uint32(CHECKED)
        entries[entry, 1] = high | np.uint32(both) << np.uint32(CHECKED)
        entries[entry, 2], entries[entry, 3] = compared, np.uint32(piece)


@lean
def _bases_before(
    piece: Any, p: Any, at: Any, end: Any, offsets: Any, pattern: Any, begin: Any
) -> Any:
    """Return how many of the CHECKED bases from `at` on lie before a piece of the pattern."""
    if piece < pattern.shape[0] and pattern[piece] == p:
        end = offsets[p] + begin[piece]
    return min(CHECKED, end - at)
