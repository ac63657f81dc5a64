"""Limits of errors, and the result of a search with errors."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.types import Patterns, allowed_bases

Wanted = Literal["first", "best", "all"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Limits:
    """Errors that each pattern may have.

    most    int64[n]  most errors
    prefix  int64[n]  bases at its begin that must match, without a gap inside
    suffix  int64[n]  and at its end; prefix + suffix may be more than its length
    """

    most: NDArray[np.int64]
    prefix: NDArray[np.int64]
    suffix: NDArray[np.int64]

    @classmethod
    def of(
        cls, patterns: Patterns, most: float, exact_prefix: int = 0, exact_suffix: int = 0
    ) -> "Limits":
        """Return the limits of patterns; on the reverse strand prefix and suffix change places.

        most  a number of errors, or, as a float, a share of the pattern's length, rounded down
        """
        is_reverse = np.arange(len(patterns)) % patterns.strands == 1
        return cls(
            most=allowed_bases(most, patterns.lengths),
            prefix=np.where(is_reverse, exact_suffix, exact_prefix).astype(np.int64),
            suffix=np.where(is_reverse, exact_prefix, exact_suffix).astype(np.int64),
        )


# Flags of hits in pieces of a record: whether the run of ends reaches the first end that the piece
# is asked about, or the last one, after which the record continues. See `pieces.py`.
AT_BEGIN, AT_END = np.uint8(1), np.uint8(2)


@dataclass(frozen=True, eq=False, kw_only=True)
class ErrorHits:
    """Places of patterns in the records of a chunk.

    record   int32[n]  index into the chunk's records
    pattern  int32[n]  index into the patterns
    start    int64[n]  first base, within the record
    end      int64[n]  after the last base
    errors   int32[n]  mismatches, or edits
    edge     uint8[n]  AT_BEGIN and AT_END
    """

    record: NDArray[np.int32]
    pattern: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    errors: NDArray[np.int32]
    edge: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.record)

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> "ErrorHits":
        """Return the hits of these numbers, or those for which it is true."""
        return ErrorHits(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    def moved(self, records: int, cut: int) -> "ErrorHits":
        """Return the hits of a piece of a chunk as hits of the chunk.

        records  the chunk's record that the piece's first one is, or is the rest of
        cut      how many bases of that record the piece does not have
        """
        cuts = np.where(self.record == 0, cut, 0)
        record = self.record + np.int32(records)
        return replace(self, record=record, start=self.start + cuts, end=self.end + cuts)

    def chosen(self, wanted: Wanted, strands: int, by_end: bool) -> "ErrorHits":
        """Return the hits of `choice`."""
        return self.take(self.choice(wanted, strands, by_end))

    def choice(self, wanted: Wanted, strands: int, by_end: bool) -> NDArray[np.intp]:
        """Return the numbers of all hits, or of one of each record and signature.

        They are in the order of record, signature, start and end.

        Hits that reach a border of a piece stay, too, last: whether they are any is known later.

        wanted  "first": the lowest start, or with `by_end` the lowest end, the pattern itself
                before its reverse complement; "best": the fewest errors, then as first
        """
        signature = self.pattern // strands
        pair = (signature, self.record)
        if wanted == "all":
            return np.lexsort((self.pattern, self.end, self.start, *pair))
        place = self.end if by_end else self.start
        keys = (self.pattern, place) if wanted == "first" else (self.pattern, place, self.errors)
        order = np.lexsort((*keys, *pair))
        order = order[self.edge[order] == 0]
        record, signature = self.record[order], signature[order]
        is_new = np.ones(len(order), bool)
        is_new[1:] = (record[1:] != record[:-1]) | (signature[1:] != signature[:-1])
        return np.concatenate([order[is_new], np.flatnonzero(self.edge)])

    @classmethod
    def at_places(
        cls,
        record: NDArray[np.integer],
        pattern: NDArray[np.integer],
        start: NDArray[np.integer],
        errors: NDArray[np.integer],
        lengths: NDArray[np.int64],
    ) -> "ErrorHits":
        """Return hits that are as long as their patterns; lengths: int64[patterns]."""
        return cls(
            record=record.astype(np.int32),
            pattern=pattern.astype(np.int32),
            start=start.astype(np.int64),
            end=start + lengths[pattern],
            errors=errors.astype(np.int32),
            edge=np.zeros(len(record), np.uint8),
        )

    @classmethod
    def joined(cls, parts: Sequence["ErrorHits"]) -> "ErrorHits":
        """Return the hits of all parts, of one or more, one after the other."""
        names = [each.name for each in fields(cls)]
        return cls(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})
