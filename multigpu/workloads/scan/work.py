"""The scan as a workload: spans of sample files in, rows out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.events import add_device_steps
from multigpu.cluster.engine.workload import Place
from multigpu.errors import Failure, InputError
from multigpu.formats.sequences.pieces import Pieces
from multigpu.formats.sequences.reader import SpanReader
from multigpu.formats.sequences.sample_sheets import SampleSheet
from multigpu.formats.sequences.signatures import Signatures, illegal_base
from multigpu.formats.sequences.spans import BlockSpan, FileSpan, Span
from multigpu.formats.sequences.streams import OpenStreams
from multigpu.formats.storage.sources import Source, first_files
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan import BadBaseError, Hits, TooManyPatternsError
from multigpu.kernels.scan.approximate.pieces import Portion
from multigpu.run.fitness import Expected, require
from multigpu.workloads.scan.barcodes import BarcodeSearch
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.parts import (
    RecordPiece,
    RowStats,
    ScanPart,
)
from multigpu.workloads.scan.plan import describe_index, expected_bases, index_size
from multigpu.workloads.scan.rows import RowMaker, letters_of
from multigpu.workloads.scan.search import SignatureSearch, open_search
from multigpu.workloads.scan.sink import Findings, RecordTexts, Sink
from multigpu.workloads.scan.views import CircularView, View, WithinView

NO_SAMPLE = -1  # index that no row has


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
        records = f" of {len(span.table)} records" if isinstance(span, BlockSpan) else ""
        return f"{path}, a block{records}"

    def correct(self, span: Span | None, part: ScanPart) -> Span | None:
        """Return the span again, from where the part before ended, if the part begins elsewhere.

        The first span of a FASTQ file begins at a record, so by induction all do, however the first
        record of a span was found; likewise spans of FASTA begin after a header line that continues
        in them. Blocks are exact by themselves.
        """
        source = self.sources[part.source]
        if not source.has_ranges:
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
        self.search: SignatureSearch
        if workload.sheet:
            self.search = BarcodeSearch(workload.sheet, workload.sources, workload.options)
        else:
            self.search = open_search(place, workload.signatures, workload.options, bases)
        lengths = self.search.patterns.lengths
        size = index_size(lengths, workload.options, bases, place.gpu is not None)
        self._index_bytes = size.memory
        self._first_file = first_files(workload.sources)
        self.reader = SpanReader(
            workload.sources,
            workload.streams,
            overlap=self.search.overlap,
            phred_offset=workload.options.phred_offset,
            allocate=self.search.allocate,
        )
        self._view = open_view(workload.options, lengths)
        self._view_letters = Buffers(self.search.allocate)
        self._rows = RowMaker(
            self.search.patterns, workload.sources, workload.signatures, workload.options,
            workload.sinks, self._view,
        )  # fmt: skip

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
            rows, edge = self._rows.of(pieces, view, matches)
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
        illegal_lead: tuple[int, bytes] | None,
    ) -> ScanPart:
        """Return the part: rows of the lead and of the tail are kept apart from the others."""
        first, last = int(pieces.lead), len(pieces.table) - 1  # records that begin in the span
        has_tail = pieces.tail and last >= first
        is_lead = rows.sample_index == (0 if pieces.lead else NO_SAMPLE)
        is_tail = rows.sample_index == (last if has_tail else NO_SAMPLE)
        rows = rows.numbered(-first) if first else rows
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
        stop = max(first, last if has_tail else last + 1)
        source = self.workload.sources[pieces.source]
        whole = Findings(
            path=source.path,
            source=self._first_file[pieces.source],
            files=len(source.files),
            is_paired=source.is_paired,
            rows=rows[~(is_lead | is_tail)] if pieces.lead or has_tail else rows,
            lengths=pieces.inside[first:stop],
            names=lambda: pieces.names(np.arange(first, stop)),
            letters=lambda records, *ends: letters_of(pieces, first + records, *ends),
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
            bases=int(pieces.offsets[-1]) - pieces.beyond,
            longest=int(np.diff(pieces.offsets).max(initial=0)),
            payloads=payloads,
            stats=RowStats.of(whole.rows, "sample" in self._rows.needs),
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
    ) -> tuple[InputError | None, tuple[int, bytes] | None]:
        """Return (error, illegal_lead) of the part.

        An illegal letter stands before what the reader reports.
        """
        pieces = loaded.pieces
        if position is None:
            return pieces.error, None
        chunk = loaded.portion.chunk
        piece = int(np.searchsorted(chunk.offsets, position, "right")) - 1
        letter = chunk.letters[position : position + 1].tobytes()
        place = position - int(chunk.offsets[piece])
        if pieces.lead and piece == 0:
            return None, (place, letter)
        files, name = self.workload.sources[pieces.source].files, pieces.name(piece)
        path = files[piece % len(files)].path
        return illegal_base(path, name, letter, place), None

    def close(self) -> None:
        self.search.close()
        self._view_letters.clear()
        self.reader.clear()


def open_view(options: ScanOptions, lengths: NDArray[np.int64]) -> View | None:
    """Return what the search sees of the records, for patterns of these lengths; None: all."""
    if options.within is not None:
        return WithinView(options.within)
    return CircularView(int(lengths.max())) if options.circular else None
