"""Numbers of matches by signature: what workers count of a chunk, and their sums."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.signatures import Signatures
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.sink import Findings

Numbers = NDArray[np.int64]

# Scores and shares are summed as whole parts of this size: sums do not depend on their order.
PARTS_OF_ONE = 1 << 20
DENSE_KEYS = 1 << 16  # numbers up to here are counted by place, without sorting
FEW_KEYS = 1 << 12  # that wait to be summed up, at least
DIGITS = 4  # after the point, of means


@dataclass(frozen=True, eq=False, kw_only=True)
class Sums:
    """Sums of whole numbers by key; sparse.

    keys     int64[n], ascending
    numbers  int64[n] each, by name
    """

    keys: Numbers
    numbers: Mapping[str, Numbers]

    @classmethod
    def of(cls, keys: NDArray[np.integer], **weights: NDArray[np.generic]) -> Self:
        """Return the number of times of each key, as `count`, and the sums of its weights.

        keys     int[m], none below 0
        weights  [m], whole numbers, whose sums stay below 2**53
        """
        which = keys
        if keys.max(initial=0) >= DENSE_KEYS + 4 * len(keys):
            distinct, which = np.unique(keys, return_inverse=True)
        count = np.bincount(which)
        there = np.flatnonzero(count)
        sums = {name: np.bincount(which, each)[there] for name, each in weights.items()}
        return cls(
            keys=there if which is keys else distinct,
            numbers={"count": count[there], **{k: v.astype(np.int64) for k, v in sums.items()}},
        )

    @classmethod
    def joined(cls, several: Sequence["Sums"]) -> Self:
        """Return the sums of at least one, all with numbers of the same names."""
        keys = np.concatenate([each.keys for each in several])
        order = np.argsort(keys, kind="stable")
        begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
        names = several[0].numbers
        columns = {name: np.concatenate([each.numbers[name] for each in several]) for name in names}
        return cls(
            keys=keys[order][begins],
            numbers={name: np.add.reduceat(v[order], begins) for name, v in columns.items()}
            if len(begins)
            else columns,
        )

    def dense(self, name: str, size: int) -> Numbers:
        """Return the sums of this name for all keys below `size`, 0 where there are none."""
        found = np.zeros(size, np.int64)
        if name in self.numbers:
            found[self.keys] = self.numbers[name]
        return found


class RunningSums:
    """Sums to which more are added."""

    def __init__(self) -> None:
        self._sums: list[Sums] = []
        self._waiting = 0

    def add(self, more: Sums) -> None:
        self._sums.append(more)
        self._waiting += len(more.keys)
        if self._waiting > max(FEW_KEYS, 2 * len(self._sums[0].keys)):
            self.total()

    def total(self) -> Sums:
        """Return all sums; without numbers where none were added."""
        self._sums = [Sums.joined(self._sums)] if self._sums else []
        self._waiting = 0
        return self._sums[0] if self._sums else Sums(keys=np.empty(0, np.int64), numbers={})


@dataclass(frozen=True, eq=False, kw_only=True)
class Tally:
    """Numbers of matches of one file in a chunk, or in all of them.

    unit          number of the file
    records       reads, or sequences
    matched       those with a match
    by_signature  count: matches; reads: records with a match of the signature; scored: matches
                  with a score; score and seen: in parts of one, the scores, and the shares of the
                  signature that lie in the sample
    """

    unit: int
    records: int
    matched: int
    by_signature: Sums


def tally(found: Findings, signatures: Signatures, options: ScanOptions) -> Tally:
    """Return the numbers of one file in a chunk."""
    rows = found.rows
    # Rows of a sample stand together, and in it those of a signature.
    is_first = np.diff(rows.sample_index, prepend=-2) != 0
    is_new = is_first | (np.diff(rows.signature, prepend=-1) != 0)
    scored = ~np.isnan(rows.score)
    seen = np.ones(len(rows))
    if not options.max_edits:
        bases = rows.end - rows.start - rows.bulge
        seen = bases / signatures.letters.lengths[rows.signature]
    return Tally(
        unit=found.source,
        records=len(found.lengths),
        matched=int(np.count_nonzero(is_first)),
        by_signature=Sums.of(
            rows.signature,
            reads=is_new,
            scored=scored,
            score=np.rint(np.where(scored, rows.score, 0) * PARTS_OF_ONE),
            seen=np.rint(seen * PARTS_OF_ONE),
        ),
    )


class Tallies:
    """Numbers of all files of a scan.

    names       of the files, by their numbers
    signatures  of the scan
    records     reads, or sequences, of each file
    matched     those with a match
    """

    def __init__(self, names: Sequence[str], signatures: Signatures) -> None:
        self.names, self.signatures = names, signatures
        self.records, self.matched = [0] * len(names), [0] * len(names)
        self._by_signature = [RunningSums() for _ in names]

    def add(self, more: Tally) -> None:
        self.records[more.unit] += more.records
        self.matched[more.unit] += more.matched
        self._by_signature[more.unit].add(more.by_signature)

    def of(self, unit: int) -> "SignatureNumbers":
        """Return the numbers of all signatures in one file."""
        sums, size = self._by_signature[unit].total(), len(self.signatures)
        matches, scored = sums.dense("count", size), sums.dense("scored", size)
        with np.errstate(invalid="ignore"):
            scores = sums.dense("score", size) / PARTS_OF_ONE / scored
        return SignatureNumbers(
            reads=sums.dense("reads", size),
            matches=matches,
            share=sums.dense("reads", size) / max(self.records[unit], 1),
            mean_score=np.round(scores, DIGITS),
            covered=np.round(
                sums.dense("seen", size) / PARTS_OF_ONE / np.maximum(matches, 1), DIGITS
            ),
        )

    def top(self, most: int) -> NDArray[np.intp]:
        """Return the signatures with most reads, at most so many, in the order of all."""
        size = len(self.signatures)
        reads = sum((each.total().dense("reads", size) for each in self._by_signature), 0)
        return np.sort(np.argsort(-np.broadcast_to(reads, size), kind="stable")[:most])

    def __iter__(self) -> Iterator["SignatureNumbers"]:
        """Yield the numbers of each file."""
        return map(self.of, range(len(self.names)))


@dataclass(frozen=True, eq=False, kw_only=True)
class SignatureNumbers:
    """Numbers of all signatures in one file; each is [signatures].

    reads       int64: records with a match
    matches     int64
    share       float64: reads, of all records of the file
    mean_score  float64: of the matches; NaN where none has one
    covered     float64: mean share of the signature that lies in the sample; 0 without matches
    """

    reads: Numbers
    matches: Numbers
    share: NDArray[np.float64]
    mean_score: NDArray[np.float64]
    covered: NDArray[np.float64]
