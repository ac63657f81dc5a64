"""The scan as a workload: spans of sample files in, rows out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place
from multigpu.cluster.workers.history import add_device_steps
from multigpu.errors import Failure, InputError
from multigpu.formats.sequences.pieces import Pieces
from multigpu.formats.sequences.reader import SpanReader
from multigpu.formats.sequences.signatures import Signatures, illegal_base
from multigpu.formats.sequences.spans import BlockSpan, Span
from multigpu.formats.storage.sources import Source
from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.writers import render
from multigpu.kernels.compiled.text.records import LENGTH, QUALITY
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan import (
    BadBaseError,
    Chunk,
    Hits,
    Part,
    Patterns,
    Rules,
    TooManyPatternsError,
    split,
)
from multigpu.kernels.scan.ambiguity import count_ambiguous
from multigpu.run.fitness import Expected, require
from multigpu.scan.ambiguity import Stretches, Windows, allowed_ambiguous
from multigpu.scan.options import ScanOptions
from multigpu.scan.parts import IllegalBase, RecordPiece, RowFacts, ScanPart
from multigpu.scan.plan import describe_index, expected_bases, index_size


@dataclass(eq=False, kw_only=True)
class ScanWorkload:
    """Everything that a worker needs for a scan.

    fmt       the text format in which workers render rows; None: rows stay columns
    expected  requirements for a worker that is not this process
    reached   on the client: the byte up to which each FASTQ source is known to be cut right
    """

    key: str
    sources: Sequence[Source]
    signatures: Signatures
    options: ScanOptions
    fmt: str | None = None
    expected: Expected | None = None
    reached: dict[int, int] = field(default_factory=dict)

    def open(self, place: Place) -> "ScanSession":
        """Return a session on a device. Raises Unfit where the worker may not take part."""
        require(self.expected, place)
        return ScanSession(self, place)

    def name(self, span: Span) -> str:
        """Return the file of a span, and which piece of it."""
        path = self.sources[span.source].path
        if isinstance(span, BlockSpan):
            return f"{path}, a block of {len(span.parsed.table)} records"
        return f"{path}, bytes {span.start} to {span.stop}"

    def correct(self, span: Span | None, part: ScanPart) -> Span | None:
        """Return the span again, from where the part before ended, if the part begins elsewhere.

        The first span of a FASTQ file begins at a record, so by induction all do, however the first
        record of a span was found. FASTA spans and blocks are exact by themselves.
        """
        source = self.sources[part.source]
        if isinstance(span, BlockSpan) or not source.cuttable or source.layout == "fasta":
            return None
        reached = self.reached.get(part.source, 0)
        if part.begin == reached:
            self.reached[part.source] = part.stop
            return None
        one_record_covers_it = (
            span is not None and reached >= span.stop and not part.records and part.error is None
        )
        if span is None or one_record_covers_it:
            return None
        return replace(span, start=reached, exact=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedPieces:
    """Records of a span in host memory.

    part       the half of the chunk to search, or None for all of it
    stretches  the bases that may have matches, or None for all of them
    """

    pieces: Pieces
    part: Part | None = None
    stretches: Stretches | None = None

    @property
    def chunk(self) -> Chunk:
        """All bases that may have matches, for the kernels."""
        if self.stretches is not None:
            return self.stretches.chunk
        return Chunk(self.pieces.letters, self.pieces.offsets)

    @property
    def searched(self) -> tuple[Chunk, int]:
        """Bases to search, and the position before which a hit must begin."""
        if self.part is not None:
            return self.part.chunk, self.part.limit
        return self.chunk, len(self.chunk.letters)


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchResult:
    """Hits in the loaded bases.

    illegal  position of a letter that is no base, for which there are no hits; or None
    """

    hits: Hits
    illegal: int | None = None


class Scanner(Protocol):
    """A backend of `multigpu.kernels.scan`."""

    def scan(self, chunk: Chunk, limit: int | None = None) -> Hits:
        """Return the hits that begin before `limit`."""

    def seconds(self) -> dict[str, float]:
        """Return how long the steps of the last search took on the device."""

    def close(self) -> None:
        """Free the memory of the index."""


class ScanSession:
    """A scan on one device of a worker: the index of the signatures, and buffers."""

    def __init__(self, workload: ScanWorkload, place: Place) -> None:
        self.workload = workload
        options = workload.options
        # The first match is the first with few enough ambiguous bases, which kernels do not count.
        first = options.hits == "first" and options.max_ambiguous is None
        self.rules = Rules(first, options.sample_n == "mismatch")
        letters, both = workload.signatures.letters, options.strand == "both"
        self.patterns = Patterns.of_joined(letters.joined, letters.offsets, both)
        bases = expected_bases(workload.sources)
        self._index_bytes = index_size(self.patterns.lengths, bases, place.gpu is not None).memory
        self.scanner, allocate = open_scanner(place, self.patterns, self.rules, bases)
        overlap = int(self.patterns.lengths.max()) - 1
        self.reader = SpanReader(
            workload.sources,
            overlap=overlap,
            phred_offset=options.phred_offset,
            allocate=allocate,
        )
        self._stretch_buffers = Buffers(allocate)
        self._windows: Windows | None = None
        if options.max_ambiguous is not None:
            self._windows = Windows(options.max_ambiguous, self.patterns.lengths)

    def load(self, span: Span) -> LoadedPieces:
        """Read and parse the span."""
        loaded = LoadedPieces(pieces=self.reader.read(span))
        if self._windows is None:
            return loaded
        buffer = self._stretch_buffers.take(len(loaded.pieces.letters))
        stretches = self._windows.find_stretches(loaded.chunk, buffer)
        if stretches is None:
            self._stretch_buffers.give(buffer)
        return replace(loaded, stretches=stretches)

    def compute(self, loaded: LoadedPieces) -> SearchResult:
        """Find all hits in the loaded bases, also those that begin after the span."""
        chunk, limit = loaded.searched
        try:
            hits = self.scanner.scan(chunk, limit)
        except BadBaseError as problem:
            return SearchResult(hits=Hits.none(), illegal=problem.position)
        except TooManyPatternsError as problem:
            needs = describe_index(self.workload.signatures, self._index_bytes)
            raise Failure(f"{needs}: {problem}") from problem
        add_device_steps(self.scanner.seconds())
        return SearchResult(hits=hits)

    def need(self, loaded: LoadedPieces) -> int:
        """Return the device memory for letters, planes, offsets and counts, in bytes."""
        chunk, _ = loaded.searched
        return int(1.5 * len(chunk.letters)) + 16 * len(chunk.offsets)

    def halves(self, loaded: LoadedPieces) -> tuple[LoadedPieces, ...]:
        """Return two pieces that overlap by the longest signature less one base."""
        chunk, limit = loaded.searched
        if limit < 2:
            return ()
        parts = split(chunk, limit, int(self.patterns.lengths.max()))
        return tuple(replace(loaded, part=part) for part in parts)

    def joined(
        self,
        loaded: LoadedPieces,
        halves: Sequence[LoadedPieces],
        computed: Sequence[SearchResult],
    ) -> SearchResult:
        """Return the hits of both halves as hits of the whole, or the first illegal letter."""
        hits = []
        for half, found in zip(halves, computed, strict=True):
            assert half.part is not None
            if found.illegal is not None:
                return SearchResult(hits=Hits.none(), illegal=half.part.begin + found.illegal)
            hits.append(half.part.moved(found.hits))
        ordered = Hits.joined(hits).ordered(self.patterns.strands, self.rules.first)
        return SearchResult(hits=ordered)

    def finish(self, loaded: LoadedPieces, computed: SearchResult) -> ScanPart:
        """Return the part, rows as text where the job has a text format."""
        pieces, hits = loaded.pieces, computed.hits
        if loaded.stretches is not None:
            hits = loaded.stretches.in_records(hits)
        rows = self._rows(pieces, hits.where(hits.start < pieces.inside[hits.record]))
        part = self._part(pieces, rows, *self._problems(loaded, computed.illegal))
        if loaded.stretches is not None:
            self._stretch_buffers.give(loaded.stretches.chunk.letters)
        self.reader.give_back(pieces)
        return part

    def _part(
        self,
        pieces: Pieces,
        rows: Batch,
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
            lead = RecordPiece(name=b"", bases=int(pieces.inside[0]), rows=rows[is_lead])
        if has_tail:
            tail = RecordPiece(
                name=pieces.name(last), bases=int(pieces.inside[-1]), rows=rows[is_tail]
            )
        whole = rows[~(is_lead | is_tail)]
        fmt = self.workload.fmt
        return ScanPart(
            source=pieces.source,
            begin=pieces.begin,
            stop=pieces.stop,
            records=len(pieces.table) - first,
            bases=int(pieces.inside.sum()),
            longest=int(pieces.table[:, LENGTH].max(initial=0)),
            rows=whole if fmt is None else render(whole, self.workload.signatures.names, fmt),
            facts=RowFacts.of(whole),
            lead=lead,
            tail=tail,
            error=error,
            illegal_lead=illegal_lead,
        )

    def _problems(
        self, loaded: LoadedPieces, position: int | None
    ) -> tuple[InputError | None, IllegalBase | None]:
        """Return (error, illegal_lead) of the part.

        An illegal letter stands before what the reader reports.
        """
        pieces = loaded.pieces
        if position is None:
            return pieces.error, None
        illegal = _illegal_base_at(loaded.chunk, position)
        if pieces.lead and illegal.piece == 0:
            return None, illegal
        path, name = self.workload.sources[pieces.source].path, pieces.name(illegal.piece)
        return illegal_base(path, name, illegal.letter, illegal.position), None

    def _rows(self, pieces: Pieces, hits: Hits) -> Batch:
        """Return the hits that the options ask for, with names and scores."""
        strands = self.patterns.strands
        if self._windows is not None:
            hits = self._with_few_ambiguous(pieces, hits)
        lengths = self.patterns.lengths[hits.pattern]
        ambiguous = _count_ambiguous(pieces, hits, lengths)
        score = self._scores(pieces, hits, lengths)
        kept = np.ones(len(hits), bool)
        if self.workload.options.min_score is not None:
            kept = ~(score < self.workload.options.min_score)  # rows without a score stay
        record, start = hits.record[kept].astype(np.int64), hits.start[kept]
        unique, row = np.unique(record, return_inverse=True)
        names = pieces.names(unique)
        return Batch(
            sample_index=record,
            sample=[names[i] for i in row.tolist()],
            signature=(hits.pattern[kept] // strands).astype(np.int32),
            start=start,
            end=start + lengths[kept],
            reverse=hits.pattern[kept] % strands == 1,
            score=score[kept],
            ambiguous=ambiguous[kept],
        )

    def _with_few_ambiguous(self, pieces: Pieces, hits: Hits) -> Hits:
        """Return the hits with few enough ambiguous bases, in order; of a pair only the first."""
        options = self.workload.options
        assert options.max_ambiguous is not None
        lengths = self.patterns.lengths[hits.pattern]
        most = allowed_ambiguous(options.max_ambiguous, lengths)
        few = hits.where(_count_ambiguous(pieces, hits, lengths) <= most)
        return few.ordered(self.patterns.strands, options.hits == "first")

    def _scores(
        self, pieces: Pieces, hits: Hits, lengths: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the mean quality under every hit: an exact sum, divided once. NaN for FASTA."""
        rows = pieces.table[hits.record]
        if not len(hits) or rows[0, QUALITY] < 0:
            return np.full(len(hits), np.nan)
        total = pieces.text.sum_qualities(rows, hits.start, lengths)
        total -= lengths * self.workload.options.phred_offset
        score: NDArray[np.float64] = total / lengths
        return score

    def close(self) -> None:
        """Free the index and the buffers."""
        self.scanner.close()
        self.reader.clear()
        self._stretch_buffers.clear()


def _count_ambiguous(pieces: Pieces, hits: Hits, lengths: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the number of ambiguous sample bases under every hit."""
    found: NDArray[np.int32] = count_ambiguous(
        pieces.letters, pieces.offsets[hits.record] + hits.start, lengths
    )
    return found


def _illegal_base_at(chunk: Chunk, position: int) -> IllegalBase:
    """Return the letter at a position of the chunk's bases."""
    piece = int(np.searchsorted(chunk.offsets, position, "right")) - 1
    letter = chunk.letters[position : position + 1].tobytes()
    return IllegalBase(piece=piece, position=position - int(chunk.offsets[piece]), letter=letter)


def open_scanner(
    place: Place, patterns: Patterns, rules: Rules, bases: float
) -> tuple[Scanner, Callable[[int], NDArray[np.uint8]]]:
    """Return the scanner for a device, and what allocates memory for the letters."""
    if place.gpu is None:
        from multigpu.kernels.scan import cpu

        return cpu.Scanner(patterns, rules, bases), lambda size: np.empty(size, np.uint8)
    import cupy

    from multigpu.kernels.device.pinned import pinned
    from multigpu.kernels.scan import cuda

    with cupy.cuda.Device(place.gpu):
        return cuda.Scanner(patterns, rules, bases), pinned
