"""Pieces of patterns for the sweeps for edits, their candidates, and the hits among these.

Only the band of the table is computed that a hit with its end in a stretch can go through: what is
outside of it counts as too many edits, which makes no distance lower and none of a hit higher. Its
columns are kept as bits, 64 rows a word (Myers 1999), where the pattern has no exact parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import LETTER_SETS
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import popcount
from multigpu.kernels.scan.approximate.alignment import (
    ANYWHERE,
    EDIT,
    NOWHERE,
    Band,
    EditTable,
    Pairs,
    fill_first_row,
    fill_row,
)
from multigpu.kernels.scan.approximate.pieces import WHOLE, Piece, flag_borders
from multigpu.kernels.scan.cpu_planes import ALL, ONE
from multigpu.kernels.scan.types import Chunk, Hits, Limits, Patterns

TOO_MANY = np.int32(1 << 30)
BLOCK = 64  # rows of the table in a word
SETS = np.arange(16, dtype=np.uint8)  # of bases


class Candidates(NamedTuple):
    """Stretches of ends at which patterns may be few edits away.

    first, last  ends in the record, both in the stretch; may be before the record or after it
    """

    record: NDArray[np.int64]
    pattern: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def around(cls, record: Any, pattern: Any, end: Any, limits: Limits) -> "Candidates":
        """Return stretches that reach the errors of their patterns to both sides of an end."""
        most = limits.most[pattern]
        return cls(record, pattern, end - most, end + most)


def query_type(bits: int) -> np.dtype[np.void]:
    """Return the type of queries as `edits.cu` reads them, in words of 32 bits, or in others.

    equal  which bases of the piece match each set of bases; every base matches the bits before it
    rows   one bit for every base, the last in the highest
    """
    word = f"<u{bits // 8}"
    names = ("rows", "length", "most", "_")
    return np.dtype([("equal", word, len(SETS)), *((name, word) for name in names)])


@dataclass(frozen=True, eq=False)
class EditQueries:
    """Pieces of patterns.

    queries  query_type[n]
    pattern  int64[n]
    after    int64[n]  bases of the pattern after the piece
    slack    int64[n]  by how much the bases after it may be more or fewer in a sample
    """

    queries: NDArray[np.void]
    pattern: NDArray[np.int64]
    after: NDArray[np.int64]
    slack: NDArray[np.int64]

    @classmethod
    def of(cls, patterns: Patterns, limits: Limits, strict: bool, bits: int = 32) -> "EditQueries":
        """Return all patterns' pieces, one of which has its share of edits. bits: of a word."""
        count = -(-patterns.lengths // bits)
        pattern = np.repeat(np.arange(len(patterns)), count)
        piece = np.arange(len(pattern)) - np.repeat(np.cumsum(count) - count, count)
        length, pieces = patterns.lengths[pattern], count[pattern]
        begin, end = length * piece // pieces, length * (piece + 1) // pieces
        place = np.arange(bits) + (end - bits)[:, None]
        is_inside = place >= begin[:, None]
        at = patterns.offsets[pattern][:, None] + np.maximum(place, 0)
        queries = np.zeros(len(pattern), query_type(bits))
        queries["equal"] = _equal(patterns.sets[at], is_inside, strict)
        queries["rows"] = _bits(is_inside)
        queries["length"], queries["most"] = end - begin, limits.most[pattern] // pieces
        slack = np.where(end < length, limits.most[pattern], 0)
        return cls(queries, pattern, length - end, slack)

    def candidates(
        self,
        query: NDArray[np.integer],
        first: NDArray[np.integer],
        last: NDArray[np.integer],
        offsets: NDArray[np.int64],
    ) -> Candidates:
        """Return candidates in records for stretches of ends in a chunk, which may lie in several.

        query        int[n]  the piece that has few enough edits there
        first, last  int[n]  ends in the chunk
        offsets      int64[records + 1]  as in `Chunk`
        """
        first = first + self.after[query] - self.slack[query]
        last = last + self.after[query] + self.slack[query]
        lowest = np.searchsorted(offsets[1:], first, "left")
        highest = np.searchsorted(offsets[:-1], last, "right") - 1
        count = np.maximum(highest - lowest + 1, 0)
        row = np.repeat(np.arange(len(query)), count)
        record = np.arange(len(row)) - np.repeat(np.cumsum(count) - count - lowest, count)
        return Candidates(
            record=record,
            pattern=self.pattern[query][row],
            first=first[row] - offsets[record],
            last=last[row] - offsets[record],
        )


def _equal(bases: NDArray[np.uint8], is_inside: NDArray[np.bool_], strict: bool) -> NDArray[Any]:
    """Return the bases of each query that match each set of bases, a bit each."""
    of_sample, bases = SETS[:, None], bases[:, None, :]
    agrees = (of_sample & ~bases) == 0 if strict else (of_sample & bases) != 0
    return _bits(agrees | ~is_inside[:, None, :])


def _bits(values: NDArray[np.bool_]) -> NDArray[Any]:
    """Return truth values as the bits of words, the first as the lowest."""
    return np.packbits(values, axis=-1, bitorder="little").view(f"<u{values.shape[-1] // 8}")[
        ..., 0
    ]


def find_hits(
    chunk: Chunk,
    patterns: Patterns,
    limits: Limits,
    candidates: Sequence[Candidates],
    strict: bool,
    piece: Piece = WHOLE,
) -> Hits:
    """Return the hits among candidates, which may overlap; their starts are their ends."""
    lengths = np.diff(chunk.offsets)
    lowest = np.zeros(len(lengths), np.int64)
    lowest[:1] = piece.first
    joined = Candidates(*map(np.concatenate, zip(*candidates, strict=True)))
    stretches = _merged(joined, lowest, lengths)
    pairs = Pairs(chunk.offsets, chunk.letters, patterns.sets, patterns.offsets, limits)
    ends = int((stretches.last - stretches.first).max(initial=0)) + 1
    scratch = make_scratch(patterns, ends, int(limits.most.max(initial=0)))
    # Neighbouring hits are two ends apart or more.
    runs = np.empty((int(((stretches.last - stretches.first) // 2 + 1).sum()), 5), np.int64)
    count = _find_hits(pairs, stretches, strict, scratch, runs)
    record, pattern, end, last, errors = np.ascontiguousarray(runs[:count].T)
    no_lengths = np.zeros(len(patterns), np.int64)
    hits = Hits.at_places(record, pattern, end, errors, no_lengths)
    return flag_borders(hits, last, chunk.offsets, piece)


class DistanceScratch(NamedTuple):
    """Memory for one stretch; a block is 64 rows of the table."""

    distances: NDArray[np.int32]  # [ends] of the stretch
    costs: NDArray[np.int64]  # [width + 1] of the band of a stretch
    steps: NDArray[np.uint8]  # [width]
    equal: NDArray[np.uint64]  # [16, blocks] bases of the pattern that match a set of bases
    plus: NDArray[np.uint64]  # [blocks] rows with one edit more than the row before,
    minus: NDArray[np.uint64]  # [blocks] and with one less
    bottom: NDArray[np.int64]  # [blocks] edits at the last row


def make_scratch(patterns: Patterns, ends: int, most: int) -> DistanceScratch:
    """Return memory for stretches of as many ends, with so many edits."""
    blocks, width = -(-int(patterns.lengths.max(initial=0)) // BLOCK), ends + 2 * most
    return DistanceScratch(
        distances=np.empty(ends, np.int32),
        costs=np.empty(width + 1, np.int64),
        steps=np.empty(width, np.uint8),
        equal=np.empty((16, blocks), np.uint64),
        plus=np.empty(blocks, np.uint64),
        minus=np.empty(blocks, np.uint64),
        bottom=np.empty(blocks, np.int64),
    )


def _merged(
    candidates: Candidates, lowest: NDArray[np.int64], highest: NDArray[np.int64]
) -> Candidates:
    """Return candidates in order with ends in [lowest, highest]; those that touch are one."""
    record, pattern, first, last = candidates
    first, last = np.maximum(first, lowest[record]), np.minimum(last, highest[record])
    order = np.lexsort((first, pattern, record))
    order = order[first[order] <= last[order]]
    record, pattern, first, last = record[order], pattern[order], first[order], last[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (np.diff(record) != 0) | (np.diff(pattern) != 0)
    # The farthest end so far of each record and pattern.
    apart = np.cumsum(is_new) * (int(highest.max(initial=0)) + 2)
    reached = np.maximum.accumulate(last + apart) - apart
    is_new[1:] |= first[1:] > reached[:-1] + 1
    begins = np.flatnonzero(is_new)
    last = np.maximum.reduceat(last, begins) if len(begins) else last
    return Candidates(record[begins], pattern[begins], first[begins], last)


@jit_no_alloc
def _find_hits(pairs: Any, stretches: Any, strict: Any, scratch: Any, runs: Any) -> Any:
    """Find the runs of neighbouring ends with the fewest edits around; return how many there are.

    runs  int64[room, 5]  takes the record, pattern, first end, last end and edits of each
    """
    count, laid_out, most = 0, -1, pairs.limits.most
    for i in range(stretches.first.shape[0]):
        p, r = stretches.pattern[i], stretches.record[i]
        bases = pairs.patterns[pairs.offsets[p] : pairs.offsets[p + 1]]
        sample = pairs.samples[pairs.records[r] : pairs.records[r + 1]]
        ends = (stretches.first[i], stretches.last[i])
        # Diagonals of the band: the end of a cell in the sample less its row.
        reach = bases.shape[0] + most[p]
        band = (ends[0] - reach, ends[1] - bases.shape[0] + most[p])
        if pairs.limits.prefix[p] or pairs.limits.suffix[p]:
            exact = (pairs.limits.prefix[p], bases.shape[0] - pairs.limits.suffix[p])
            _measure(EditTable(sample, bases, exact, strict), ends, band, scratch)
        else:
            if p != laid_out:
                _lay_out(bases, strict, scratch.equal)
                laid_out = p
            _measure_bits(bases.shape[0], sample, ends, band, scratch)
        count = _keep_runs(scratch.distances, ends, most[p], r, p, runs, count)
    return count


@jit_no_alloc
def _keep_runs(
    distances: Any, ends: Any, most: Any, record: Any, pattern: Any, runs: Any, count: Any
) -> Any:
    """Keep the runs of a stretch; return the number of all that are kept."""
    value, run = TOO_MANY, 0
    fell: Any = False
    for end in range(ends[0], ends[1] + 1):
        here = distances[end - ends[0]]
        if here > most:
            here = TOO_MANY
        if here > value and fell:
            _keep(runs[count], record, pattern, run, end - 1, value)
            count += 1
        if here != value:
            run, fell, value = end, here < value, here
    if fell:
        _keep(runs[count], record, pattern, run, ends[1], value)
        count += 1
    return count


@jit_no_alloc
def _keep(run: Any, record: Any, pattern: Any, first: Any, last: Any, errors: Any) -> None:
    run[0], run[1], run[2], run[3], run[4] = record, pattern, first, last, errors


# ---- row by row ---------------------------------------------------------------------------------


@jit_no_alloc
def _measure(table: Any, ends: Any, band: Any, scratch: Any) -> None:
    """Set the distances of the stretch's ends."""
    length, distances = table.bases.shape[0], scratch.distances[: ends[1] - ends[0] + 1]
    distances[:] = TOO_MANY
    if band[1] < 0:  # the whole pattern does not reach so far
        return
    cells = Band(0, length, band[0], band[1] - band[0] + 1, 0)
    fill_first_row(table, cells, ANYWHERE, scratch.costs)
    for row in range(1, length + 1):
        fill_row(table, cells, row, scratch.costs, scratch.steps)
    for i in range(distances.shape[0]):
        cost = scratch.costs[ends[0] + i - length - band[0]]
        if cost < NOWHERE:
            distances[i] = -(-cost // EDIT)


# ---- in bits ------------------------------------------------------------------------------------


@jit_no_alloc
def _lay_out(bases: Any, strict: Any, equal: Any) -> None:
    """Set which bases of a pattern match each set of bases."""
    for block in range((bases.shape[0] + BLOCK - 1) // BLOCK):
        for base in range(4):
            word = np.uint64(0)
            for row in range(block * BLOCK, min(bases.shape[0], (block + 1) * BLOCK)):
                word |= np.uint64(bases[row] >> base & 1) << np.uint64(row - block * BLOCK)
            equal[1 << base, block] = word
        for under in range(1, 16):
            last = under & -under
            if under == last:
                continue
            rest = equal[under - last, block]
            equal[under, block] = rest & equal[last, block] if strict else rest | equal[last, block]


@jit_no_alloc
def _measure_bits(length: Any, sample: Any, ends: Any, band: Any, scratch: Any) -> None:
    """Set the distances of the stretch's ends, for a pattern without exact parts."""
    begin, final = max(0, band[0]), (length - 1) // BLOCK
    padding = ~(ALL >> np.uint64(BLOCK * (final + 1) - length))
    top, deepest = 0, -1  # blocks
    if begin == ends[0]:
        scratch.distances[0] = length
    for end in range(begin + 1, ends[1] + 1):
        while deepest < (min(length, end - band[0]) - 1) // BLOCK:
            # Until here nothing is known of the block but that its rows may be left out.
            before = scratch.bottom[deepest] if deepest >= 0 else np.int64(0)
            deepest += 1
            scratch.plus[deepest], scratch.minus[deepest] = ALL, np.uint64(0)
            scratch.bottom[deepest] = before + BLOCK
        top = max(top, (end - band[1] - 1) // BLOCK)
        # Row 0 has no edits; of a row above the band it is known that it has at most one more.
        step = np.int64(0) if top == 0 else np.int64(1)
        equal = scratch.equal[LETTER_SETS[sample[end - 1]]]
        for block in range(top, deepest + 1):
            step = _next_block(scratch, block, equal[block], step)
        if end >= ends[0]:
            errors = scratch.bottom[final] - popcount(scratch.plus[final] & padding)
            errors += popcount(scratch.minus[final] & padding)
            scratch.distances[end - ends[0]] = errors


@jit_no_alloc
def _next_block(scratch: Any, block: Any, equal: Any, step: Any) -> Any:
    """Go on by a base in a block; return the change of its last row, from that of the row above."""
    last = np.uint64(BLOCK - 1)
    plus, minus = scratch.plus[block], scratch.minus[block]
    rises, falls = np.uint64(step > 0), np.uint64(step < 0)
    vertical = equal | minus
    equal |= falls
    horizontal = (((equal & plus) + plus) ^ plus) | equal
    up, down = minus | ~(horizontal | plus), plus & horizontal
    change = np.int64(up >> last) - np.int64(down >> last)
    up, down = up << ONE | rises, down << ONE | falls
    scratch.plus[block], scratch.minus[block] = down | ~(vertical | up), up & vertical
    scratch.bottom[block] += change
    return change
