"""Rows of a scan, made of the matches in a span."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.pieces import Pieces
from multigpu.formats.sequences.signatures import Signatures
from multigpu.formats.storage.sources import Source, first_files
from multigpu.kernels.compiled.text.records import LENGTH
from multigpu.kernels.scan import Hits, Patterns, allowed_bases
from multigpu.kernels.scan.approximate.alignment import Layouts, align_layouts
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.patterns import searched_errors
from multigpu.workloads.scan.search import Matches
from multigpu.workloads.scan.sink import Sink
from multigpu.workloads.scan.views import View

Numbers = NDArray[np.integer]

BULGE_WEIGHT = 1 << 16  # errors that a bulged base counts as: any bulge is worse than mismatches


@dataclass(frozen=True, eq=False, kw_only=True)
class TopRule:
    """The rule for which signatures are the best of a read: those with the fewest errors.

    Of samples by their barcodes the same rule is compiled, see `multigpu.kernels.scan.barcodes`.

    most    int64[signatures]: errors that a row may have
    absent  int64[signatures]: cost of a mate in which the signature was not found: of errors one
            more than are searched for, which it has at least
    delta   errors that another signature must have more than the best, else both are tied
    """

    most: NDArray[np.int64]
    absent: NDArray[np.int64]
    delta: int

    @classmethod
    def of(cls, signatures: Signatures, options: ScanOptions) -> "TopRule":
        lengths = signatures.letters.lengths
        bulges = BULGE_WEIGHT * max(options.max_dna_bulges, options.max_rna_bulges)
        return cls(
            most=allowed_bases(options.most_errors, lengths) + bulges,
            absent=(
                0 * lengths if options.overhang else searched_errors(lengths, options) + bulges + 1
            ),
            delta=options.min_delta,
        )

    def choose(
        self,
        record: NDArray[np.integer],
        mate: NDArray[np.int8],
        signature: NDArray[np.integer],
        errors: NDArray[np.integer],
        cost: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return the rows among hits, of which a record and a signature have at most one.

        They are intp[k], numbers of hits, ascending; and int32[k], how many signatures are as good
        for the read, the row's own among them.

        A pair of reads, whose second mate is the record after the first, is one read with the sum
        of its errors. Signatures are tied that have fewer errors than the fewest and `delta`, also
        where these are more than a row may have.

        cost  int64[n], to compare signatures by instead of the errors (see `Hits.cost`)
        """
        read = record.astype(np.int64) - (mate == 2)
        both, which = np.unique(read * len(self.most) + signature, return_inverse=True)
        total = np.bincount(which, errors if cost is None else cost, len(both)).astype(np.int64)
        # A read and a signature; number of a hit of theirs.
        hit = np.zeros(len(both), np.intp)
        hit[which] = np.arange(len(which))
        lacks_mate = (mate[hit] > 0) & (np.bincount(which, minlength=len(both)) == 1)
        total += np.where(lacks_mate, self.absent[signature[hit]], 0)
        _, group = np.unique(read[hit], return_inverse=True)
        fewest = np.full(len(both), np.iinfo(np.int64).max)
        np.minimum.at(fewest, group, total)
        is_best = total < fewest[group] + self.delta
        tied = np.bincount(group, is_best)[group]
        chosen = np.flatnonzero(is_best[which] & (errors <= self.most[signature]))
        return chosen, tied[which[chosen]].astype(np.int32)


class RowMaker:
    """Maker of rows: names and scores, and what else outputs need.

    view   what was searched of the records; None: all of them
    needs  columns that an output asks for, of those that cost something
    """

    def __init__(
        self,
        patterns: Patterns,
        sources: Sequence[Source],
        signatures: Signatures,
        options: ScanOptions,
        sinks: Sequence[Sink[Any]],
        view: View | None,
    ) -> None:
        self._patterns, self._sources, self._options, self._view = patterns, sources, options, view
        self._lengths = signatures.letters.lengths
        self._first_file = first_files(sources)
        self._top = TopRule.of(signatures, options) if options.hits == "top" else None
        self.needs = frozenset[str]().union(*(sink.needs for sink in sinks))

    def of(self, pieces: Pieces, view: Pieces, matches: Matches) -> tuple[Batch, NDArray[np.uint8]]:
        """Return the rows of matches, without those of low scores, and the flags of each.

        view  what was searched of the records, `pieces`
        """
        source = self._sources[pieces.source]
        if self._top is not None:
            matches = self._best(self._top, source, matches)
        hits = self._view.in_records(pieces, matches.hits) if self._view else matches.hits
        score = self._scores(pieces, hits)
        if self._options.min_score is not None:
            kept = np.flatnonzero(~(score < self._options.min_score))  # or there is no score
            matches, hits, score = matches.take(kept), hits.take(kept), score[kept]
        strands, mates = self._patterns.strands, pieces.mates
        places = hits.record, hits.start, hits.end
        file = self._first_file[pieces.source] + hits.record % len(source.files)
        rows = Batch(
            sample_index=hits.record.astype(np.int64),
            sample=self._names(pieces, hits),
            signature=(hits.pattern // strands).astype(np.int32),
            start=hits.start,
            end=hits.end,
            reverse=hits.pattern % strands == 1,
            score=score,
            ambiguous=matches.ambiguous,
            errors=hits.errors,
            sample_length=pieces.table[hits.record, LENGTH],
            source=file.astype(np.int32),
            mate=_mates_of_pairs(source, hits) if mates is None else mates[hits.record],
            tied=np.zeros(len(hits), np.int32) if matches.tied is None else matches.tied,
            bulge=self._bulges(hits),
            cigar=self._cigars(view, matches),
            bases=letters_of(pieces, *places) if "bases" in self.needs else [b""] * len(hits),
        )
        return rows, hits.edge

    def _best(self, rule: TopRule, source: Source, matches: Matches) -> Matches:
        """Return the matches of the best signatures of each read; each read is alone."""
        hits = matches.hits
        chosen, tied = rule.choose(
            hits.record,
            _mates_of_pairs(source, hits),
            hits.pattern // self._patterns.strands,
            hits.errors + BULGE_WEIGHT * np.abs(self._bulges(hits)),
            hits.cost if self._options.overhang else None,
        )
        return replace(matches.take(chosen), tied=tied)

    def _names(self, pieces: Pieces, hits: Hits) -> list[bytes]:
        """Return the names of the records that the hits are in; empty ones if no output asks."""
        if "sample" not in self.needs:
            return [b""] * len(hits)
        records = hits.record.tolist()
        names = dict.fromkeys(records, b"")
        names.update(zip(names, pieces.names(np.array([*names], np.int64)), strict=True))
        return [names[record] for record in records]

    def _scores(self, pieces: Pieces, hits: Hits) -> NDArray[np.float64]:
        """Return the mean Phred score of the bases under each match: an exact sum, divided once.

        NaN for records without qualities, for a match without a base of the sample, and for all
        where neither an output nor an option asks.
        """
        if "score" not in self.needs and self._options.min_score is None:
            return np.full(len(hits), np.nan)
        windows = hits.record, hits.start, hits.end
        return pieces.text.mean_qualities(pieces.table, windows, self._options.phred_offset)

    def _bulges(self, hits: Hits) -> NDArray[np.int32]:
        """Return the bases of each match that are of the sample alone, less of the signature."""
        if not self._options.has_bulges:
            return np.zeros(len(hits), np.int32)
        lengths = self._lengths[hits.pattern // self._patterns.strands]
        return (hits.end - hits.start - lengths).astype(np.int32)

    def _cigars(self, view: Pieces, matches: Matches) -> list[bytes]:
        """Return the alignments of the matches."""
        has_gaps = self._options.max_edits or self._options.has_bulges
        if has_gaps or "cigar" not in self.needs:
            return matches.cigars
        strict, hits = self._options.sample_n == "mismatch", matches.hits
        layouts = Layouts(self._patterns.sets, self._patterns.offsets)
        found = align_layouts(view.offsets, view.letters, layouts, hits, hits.pattern, strict)
        return found.texts()


def letters_of(pieces: Pieces, records: Numbers, starts: Numbers, ends: Numbers) -> list[bytes]:
    """Return the letters of windows of records, over their origin where an end is beyond."""
    begins, stops = pieces.offsets[records], pieces.offsets[records + 1]
    lasts, more = np.minimum(begins + ends, stops), np.maximum(begins + ends - stops, 0)
    borders = zip(*(each.tolist() for each in (begins, starts, lasts, more)), strict=True)
    return [
        pieces.letters[begin + start : last].tobytes() + pieces.letters[begin:][:rest].tobytes()
        for begin, start, last, rest in borders
    ]


def _mates_of_pairs(source: Source, hits: Hits) -> NDArray[np.int8]:
    """Return int8[n]: which of a pair of reads each hit is in, 1 or 2; 0 without pairs."""
    if not source.is_paired:
        return np.zeros(len(hits), np.int8)
    return (hits.record % 2 + 1).astype(np.int8)
