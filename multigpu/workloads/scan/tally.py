"""Numbers of a scan for tables and reports: what workers count of a chunk, and all of a run."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.signatures import Signatures
from multigpu.workloads.scan.batch import Batch, spelled_out
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.sink import Findings

Numbers = NDArray[np.int64]

DENSE_KEYS = 1 << 16  # keys in a range up to this are counted by place, without sorting
# Scores and shares are summed as whole parts of this size: sums do not depend on their order.
PARTS_OF_ONE = 1 << 20
DIGITS = 4  # after the point, of means
PLACES = 50  # parts of a sample, for the places of matches
LONG, LONG_PLACES = 100_000, 200  # bases from which on a sample is shown by itself, and its parts
MOST_LONG = 60  # such samples, the first with matches
MOST_SUMS = 64  # of chunks, that wait to be joined
MOST_BARCODES = 1 << 20  # of no sample: those that come later are not counted
MISMATCH, MISSING, EXTRA = range(KINDS := 3)  # bases of the signature, and of the sample alone

LongSample = tuple[bytes, int, Numbers]  # name, length, matches in its parts


@dataclass(frozen=True, eq=False, kw_only=True)
class Sums:
    """Sums of whole numbers by key, which do not depend on the order in which they are added.

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
        first = keys.min() if len(keys) else 0
        which, distinct = keys - first, None
        if which.max(initial=0) >= DENSE_KEYS + 4 * len(keys):
            distinct, which = np.unique(keys, return_inverse=True)
        count = np.bincount(which)
        there = np.flatnonzero(count)
        sums = {k: np.bincount(which, v)[there].astype(np.int64) for k, v in weights.items()}
        keys = there + first if distinct is None else distinct
        return cls(keys=keys.astype(np.int64), numbers={"count": count[there], **sums})

    @classmethod
    def joined(cls, several: Sequence["Sums"]) -> Self:
        """Return the sums of several with numbers of the same names; of none without numbers."""
        several = several or [cls(keys=np.empty(0, np.int64), numbers={})]
        keys, which = np.unique(np.concatenate([s.keys for s in several]), return_inverse=True)
        numbers = {name: np.zeros(len(keys), np.int64) for name in several[0].numbers}
        for name, total in numbers.items():
            np.add.at(total, which, np.concatenate([s.numbers[name] for s in several]))
        return cls(keys=keys, numbers=numbers)

    def dense(self, name: str, size: int, first: int = 0) -> Numbers:
        """Return the sums of this name for `size` keys from `first` on, 0 where there are none."""
        found = np.zeros(size, np.int64)
        some = slice(*np.searchsorted(self.keys, [first, first + size]))
        found[self.keys[some] - first] = self.numbers.get(name, self.keys)[some]
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Tally:
    """Numbers of a chunk.

    sums      by name:
              files    by file: its records, and those that are matched
              matches  by number of the file x signatures + signature: count; reads: records with a
                       match; scored: matches with a score; score and seen: in parts of one, the
                       scores, and the shares of the signature that lie in the sample
              scores   by the whole part of the score: count of matches
              places   by PLACES x signature + part of the sample in which the middle of a match
                       lies: their count, for samples that are not long
              errors   by KINDS x position in the signature + kind: matches
              samples  by sample of a sheet: count of reads; one that is tied counts for several
              barcodes by 0: reads, of which mates are one, and those that are unknown: of no sample
    long      samples of at least LONG bases with matches
    barcodes  what reads of no sample have in place of barcodes, with their number
    """

    sums: dict[str, Sums]
    long: tuple[LongSample, ...] = ()
    barcodes: dict[bytes, int] = field(default_factory=dict)


def tally_of(
    found: Findings, signatures: Signatures, options: ScanOptions, is_detailed: bool
) -> Tally:
    """Return the numbers of a chunk: those of files and matches, and the others on request."""
    rows, size = found.rows, len(signatures)
    # Rows of a sample stand together, and among these those of a signature.
    is_first = np.diff(rows.sample_index, prepend=-2) != 0
    is_new = is_first | (np.diff(rows.signature, prepend=-1) != 0)
    scored, seen = ~np.isnan(rows.score), np.ones(len(rows))
    if not options.max_edits and options.sample_sheet is None:
        seen = (rows.end - rows.start - rows.bulge) / signatures.letters.lengths[rows.signature]
    sums = {
        "files": _files(found, is_first),
        "matches": Sums.of(
            rows.source.astype(np.int64) * size + rows.signature,
            reads=is_new,
            scored=scored,
            score=np.rint(np.where(scored, rows.score, 0) * PARTS_OF_ONE),
            seen=np.rint(seen * PARTS_OF_ONE),
        ),
    }
    if not is_detailed:
        return Tally(sums=sums)
    # Matches over the origin of a circle lie at its end.
    last = np.maximum(rows.sample_length - 1, 0)
    middle: Numbers = np.clip((rows.start + rows.end) // 2, 0, last)
    is_short = rows.sample_length < LONG
    places = rows.signature.astype(np.int64) * PLACES
    places += middle * PLACES // np.maximum(rows.sample_length, 1)
    sums["scores"] = Sums.of(rows.score[scored].astype(np.int64))
    sums["places"] = Sums.of(places[is_short])
    sums["errors"] = _errors(rows, signatures, options)
    barcodes: dict[bytes, int] = {}
    if options.sample_sheet is not None:
        more, barcodes = _assigned(found, size)
        sums |= more
    return Tally(sums=sums, long=tuple(_long_samples(rows, middle)), barcodes=barcodes)


def _files(found: Findings, is_first: NDArray[np.bool_]) -> Sums:
    """Return the records of each file. is_first: whether a row is the first of its record."""
    matched = np.bincount(found.rows.source[is_first] - found.source, minlength=found.files)
    records = np.full(found.files, len(found.lengths) // found.files)
    files = found.source + np.arange(found.files)
    return Sums(keys=files, numbers={"records": records, "matched": matched})


def _errors(rows: Batch, signatures: Signatures, options: ScanOptions) -> Sums:
    """Return the errors of rows, which have alignments where errors are searched."""
    lengths = signatures.letters.lengths[rows.signature].tolist()
    alike = Counter(zip(rows.cigar, rows.reverse.tolist(), lengths, strict=True))
    keys, matches = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for (cigar, is_reverse, length), count in alike.items():
        columns = np.frombuffer(spelled_out(cigar, is_reverse), np.uint8)
        of_signature = columns != ord("I")
        position = np.minimum(np.cumsum(of_signature) - of_signature, length - 1)
        kind = np.select([columns == ord("X"), of_signature], [MISMATCH, MISSING], EXTRA)
        is_error = columns != ord("=")
        if options.overhang:  # bases beyond the sample are not missing
            is_error &= kind != MISSING
        keys.append((KINDS * position + kind)[is_error])
        matches.append(np.full(len(keys[-1]), count))
    return Sums.of(np.concatenate(keys), matches=np.concatenate(matches))


def _long_samples(rows: Batch, middle: Numbers) -> Iterator[LongSample]:
    is_long = rows.sample_length >= LONG
    for sample in np.unique(rows.sample_index[is_long])[:MOST_LONG].tolist():
        which = np.flatnonzero(rows.sample_index == sample)
        length = int(rows.sample_length[which[0]])
        parts = np.bincount(middle[which] * LONG_PLACES // length, minlength=LONG_PLACES)
        yield rows.sample[which[0]], length, parts


def _assigned(found: Findings, samples: int) -> tuple[dict[str, Sums], dict[bytes, int]]:
    """Return reads by their barcodes, and the barcodes of no sample. samples: their number."""
    step = 2 if found.is_paired else 1
    reads, of = len(found.lengths) // step, found.rows.sample_index // step
    unknown = np.setdiff1d(np.arange(reads), of)
    texts = [] if found.barcodes is None else found.barcodes(unknown)
    numbers = {"reads": np.array([reads]), "unknown": np.array([len(unknown)])}
    sums = {
        "samples": Sums.of(np.unique(of * samples + found.rows.signature) % samples),
        "barcodes": Sums(keys=np.zeros(1, np.int64), numbers=numbers),
    }
    return sums, dict(Counter(text.upper() for text in texts))


class Tallies:
    """Numbers of all files of a scan.

    names     of the files, by their numbers
    long      the first samples of at least LONG bases with matches
    barcodes  what reads of no sample have in place of barcodes, with their number
    """

    def __init__(self, names: Sequence[str], signatures: Signatures) -> None:
        self.names, self.signatures = names, signatures
        self.long: list[LongSample] = []
        self.barcodes: dict[bytes, int] = {}
        self._sums: defaultdict[str, list[Sums]] = defaultdict(list)

    def add(self, more: Tally) -> None:
        """Add the numbers of a chunk."""
        for name, sums in more.sums.items():
            several = self._sums[name]
            several.append(sums)
            if len(several) > MOST_SUMS:
                several[:] = [Sums.joined(several)]
        self.long += more.long[: MOST_LONG - len(self.long)]
        for text, count in more.barcodes.items():
            if text in self.barcodes or len(self.barcodes) < MOST_BARCODES:
                self.barcodes[text] = self.barcodes.get(text, 0) + count

    def sums(self, name: str) -> Sums:
        """Return all sums that are added by this name of `Tally.sums`."""
        return Sums.joined(self._sums[name])

    @property
    def records(self) -> Numbers:
        """int64[files]: reads, or sequences, of each file."""
        return self.sums("files").dense("records", len(self.names))

    @property
    def matched(self) -> Numbers:
        """int64[files]: those with a match."""
        return self.sums("files").dense("matched", len(self.names))

    def __iter__(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the numbers of all signatures in each file, [signatures] each.

        reads       int64: records with a match
        matches     int64
        share       float64: reads, of all records of the file
        mean_score  float64: of the matches; NaN where none has one
        covered     float64: mean share of the signature that lies in the sample; 0 without matches
        """
        total, size = self.sums("matches"), len(self.signatures)
        for file, records in enumerate(self.records.tolist()):
            reads, matches, scored, score, seen = (
                total.dense(name, size, file * size)
                for name in ("reads", "count", "scored", "score", "seen")
            )
            with np.errstate(invalid="ignore"):
                mean = score / PARTS_OF_ONE / scored
            yield {
                "reads": reads,
                "matches": matches,
                "share": reads / max(records, 1),
                "mean_score": np.round(mean, DIGITS),
                "covered": np.round(seen / PARTS_OF_ONE / np.maximum(matches, 1), DIGITS),
            }

    def top(self, most: int) -> NDArray[np.intp]:
        """Return the signatures with most reads, at most so many, in the order of all."""
        total, size = self.sums("matches"), len(self.signatures)
        reads = Sums.of(total.keys % size, reads=total.numbers.get("reads", total.keys))
        order = np.argsort(-reads.dense("reads", size), kind="stable")
        return np.sort(order[:most])
