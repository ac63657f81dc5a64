"""Numbers for the report of a scan: scores, places of matches and of errors."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.signatures import Signatures
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.sink import Findings
from multigpu.workloads.scan.sums import RunningSums, Sums

PLACES = 50  # parts of a sample, for the places of matches
LONG, LONG_PLACES = 100_000, 200  # bases from which on a sample is shown by itself, and its parts
MOST_LONG = 60  # such samples, the first with matches
MOST_BARCODES = 1 << 20  # of no sample: those that come later are not counted
OPERATION = re.compile(rb"(\d+)([=XID])")
MISMATCH, MISSING, EXTRA = range(KINDS := 3)  # bases of the signature, and of the sample alone

LongSample = tuple[bytes, int, NDArray[np.int64]]  # name, length, matches in its parts


@dataclass(frozen=True, eq=False, kw_only=True)
class Details:
    """Numbers of matches in a chunk.

    scores  by the whole part of the score
    places  by PLACES x signature + part of the sample in which the middle of a match lies, for
            samples that are not long
    errors  by KINDS x position in the signature + kind
    long    samples of at least LONG bases with matches
    """

    scores: Sums
    places: Sums
    errors: Sums
    long: tuple[LongSample, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Assigned:
    """Reads that were assigned to samples by their barcodes; pairs are one read.

    reads       all of them
    by_sample   reads of each sample; one that is tied counts for several
    unknown     reads of no sample
    barcodes    what these have in place of barcodes, with the number of reads
    """

    reads: int
    by_sample: Sums
    unknown: int
    barcodes: dict[bytes, int]


def assigned_of(found: Findings, samples: int) -> Assigned:
    """Return the numbers of a chunk. samples: their number in the sheet."""
    step = 2 if found.is_paired else 1
    reads, of = len(found.lengths) // step, found.rows.sample_index // step
    pairs = np.unique(of * samples + found.rows.signature)
    unknown = np.setdiff1d(np.arange(reads), of)
    texts = [] if found.barcodes is None else found.barcodes(unknown)
    return Assigned(
        reads=reads,
        by_sample=Sums.of(pairs % samples),
        unknown=len(unknown),
        barcodes=dict(Counter(text.upper() for text in texts)),
    )


def details_of(rows: Batch, signatures: Signatures, options: ScanOptions) -> Details:
    """Return the numbers of rows, which have alignments where errors are searched."""
    # Matches over the origin of a circle lie at its end.
    middle = np.clip((rows.start + rows.end) // 2, 0, np.maximum(rows.sample_length - 1, 0))
    is_long = rows.sample_length >= LONG
    keys = rows.signature.astype(np.int64) * PLACES
    keys += middle * PLACES // np.maximum(rows.sample_length, 1)
    lengths = signatures.letters.lengths[rows.signature].tolist()
    alike = Counter(zip(rows.cigar, rows.reverse.tolist(), lengths, strict=True))
    errors = [(key, count) for each, count in alike.items() for key in _error_keys(*each)]
    if options.overhang:  # bases beyond the sample are not missing
        errors = [(key, count) for key, count in errors if key % KINDS != MISSING]
    which, counts = np.array(errors, np.int64).reshape(-1, 2).T
    return Details(
        scores=Sums.of(rows.score[~np.isnan(rows.score)].astype(np.int64)),
        places=Sums.of(keys[~is_long]),
        errors=Sums.of(which, matches=counts),
        long=tuple(_long_samples(rows, middle, is_long)),
    )


def _long_samples(
    rows: Batch, middle: NDArray[np.int64], is_long: NDArray[np.bool_]
) -> Iterator[LongSample]:
    for sample in np.unique(rows.sample_index[is_long])[:MOST_LONG].tolist():
        which = np.flatnonzero(rows.sample_index == sample)
        length = int(rows.sample_length[which[0]])
        parts = np.bincount(middle[which] * LONG_PLACES // length, minlength=LONG_PLACES)
        yield rows.sample[which[0]], length, parts


def _error_keys(cigar: bytes, is_reverse: bool, length: int) -> Iterator[int]:
    """Yield the keys of the errors of an alignment with a signature of this length."""
    position, operations = 0, OPERATION.findall(cigar)
    for text, kind in operations[::-1] if is_reverse else operations:
        count = int(text)
        if kind == b"I":
            yield from [KINDS * min(position, length - 1) + EXTRA] * count
            continue
        what = MISMATCH if kind == b"X" else MISSING
        if kind != b"=":
            yield from range(KINDS * position + what, KINDS * (position + count) + what, KINDS)
        position += count


class RunningDetails:
    """Numbers of all matches so far."""

    def __init__(self) -> None:
        self.scores, self.places, self.errors = RunningSums(), RunningSums(), RunningSums()
        self.long: list[LongSample] = []
        self.by_sample, self.reads, self.unknown = RunningSums(), 0, 0
        self.barcodes: dict[bytes, int] = {}

    def add(self, more: Details) -> None:
        self.scores.add(more.scores)
        self.places.add(more.places)
        self.errors.add(more.errors)
        self.long += more.long[: MOST_LONG - len(self.long)]

    def add_reads(self, more: Assigned) -> None:
        self.reads, self.unknown = self.reads + more.reads, self.unknown + more.unknown
        self.by_sample.add(more.by_sample)
        for text, count in more.barcodes.items():
            if text in self.barcodes or len(self.barcodes) < MOST_BARCODES:
                self.barcodes[text] = self.barcodes.get(text, 0) + count
