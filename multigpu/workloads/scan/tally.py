"""Numbers of matches by signature: what workers count of a chunk, and their sums."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.signatures import Signatures
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.details import Details, RunningDetails, details_of
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.sink import Findings
from multigpu.workloads.scan.sums import Numbers, RunningSums, Sums

# Scores and shares are summed as whole parts of this size: sums do not depend on their order.
PARTS_OF_ONE = 1 << 20
DIGITS = 4  # after the point, of means


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
    details: Details | None = None


def tallies_of(
    found: Findings, signatures: Signatures, options: ScanOptions, is_detailed: bool
) -> tuple[Tally, ...]:
    """Return the numbers of each file in a chunk.

    A row may be counted for something else than its file: `Tally.unit` and `Tallies.names` say
    what the lines of tables and reports are.
    """
    records = len(found.lengths) // found.files
    sources = range(found.source, found.source + found.files)
    rows = [found.rows[found.rows.source == each] for each in sources]
    if found.files == 1:
        rows = [found.rows]
    return tuple(
        Tally(
            unit=unit,
            records=records,
            matched=int(np.count_nonzero(_is_first(some))),
            by_signature=_by_signature(some, signatures, options),
            details=details_of(some, signatures) if is_detailed else None,
        )
        for unit, some in zip(sources, rows, strict=True)
    )


def _is_first(rows: Batch) -> NDArray[np.bool_]:
    """Return whether each row is the first of its sample, whose rows stand together."""
    is_first: NDArray[np.bool_] = np.diff(rows.sample_index, prepend=-2) != 0
    return is_first


def _by_signature(rows: Batch, signatures: Signatures, options: ScanOptions) -> Sums:
    # Rows of a signature in a sample stand together, too.
    is_new = _is_first(rows) | (np.diff(rows.signature, prepend=-1) != 0)
    scored = ~np.isnan(rows.score)
    seen = np.ones(len(rows))
    if not options.max_edits:
        bases = rows.end - rows.start - rows.bulge
        seen = bases / signatures.letters.lengths[rows.signature]
    return Sums.of(
        rows.signature,
        reads=is_new,
        scored=scored,
        score=np.rint(np.where(scored, rows.score, 0) * PARTS_OF_ONE),
        seen=np.rint(seen * PARTS_OF_ONE),
    )


class Tallies:
    """Numbers of all files of a scan.

    names       of the files, by their numbers
    signatures  of the scan
    records     reads, or sequences, of each file
    matched     those with a match
    details     for a report
    """

    def __init__(self, names: Sequence[str], signatures: Signatures) -> None:
        self.names, self.signatures = names, signatures
        self.records, self.matched = [0] * len(names), [0] * len(names)
        self.details = RunningDetails()
        self._by_signature = [RunningSums() for _ in names]

    def add(self, several: Sequence[Tally]) -> None:
        """Add the numbers of a chunk."""
        for each in several:
            self._add(each)

    def _add(self, more: Tally) -> None:
        self.records[more.unit] += more.records
        self.matched[more.unit] += more.matched
        self._by_signature[more.unit].add(more.by_signature)
        if more.details is not None:
            self.details.add(more.details)

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
