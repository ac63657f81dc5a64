"""Pieces of patterns for the sweeps for edits, and what their ends say about the patterns."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.types import Limits, Patterns

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
