"""The input, the rules and the result of a scan, exact or with errors."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels import bases
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.choice import Places, Wanted, choose, cost_of

# 0.29 of 100 bases are 29, although 0.29 * 100 is a little less.
SLACK = 1e-15


def allowed_bases(limit: float, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[n]: the limit for patterns of these lengths, at most all of their bases.

    limit  a number of bases, or, as a float, a share of the length, rounded down
    """
    if isinstance(limit, int):
        return np.minimum(min(limit, int(lengths.max(initial=0))), lengths)
    most: NDArray[np.int64] = np.floor(limit * lengths * (1 + SLACK)).astype(np.int64)
    return most


class BadBaseError(ValueError):
    """A letter that is no IUPAC base, at this position of the chunk's bases."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


@dataclass(frozen=True)
class ScanRules:
    """Rules for what counts as an occurrence."""

    first: bool = True  # only the lowest start of every record and signature
    strict: bool = False  # a sample's base must be a subset of the signature's, not only share one

    @property
    def wanted(self) -> Wanted:
        """Choice of the hits of a record and a signature that are wanted."""
        return "first" if self.first else "all"


@dataclass(frozen=True)
class Patterns:
    """The signatures as they are searched: each once, or on both strands.

    sets     uint8[n_bases]     sets of `multigpu.kernels.bases`, pattern after pattern
    offsets  int64[n + 1]       ascending, offsets[-1] == n_bases; no pattern is empty
    strands  1 or 2             pattern p is signature p // strands; with 2 the odd ones are the
                                reverse complements
    """

    sets: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    strands: int = 1

    @classmethod
    def of(cls, signatures: Sequence[NDArray[np.uint8]], both_strands: bool = False) -> "Patterns":
        """Return the patterns of uint8 letters. Raises ValueError for an illegal letter or none."""
        offsets = np.cumsum([0, *map(len, signatures)], dtype=np.int64)
        return cls.of_joined(np.concatenate(signatures), offsets, both_strands)

    @classmethod
    def of_joined(
        cls, letters: NDArray[np.uint8], offsets: NDArray[np.int64], both_strands: bool = False
    ) -> "Patterns":
        """Return the patterns of signatures in one array; offsets: int64[n + 1]."""
        sets = bases.encode(letters)
        if not ((offsets[1:] > offsets[:-1]).all() and sets.all()):
            raise ValueError("a signature is empty or has a letter that is no IUPAC base")
        if not both_strands:
            return cls(sets, offsets)
        both = np.empty(2 * len(sets), np.uint8)
        _write_both(sets, offsets, bases.COMPLEMENTS, both)
        begins = np.repeat(2 * offsets, 2)[1:]
        begins[1::2] -= np.diff(offsets)
        return cls(both, begins, 2)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """int64[n]: bases of each pattern."""
        return np.diff(self.offsets)

    def take(self, chosen: NDArray[np.int64]) -> "Patterns":
        """Return the patterns of these numbers, each as a signature of its own."""
        offsets = np.r_[0, np.cumsum(self.lengths[chosen])]
        shift = np.repeat(self.offsets[chosen] - offsets[:-1], self.lengths[chosen])
        return Patterns(self.sets[np.arange(offsets[-1]) + shift], offsets)


@jit_no_alloc
def _write_both(sets: Any, offsets: Any, complements: Any, both: Any) -> None:
    for p in range(offsets.shape[0] - 1):
        begin, end = offsets[p], offsets[p + 1]
        for i in range(begin, end):
            both[begin + i] = sets[i]
            both[2 * end - 1 - (i - begin)] = complements[sets[i]]


class Limits(NamedTuple):
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

    def take(self, chosen: NDArray[np.int64]) -> "Limits":
        """Return the limits of the patterns of these numbers."""
        return Limits(*(each[chosen] for each in self))


@dataclass(frozen=True)
class Chunk:
    """Consecutive records.

    letters  uint8[n_bases]     ASCII, record after record; C-contiguous
    offsets  int64[n_records+1] ascending, offsets[0] == 0, offsets[-1] == n_bases
    """

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def sets(self) -> NDArray[np.uint8]:
        """Return uint8[n_bases]: the sets of the letters. Raises BadBaseError at an illegal one."""
        sets = bases.encode(self.letters)
        if not sets.all():
            raise BadBaseError(int(np.argmin(sets != 0)))
        return sets


# Flags of hits in pieces of a record: whether the run of ends reaches the first end that the piece
# is asked about, or the last one, after which the record continues. See `approximate/pieces.py`.
AT_BEGIN, AT_END = np.uint8(1), np.uint8(2)


@dataclass(frozen=True, eq=False, kw_only=True)
class Hits:
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

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> "Hits":
        """Return the hits of these numbers, or those for which it is true."""
        if rows.dtype == bool and rows.all():
            return self
        return Hits(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    def moved(self, records: int, cut: int) -> "Hits":
        """Return the hits of a piece of a chunk as hits of the chunk.

        records  the chunk's record that the piece's first one is, or is the rest of
        cut      how many bases of that record the piece does not have
        """
        cuts = np.where(self.record == 0, cut, 0)
        record = self.record + np.int32(records)
        return replace(self, record=record, start=self.start + cuts, end=self.end + cuts)

    @property
    def cost(self) -> NDArray[np.int64]:
        """int64[n]: see `cost_of`."""
        return cost_of(self.start, self.end, self.errors)

    def places(self, strands: int, lengths: NDArray[np.int64] | None = None) -> Places:
        """Return the hits as places; lengths: int64[signatures], where they may have bulges."""
        signature = self.pattern // strands
        bulge = None if lengths is None else self.end - self.start - lengths[signature]
        is_reverse = self.pattern % strands == 1
        return Places(self.record, signature, self.start, self.end, is_reverse, self.errors, bulge)

    def chosen(self, wanted: Wanted, strands: int, by_end: bool) -> "Hits":
        """Return the hits of `choice`."""
        return self.take(self.choice(wanted, strands, by_end))

    def choice(self, wanted: Wanted, strands: int, by_end: bool) -> NDArray[np.intp]:
        """Return the numbers of the wanted hits, see `choose`; those at borders come last."""
        if wanted == "all" or not self.edge.any():
            return choose(wanted, self.places(strands), by_end=by_end)
        inside, at_border = np.flatnonzero(self.edge == 0), np.flatnonzero(self.edge)
        chosen = inside[self.take(inside).choice(wanted, strands, by_end)]
        return np.concatenate([chosen, at_border])

    @classmethod
    def at_places(
        cls,
        record: NDArray[np.integer],
        pattern: NDArray[np.integer],
        start: NDArray[np.integer],
        errors: NDArray[np.integer],
        lengths: NDArray[np.int64],
    ) -> "Hits":
        """Return hits that are as long as their patterns; lengths: int64[patterns]."""
        return cls(
            record=np.ascontiguousarray(record, np.int32),
            pattern=np.ascontiguousarray(pattern, np.int32),
            start=start.astype(np.int64),
            end=start + lengths[pattern],
            errors=np.ascontiguousarray(errors, np.int32),
            edge=np.zeros(len(record), np.uint8),
        )

    @classmethod
    def joined(cls, parts: Sequence["Hits"]) -> "Hits":
        """Return the hits of all parts, of one or more, one after the other."""
        names = [each.name for each in fields(cls)]
        return cls(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})


class ChunkScanner(Protocol):
    """Searches chunks for the same patterns on one device; threads may use it at once."""

    def scan(self, chunk: Chunk) -> Hits:
        """Return the hits of a chunk, ordered as by `Hits.choice`.

        Raises BadBaseError at the first illegal letter, MemoryError (TooManyHitsError among them)
        for a chunk that is to be searched in pieces, and TooManyPatternsError.
        """

    def seconds(self) -> dict[str, float]:
        """Return the seconds of this thread's last scan on the device, by steps, with waiting."""
        return {}

    def close(self) -> None:
        """Give memory back."""
        return


class TooManyHitsError(MemoryError):
    """More hits than one search may have: search the chunk in two pieces."""


class TooManyPatternsError(Exception):
    """The patterns and their index do not fit into memory, so no chunk can be searched."""
