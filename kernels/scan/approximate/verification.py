"""Hits among the candidates for patterns with edits, by the table of distances."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.scan.approximate.alignment import SETS, Pairs
from multigpu.kernels.scan.approximate.cpu_edits import Candidates
from multigpu.kernels.scan.approximate.pieces import WHOLE, Piece, flag_borders
from multigpu.kernels.scan.approximate.types import ErrorHits, Limits
from multigpu.kernels.scan.types import Patterns

ONE_EDIT = np.int32(1)
TOO_MANY = np.int32(1 << 30)


def find_hits(
    offsets: NDArray[np.int64],
    letters: NDArray[np.uint8],
    patterns: Patterns,
    limits: Limits,
    candidates: Candidates,
    strict: bool,
    piece: Piece = WHOLE,
) -> ErrorHits:
    """Return the hits among candidates, of which those of a record and pattern may overlap.

    offsets  int64[records + 1]  as in `Chunk`
    letters  uint8[bases]        as in `Chunk`

    The hits have no starts yet: their starts are their ends.
    """
    lengths = np.diff(offsets)
    lowest = np.zeros(len(lengths), np.int64)
    lowest[:1] = piece.first
    stretches = _merged(candidates, lowest, lengths)
    pairs = Pairs(offsets, letters, patterns.sets, patterns.offsets, limits.prefix, limits.suffix)
    column = np.empty(int(patterns.lengths.max(initial=0)) + 1, np.int32)
    # Neighbouring hits are two ends apart or more.
    runs = make_runs(int(((stretches.last - stretches.first) // 2 + 1).sum()))
    count = _find_hits(pairs, limits.most, stretches, strict, column, runs)
    record, end = runs.record[:count], runs.first[:count]
    hits = ErrorHits(
        record=record,
        pattern=runs.pattern[:count],
        start=end,
        end=end,
        errors=runs.errors[:count],
        edge=np.zeros(count, np.uint8),
    )
    return flag_borders(hits, runs.last[:count], offsets, piece)


class Runs(NamedTuple):
    """Room for runs of neighbouring ends with the fewest edits around."""

    record: NDArray[np.int32]
    pattern: NDArray[np.int32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    errors: NDArray[np.int32]


def make_runs(room: int) -> Runs:
    """Return room for as many runs."""
    return Runs(
        record=np.empty(room, np.int32),
        pattern=np.empty(room, np.int32),
        first=np.empty(room, np.int64),
        last=np.empty(room, np.int64),
        errors=np.empty(room, np.int32),
    )


def _merged(
    candidates: Candidates, lowest: NDArray[np.int64], highest: NDArray[np.int64]
) -> Candidates:
    """Return the candidates within the ends of their records, in order; those that touch are one.

    lowest, highest  int64[records]  the first and the last end
    """
    record, pattern, first, last = candidates
    order = np.lexsort((first, pattern, record))
    record, pattern = record[order], pattern[order]
    first = np.maximum(first[order], lowest[record])
    last = np.minimum(last[order], highest[record])
    count = _merge(record, pattern, first, last)
    return Candidates(record[:count], pattern[:count], first[:count], last[:count])


@lean
def _merge(record: Any, pattern: Any, first: Any, last: Any) -> Any:
    count = 0
    for i in range(record.shape[0]):
        j = count - 1
        if first[i] > last[i]:
            continue
        same = j >= 0 and record[i] == record[j] and pattern[i] == pattern[j]
        if same and first[i] <= last[j] + 1:
            last[j] = max(last[j], last[i])
        else:
            record[count], pattern[count] = record[i], pattern[i]
            first[count], last[count] = first[i], last[i]
            count += 1
    return count


@lean
def _find_hits(pairs: Any, most: Any, stretches: Any, strict: Any, column: Any, runs: Any) -> Any:
    """Write the runs that are hits; return how many there are."""
    count = 0
    for i in range(stretches.first.shape[0]):
        p, r = stretches.pattern[i], stretches.record[i]
        bases = pairs.patterns[pairs.offsets[p] : pairs.offsets[p + 1]]
        exact = (pairs.prefix[p], bases.shape[0] - pairs.suffix[p])
        # A hit has at most so many bases, so that nothing before them matters.
        begin = max(0, stretches.first[i] - bases.shape[0] - most[p])
        sample = pairs.samples[pairs.records[r] + begin : pairs.records[r] + stretches.last[i]]
        _first_column(exact, column[: bases.shape[0] + 1])
        value, run = TOO_MANY, 0
        fell: Any = False
        for at in range(sample.shape[0] + 1):
            if at:
                _next_column(bases, SETS[sample[at - 1]], exact, strict, column)
            if begin + at < stretches.first[i]:
                continue
            here = column[bases.shape[0]] if column[bases.shape[0]] <= most[p] else TOO_MANY
            if here > value and fell:
                count = _keep(runs, count, r, p, run, begin + at - 1, value)
            if here != value:
                run, fell, value = begin + at, here < value, here
        if fell:
            count = _keep(runs, count, r, p, run, stretches.last[i], value)
    return count


@lean
def _keep(runs: Any, at: Any, record: Any, pattern: Any, first: Any, last: Any, errors: Any) -> Any:
    runs.record[at], runs.pattern[at] = record, pattern
    runs.first[at], runs.last[at], runs.errors[at] = first, last, errors
    return at + 1


@lean
def _first_column(exact: Any, column: Any) -> None:
    """Set the distances to the empty piece."""
    column[0] = 0
    for row in range(1, column.shape[0]):
        is_exact = row <= exact[0] or row > exact[1]
        column[row] = TOO_MANY if is_exact else min(column[row - 1] + ONE_EDIT, TOO_MANY)


@lean
def _next_column(bases: Any, under: Any, exact: Any, strict: Any, column: Any) -> None:
    """Go on by a base of the sample."""
    length, above = bases.shape[0], np.int32(0)
    for row in range(1, length + 1):
        base, here = bases[row - 1], column[row]
        agrees = under & ~base == 0 if strict else under & base != 0
        is_exact = row <= exact[0] or row > exact[1]
        best = above if agrees else TOO_MANY if is_exact else above + ONE_EDIT
        if not (row < exact[0] or row > max(0, exact[1])) or row == length:
            best = min(best, here + ONE_EDIT)
        if not is_exact:
            best = min(best, column[row - 1] + ONE_EDIT)
        column[row] = min(best, TOO_MANY)
        above = here
