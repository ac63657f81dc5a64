"""Numbers of matches by file and signature: what workers count of a chunk, and their sums."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.signatures import Signatures
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.details import (
    Assigned,
    Details,
    RunningDetails,
    assigned_of,
    details_of,
)
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.sink import Findings
from multigpu.workloads.scan.sums import RunningSums, Sums

# Scores and shares are summed as whole parts of this size: sums do not depend on their order.
PARTS_OF_ONE = 1 << 20
DIGITS = 4  # after the point, of means


@dataclass(frozen=True, eq=False, kw_only=True)
class Tally:
    """Numbers of matches of one file in a chunk.

    unit          what is counted for: the number of the file
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
    assigned: Assigned | None = None


def tallies_of(
    found: Findings, signatures: Signatures, options: ScanOptions, is_detailed: bool
) -> tuple[Tally, ...]:
    """Return the numbers of each file in a chunk."""
    tallies = []
    has_samples = is_detailed and options.sample_sheet is not None
    for unit in range(found.source, found.source + found.files):
        rows = found.rows if found.files == 1 else found.rows[found.rows.source == unit]
        # Rows of a sample stand together, and among these those of a signature.
        is_first = np.diff(rows.sample_index, prepend=-2) != 0
        tallies.append(
            Tally(
                unit=unit,
                records=len(found.lengths) // found.files,
                matched=int(np.count_nonzero(is_first)),
                by_signature=_sums(
                    rows, is_first | (np.diff(rows.signature, prepend=-1) != 0), signatures, options
                ),
                details=details_of(rows, signatures, options) if is_detailed else None,
                assigned=assigned_of(found, len(signatures))
                if has_samples and unit == found.source
                else None,
            )
        )
    return tuple(tallies)


def _sums(
    rows: Batch, is_new: NDArray[np.bool_], signatures: Signatures, options: ScanOptions
) -> Sums:
    """Return the sums of a file. is_new: whether a row is the first of sample and signature."""
    scored, seen = ~np.isnan(rows.score), np.ones(len(rows))
    if not options.max_edits and options.sample_sheet is None:
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

    names    of the files, by their numbers
    records  reads, or sequences, of each file
    matched  those with a match
    details  for a report
    """

    def __init__(self, names: Sequence[str], signatures: Signatures) -> None:
        self.names, self.signatures, self.details = names, signatures, RunningDetails()
        self.records, self.matched = [0] * len(names), [0] * len(names)
        self._by_signature = [RunningSums() for _ in names]

    def add(self, several: Sequence[Tally]) -> None:
        """Add the numbers of a chunk."""
        for more in several:
            self.records[more.unit] += more.records
            self.matched[more.unit] += more.matched
            self._by_signature[more.unit].add(more.by_signature)
            if more.details is not None:
                self.details.add(more.details)
            if more.assigned is not None:
                self.details.add_reads(more.assigned)

    def __iter__(self) -> Iterator[dict[str, NDArray[np.int64 | np.float64]]]:
        """Yield the numbers of all signatures in each file, [signatures] each.

        reads       int64: records with a match
        matches     int64
        share       float64: reads, of all records of the file
        mean_score  float64: of the matches; NaN where none has one
        covered     float64: mean share of the signature that lies in the sample; 0 without matches
        """
        for records, sums in zip(self.records, self._by_signature, strict=True):
            total, size = sums.total(), len(self.signatures)
            reads, matches, scored = (
                total.dense(name, size) for name in ("reads", "count", "scored")
            )
            with np.errstate(invalid="ignore"):
                scores = total.dense("score", size) / PARTS_OF_ONE / scored
            seen = total.dense("seen", size) / PARTS_OF_ONE / np.maximum(matches, 1)
            yield {
                "reads": reads,
                "matches": matches,
                "share": reads / max(records, 1),
                "mean_score": np.round(scores, DIGITS),
                "covered": np.round(seen, DIGITS),
            }

    def top(self, most: int) -> NDArray[np.intp]:
        """Return the signatures with most reads, at most so many, in the order of all."""
        reads = np.zeros(len(self.signatures), np.int64)
        for each in self._by_signature:
            reads += each.total().dense("reads", len(reads))
        return np.sort(np.argsort(-reads, kind="stable")[:most])
