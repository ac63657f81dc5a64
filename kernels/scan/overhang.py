"""Patterns that hang over the ends of records: a part of each against the first or last bases."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import LETTER_SETS
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.cpu_planes import find_rows
from multigpu.kernels.scan.types import Chunk, Hits, Limits, Patterns, allowed_bases


class OverhangSearch:
    """The search for patterns that hang over the ends of records. Threads may share it.

    limits  of which the exact parts hold
    most    most mismatches: a number for a whole pattern, of which a part has its share, or, as a
            float, a share of the bases that are seen; rounded down
    least   bases of a pattern that must be seen
    strict  as in `ScanRules`
    """

    def __init__(
        self, patterns: Patterns, limits: Limits, most: float, least: int, strict: bool
    ) -> None:
        self._least, self._strict, self._lengths = least, strict, patterns.lengths
        self._parts = _Parts(
            sets=patterns.sets,
            offsets=patterns.offsets,
            exact_until=limits.prefix,
            exact_from=patterns.lengths - limits.suffix,
            most=_most_of_parts(patterns, most),
        )

    def find(self, chunk: Chunk, at_start: NDArray[np.bool_], at_end: NDArray[np.bool_]) -> Hits:
        """Return the hits, clipped to the records, in no order; whole patterns are none of them.

        A place that a pattern has in several ways is there as often. All letters of the chunk must
        be bases.

        at_start, at_end  bool[records]: whether patterns may hang over these ends of a record
        """
        ends = chunk.letters, chunk.offsets, at_start, at_end

        search = partial(_search, *ends, self._parts, self._least, self._strict)
        record, pattern, start, end, errors = find_rows(search, columns=5).T
        return replace(
            Hits.at_places(record, pattern, start, errors, self._lengths), end=end.copy()
        )


class _Parts(NamedTuple):
    """Patterns of which parts are compared.

    sets, offsets            as in `Patterns`
    exact_until, exact_from  int64[patterns]: bases before and from which all must match
    most                     int64[bases]: most mismatches where as many bases of the pattern are
                             seen as it has up to this one
    """

    sets: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    exact_until: NDArray[np.int64]
    exact_from: NDArray[np.int64]
    most: NDArray[np.int64]


def _most_of_parts(patterns: Patterns, most: float) -> NDArray[np.int64]:
    lengths = np.repeat(patterns.lengths, patterns.lengths)
    seen = np.arange(1, len(lengths) + 1) - np.repeat(patterns.offsets[:-1], patterns.lengths)
    if isinstance(most, int):
        return allowed_bases(most, lengths) * seen // lengths
    return allowed_bases(most, seen)


@jit_no_alloc
def _search(
    letters: Any, offsets: Any, at_start: Any, at_end: Any, parts: Any, least: Any, strict: Any,
    found: Any,
) -> Any:  # fmt: skip
    """Search all records; return how many hits there are, even if there is no room for all."""
    count = 0
    for record in range(offsets.shape[0] - 1):
        sample = letters[offsets[record] : offsets[record + 1]]
        length = sample.shape[0]
        for p in range(parts.offsets.shape[0] - 1):
            size = parts.offsets[p + 1] - parts.offsets[p]
            before = (least - size if at_start[record] else 0, 0)
            after = (max(0, length - size + 1), length - least + 1 if at_end[record] else 0)
            for first, stop in (before, after):
                for at in range(first, stop):
                    end = min(at + size, length)
                    if end < at + size and not at_end[record]:
                        continue
                    errors = _count_mismatches(sample, parts, p, at, least, strict)
                    if errors < 0:
                        continue
                    if count < found.shape[0]:
                        hit = found[count]
                        hit[0], hit[1], hit[2], hit[3] = record, p, max(at, 0), end
                        hit[4] = errors
                    count += 1
    return count


@jit_no_alloc
def _count_mismatches(sample: Any, parts: Any, p: Any, at: Any, least: Any, strict: Any) -> Any:
    """Return the mismatches of a pattern whose first base is at a place; -1: this is no hit."""
    first, errors = parts.offsets[p], 0
    start, end = max(at, 0), min(at + parts.offsets[p + 1] - first, sample.shape[0])
    if end - start < least:
        return -1
    most = parts.most[first + end - start - 1]
    for i in range(start, end):
        base, under = parts.sets[first + i - at], LETTER_SETS[sample[i]]
        agrees = under & ~base == 0 if strict else under & base != 0
        if not agrees:
            errors += 1
            is_exact = i - at < parts.exact_until[p] or i - at >= parts.exact_from[p]
            if errors > most or is_exact:
                return -1
    return errors
