"""The scan as a workload: spans of sample files in, rows out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place
from multigpu.cluster.workers.history import add_device_steps
from multigpu.errors import Failure, InputError
from multigpu.formats.sequences.bgzf_ranges import has_ranges
from multigpu.formats.sequences.pieces import Pieces
from multigpu.formats.sequences.reader import SpanReader
from multigpu.formats.sequences.sample_sheets import SampleSheet
from multigpu.formats.sequences.signatures import Signatures, illegal_base
from multigpu.formats.sequences.spans import BlockSpan, FileSpan, Span
from multigpu.formats.sequences.streams import OpenStreams
from multigpu.formats.storage.sources import Source, first_files
from multigpu.kernels.compiled.text.records import LENGTH, QUALITY
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan import BadBaseError, Chunk, Hits, TooManyPatternsError
from multigpu.kernels.scan.approximate.alignment import align_without_gaps
from multigpu.run.fitness import Expected, require
from multigpu.workloads.scan.barcodes import BarcodeSearch
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.circular import CircularView
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.parts import (
    IllegalBase,
    RecordPiece,
    RowStats,
    ScanPart,
)
from multigpu.workloads.scan.plan import describe_index, expected_bases, index_size
from multigpu.workloads.scan.search import Matches, Portion, SignatureSearch, open_search
from multigpu.workloads.scan.sink import Findings, RecordTexts, Sink
from multigpu.workloads.scan.top import BULGE_WEIGHT, TopRule
from multigpu.workloads.scan.views import View
from multigpu.workloads.scan.within import WithinView


@dataclass(eq=False, kw_only=True)
class ScanWorkload:
    """Everything that a worker needs for a scan.

    sheet     samples and their barcodes, which are searched instead of signatures; or None
    sinks     outputs, for each of which parts have a payload
    streams   the compressed files that this process reads
    expected  requirements for a worker that is not this process
    reached   on the client: the bytes, of both files of a pair, up to which each source is known
              to be cut right
    """

    key: str
    sources: Sequence[Source]
    signatures: Signatures
    options: ScanOptions
    sinks: Sequence[Sink[Any]]
    streams: OpenStreams
    sheet: SampleSheet | None = None
    expected: Expected | None = None
    reached: dict[int, tuple[int, int]] = field(default_factory=dict)

    def open(self, place: Place) -> "ScanSession":
        """Return a session on a device. Raises Unfit where the worker may not take part."""
        require(self.expected, place)
        return ScanSession(self, place)

    def name(self, span: Span) -> str:
        """Return the file of a span, and which piece of it."""
        path = self.sources[span.source].path
        if isinstance(span, FileSpan):
            return f"{path}, bytes {span.start} to {span.stop}"
        records = f" of {len(span.parsed.table)} records" if isinstance(span, BlockSpan) else ""
        return f"{path}, a block{records}"

    def correct(self, span: Span | None, part: ScanPart) -> Span | None:
        """Return the span again, from where the part before ended, if the part begins elsewhere.

        The first span of a FASTQ file begins at a record, so by induction all do, however the first
        record of a span was found; likewise spans of FASTA begin after a header line that continues
        in them. Blocks are exact by themselves.
        """
        source = self.sources[part.source]
        if not source.cuttable and not has_ranges(source):
            return None
        reached, mate_reached = self.reached.get(part.source, (0, 0))
        if (part.begin, part.mate_begin) == (reached, mate_reached):
            self.reached[part.source] = part.stop, part.mate_stop
            return None
        is_empty = not part.records and part.lead is None and part.error is None
        if not isinstance(span, FileSpan) or (reached >= span.stop and is_empty):
            return None
        return replace(span, start=reached, mate_start=mate_reached, exact=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedPieces:
    """Records of a span in host memory, and what of them is searched.

    view     as the search takes them; the records themselves, unless the options say otherwise
    portion  bases of the view
    """

    pieces: Pieces
    view: Pieces
    portion: Portion


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchResult:
    """Hits in the loaded bases, as the search gives them.

    illegal  position of a letter that is no base, for which there are no hits; or None
    """

    hits: Hits | None = None
    illegal: int | None = None


class ScanSession:
    """A scan on one device of a worker: the search for the signatures, and buffers."""

    def __init__(self, workload: ScanWorkload, place: Place) -> None:
        self.workload = workload
        bases = expected_bases(workload.sources)
        self.search: SignatureSearch[Any]
        if workload.sheet:
            self.search = BarcodeSearch(workload.sheet, workload.sources, workload.options)
        else:
            self.search = open_search(place, workload.signatures, workload.options, bases)
        is_top = workload.options.hits == "top"
        self._top = TopRule.of(workload.signatures, workload.options) if is_top else None
        lengths = self.search.patterns.lengths
        size = index_size(lengths, workload.options, bases, place.gpu is not None)
        self._index_bytes = size.memory
        self._first_file = first_files(workload.sources)
        needs = [sink.needs for sink in workload.sinks]
        self._needed = frozenset[str]().union(*needs)
        self.reader = SpanReader(
            workload.sources,
            workload.streams,
            overlap=self.search.overlap,
            phred_offset=workload.options.phred_offset,
            allocate=self.search.allocate,
        )
        self._view = open_view(workload.options, lengths)
        self._view_letters = Buffers(self.search.allocate)

    def load(self, span: Span) -> LoadedPieces:
        pieces = self.reader.read(span)
        view = self._view.of(pieces, self._view_letters) if self._view else pieces
        return LoadedPieces(pieces=pieces, view=view, portion=self.search.whole(view))

    def compute(self, loaded: LoadedPieces) -> SearchResult:
        """Find all hits in the loaded bases, also those that belong to the next span."""
        try:
            hits = self.search.find(loaded.portion)
        except BadBaseError as problem:
            return SearchResult(illegal=problem.position)
        except TooManyPatternsError as problem:
            needs = describe_index(self.workload.signatures, self._index_bytes)
            raise Failure(f"{needs}: {problem}") from problem
        add_device_steps(self.search.seconds())
        return SearchResult(hits=hits)

    def need(self, loaded: LoadedPieces) -> int:
        """Return the device memory for letters, planes, places, offsets and counts, in bytes."""
        chunk = loaded.portion.chunk
        base_bytes = 2.0 if self.workload.options.has_errors else 1.5
        return int(base_bytes * len(chunk.letters)) + 16 * len(chunk.offsets)

    def halves(self, loaded: LoadedPieces) -> tuple[LoadedPieces, ...]:
        """Return two pieces that together have all hits."""
        return tuple(replace(loaded, portion=half) for half in self.search.halves(loaded.portion))

    def joined(
        self,
        loaded: LoadedPieces,
        halves: Sequence[LoadedPieces],
        computed: Sequence[SearchResult],
    ) -> SearchResult:
        """Return the hits of both halves as hits of the whole, or the first illegal letter."""
        for half, found in zip(halves, computed, strict=True):
            if found.illegal is not None:
                return SearchResult(illegal=half.portion.begin + found.illegal)
        hits = [found.hits for found in computed if found.hits is not None]
        return SearchResult(hits=self.search.join([half.portion for half in halves], hits))

    def finish(self, loaded: LoadedPieces, computed: SearchResult) -> ScanPart:
        """Return the part, with what each output takes of it."""
        pieces, view = loaded.pieces, loaded.view
        rows, edge = Batch.empty(), np.empty(0, np.uint8)
        if computed.hits is not None:
            matches = self.search.matches(view, loaded.portion, computed.hits)
            rows, edge = self._rows(loaded, matches)
        part = self._part(pieces, rows, edge, *self._problems(loaded, computed.illegal))
        self.search.give_back(view, loaded.portion)
        if view is not pieces:
            self._view_letters.give(view.letters)
        self.reader.give_back(pieces)
        return part

    def _part(
        self,
        pieces: Pieces,
        rows: Batch,
        edge: NDArray[np.uint8],
        error: InputError | None,
        illegal_lead: IllegalBase | None,
    ) -> ScanPart:
        """Return the part: rows of the lead and of the tail are kept apart from the others."""
        first, last = int(pieces.lead), len(pieces.table) - 1  # records that begin in the span
        has_tail = pieces.tail and last >= first
        is_lead = (rows.sample_index == 0) & pieces.lead
        is_tail = (rows.sample_index == last) & has_tail
        rows = replace(rows, sample_index=rows.sample_index - first)
        lead = tail = None
        if pieces.lead:
            lead = RecordPiece(
                name=b"", bases=int(pieces.inside[0]), rows=rows[is_lead], edge=edge[is_lead]
            )
        if has_tail:
            tail = RecordPiece(
                name=pieces.name(last),
                bases=int(pieces.inside[-1]),
                rows=rows[is_tail],
                edge=edge[is_tail],
            )
        records = np.arange(first, max(first, last if has_tail else last + 1))
        source = self.workload.sources[pieces.source]
        whole = Findings(
            path=source.path,
            source=self._first_file[pieces.source],
            files=len(source.files),
            is_paired=source.is_paired,
            rows=rows[~(is_lead | is_tail)],
            lengths=pieces.table[records, LENGTH],
            names=partial(pieces.names, records),
            letters=partial(_letters, pieces, first),
            barcodes=self._barcode_texts(pieces),
            texts=RecordTexts(text=pieces.text, borders=pieces.borders),
        )
        payloads: tuple[Any, ...] = ()
        try:
            payloads = tuple(sink.collect(whole) for sink in self.workload.sinks)
        except InputError as refused:  # it stands before what is wrong otherwise
            error = refused
        return ScanPart(
            source=pieces.source,
            number=pieces.number,
            ended=pieces.ended,
            begin=pieces.begin,
            stop=pieces.stop,
            mate_begin=pieces.mate_begin,
            mate_stop=pieces.mate_stop,
            records=len(pieces.table) - first,
            bases=int(pieces.inside.sum()),
            longest=int(pieces.table[:, LENGTH].max(initial=0)),
            payloads=payloads,
            stats=RowStats.of(whole.rows, "sample" in self._needed),
            lead=lead,
            tail=tail,
            error=error,
            illegal_lead=illegal_lead,
            left_out=pieces.left_out,
        )

    def _barcode_texts(self, pieces: Pieces) -> Callable[[NDArray[np.int64]], list[bytes]] | None:
        has_places = self.workload.options.within is None
        if isinstance(self.search, BarcodeSearch) and has_places:
            return partial(self.search.texts, pieces)
        return None

    def _problems(
        self, loaded: LoadedPieces, position: int | None
    ) -> tuple[InputError | None, IllegalBase | None]:
        """Return (error, illegal_lead) of the part.

        An illegal letter stands before what the reader reports.
        """
        pieces = loaded.pieces
        if position is None:
            return pieces.error, None
        illegal = _illegal_base_at(loaded.portion.chunk, position)
        if pieces.lead and illegal.piece == 0:
            return None, illegal
        files, name = self.workload.sources[pieces.source].files, pieces.name(illegal.piece)
        path = files[illegal.piece % len(files)].path
        return illegal_base(path, name, illegal.letter, illegal.position), None

    def _rows(self, loaded: LoadedPieces, matches: Matches) -> tuple[Batch, NDArray[np.uint8]]:
        """Return matches with names and scores, without low scores, and the flags of each."""
        pieces, strands = loaded.pieces, self.search.patterns.strands
        source = self.workload.sources[pieces.source]
        tied = np.zeros(len(matches.hits), np.int32) if matches.tied is None else matches.tied
        if self._top is not None:
            hits = matches.hits
            # Those of alignments need not follow each other: each read is alone.
            mate = _mates_of_pairs(source, hits)
            errors = hits.errors + BULGE_WEIGHT * np.abs(self._bulges(hits))
            cost = hits.cost if self.workload.options.overhang else None
            top = self._top.choose(hits.record, mate, hits.pattern // strands, errors, cost)
            matches, tied = matches.take(top.chosen), top.tied
        hits = self._view.in_records(pieces, matches.hits) if self._view else matches.hits
        score = self._scores(pieces, hits)
        kept = np.ones(len(hits), bool)
        if self.workload.options.min_score is not None:
            kept = ~(score < self.workload.options.min_score)  # rows without a score stay
        hits = hits.take(kept)
        file = self._first_file[pieces.source] + hits.record % len(source.files)
        mates = pieces.mates
        rows = Batch(
            sample_index=hits.record.astype(np.int64),
            sample=self._names(pieces, hits),
            signature=(hits.pattern // strands).astype(np.int32),
            start=hits.start,
            end=hits.end,
            reverse=hits.pattern % strands == 1,
            score=score[kept],
            ambiguous=matches.ambiguous[kept],
            errors=hits.errors,
            sample_length=pieces.table[hits.record, LENGTH],
            source=file.astype(np.int32),
            mate=_mates_of_pairs(source, hits) if mates is None else mates[hits.record],
            tied=tied[kept],
            bulge=self._bulges(hits),
            cigar=self._cigars(loaded.view, matches, kept),
            bases=self._bases(loaded.view, matches.hits.take(kept)),
        )
        return rows, hits.edge

    def _names(self, pieces: Pieces, hits: Hits) -> list[bytes]:
        """Return the names of the records that the hits are in; empty ones if no output asks."""
        if "sample" not in self._needed:
            return [b""] * len(hits)
        unique, row = np.unique(hits.record.astype(np.int64), return_inverse=True)
        names = pieces.names(unique)
        return [names[i] for i in row.tolist()]

    def _bases(self, view: Pieces, hits: Hits) -> list[bytes] | None:
        """Return the letters under the hits, where an output needs them."""
        if "bases" not in self._needed:
            return None
        begins = view.offsets[hits.record] + hits.start
        ends = begins + hits.end - hits.start
        windows = zip(begins.tolist(), ends.tolist(), strict=True)
        return [view.letters[begin:end].tobytes() for begin, end in windows]

    def _scores(self, pieces: Pieces, hits: Hits) -> NDArray[np.float64]:
        """Return the mean Phred score of the bases under each match: an exact sum, divided once.

        NaN for records without qualities, and for a match without a base of the sample.
        """
        table, lengths = pieces.table[hits.record], hits.end - hits.start
        score, has = np.full(len(table), np.nan), table[:, QUALITY] >= 0
        if has.any():
            table, starts, lengths = table[has], hits.start[has], lengths[has]
            before = np.minimum(lengths, table[:, LENGTH] - starts)
            total = pieces.text.sum_qualities(table, starts, before)
            if self.workload.options.circular:
                total += pieces.text.sum_qualities(table, 0 * before, lengths - before)
            total -= lengths * self.workload.options.phred_offset
            found = np.full(len(table), np.nan)
            score[has] = np.divide(total, lengths, out=found, where=lengths > 0)
        return score

    def _bulges(self, hits: Hits) -> NDArray[np.int32]:
        """Return the bases of each match that are of the sample alone, less of the signature."""
        if not self.workload.options.has_bulges:
            return np.zeros(len(hits), np.int32)
        lengths = self.workload.signatures.letters.lengths
        signature = hits.pattern // self.search.patterns.strands
        return (hits.end - hits.start - lengths[signature]).astype(np.int32)

    def _cigars(self, view: Pieces, matches: Matches, kept: NDArray[np.bool_]) -> list[bytes]:
        """Return the alignments of the matches that are kept."""
        options = self.workload.options
        has_gaps = options.max_edits or options.has_bulges
        if "cigar" in self._needed and not has_gaps:
            strict = options.sample_n == "mismatch"
            return align_without_gaps(
                view.offsets, view.letters, self.search.patterns, matches.hits.take(kept), strict
            ).texts()
        if kept.all():
            return matches.cigars
        return [matches.cigars[i] for i in np.flatnonzero(kept).tolist()]

    def close(self) -> None:
        self.search.close()
        self._view_letters.clear()
        self.reader.clear()


def _letters(
    pieces: Pieces,
    first: int,
    records: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> list[bytes]:
    """Return the letters of windows of records; see `Findings.letters`."""
    begins, stops = pieces.offsets[first + records], pieces.offsets[first + records + 1]
    lasts, more = np.minimum(begins + ends, stops), np.maximum(begins + ends - stops, 0)
    borders = zip(*(each.tolist() for each in (begins, starts, lasts, more)), strict=True)
    return [
        pieces.letters[begin + start : last].tobytes() + pieces.letters[begin:][:rest].tobytes()
        for begin, start, last, rest in borders
    ]


def _mates_of_pairs(source: Source, hits: Hits) -> NDArray[np.int8]:
    """Return int8[n]: which of a pair of reads each hit is in, 1 or 2; 0 without pairs."""
    mates = hits.record % 2 + 1 if source.is_paired else np.zeros(len(hits))
    return mates.astype(np.int8)


def open_view(options: ScanOptions, lengths: NDArray[np.int64]) -> View | None:
    """Return what the search sees of the records, for patterns of these lengths; None: all."""
    if options.within is not None:
        return WithinView(options.within)
    return CircularView(int(lengths.max())) if options.circular else None


def _illegal_base_at(chunk: Chunk, position: int) -> IllegalBase:
    """Return the letter at a position of the chunk's bases."""
    piece = int(np.searchsorted(chunk.offsets, position, "right")) - 1
    letter = chunk.letters[position : position + 1].tobytes()
    return IllegalBase(piece=piece, position=position - int(chunk.offsets[piece]), letter=letter)
