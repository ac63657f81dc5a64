"""The scan as a workload: spans of sample files in, rows out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.dispatch import LINE_PER_THREAD
from multigpu.cluster.engine.plan import Capacity, Cost, balanced, chunk_units
from multigpu.cluster.engine.workload import Place
from multigpu.cluster.errors import Failure, UsageError
from multigpu.cluster.workers.history import add_device_steps
from multigpu.errors import InputError
from multigpu.formats.sequences.pieces import Pieces
from multigpu.formats.sequences.reader import READ_AHEAD, SpanReader
from multigpu.formats.sequences.signatures import Signatures, illegal_base
from multigpu.formats.sequences.spans import BlockSpan, Span, block_spans, file_spans
from multigpu.formats.storage.ahead import BLOCKS_AHEAD, HEADROOM, LARGEST_BLOCK, Streams
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
from multigpu.kernels.scan.seeds import CPU, EXPECTED_BASES, EXPECTED_N, GPU, Size, size_of
from multigpu.run.fitness import Expected, require
from multigpu.run.options import DEFAULT_CHUNK_BYTES, RunOptions
from multigpu.scan import ambiguity
from multigpu.scan.ambiguity import Stretches, Windows
from multigpu.scan.options import ScanOptions

PROGRAM_BYTES = 400 << 20  # Python, NumPy, Numba while it compiles, PyArrow
BUFFER_SLACK = 9 / 8  # buffers are made larger than what they are first taken for
CACHED_BYTES = 32_000_000  # a chunk on the GPU of this process
SHARED_BYTES = 128 << 20  # on several, whose threads wait for each other at each chunk,
SHARED_IN_HAND_BYTES = 3 << 30  # and by all of these
DISPATCHED_BYTES = 256 << 20  # on those of other processes, as it is several messages; but no
IN_HAND_BYTES = 768 << 20  # more than this in all lanes
DEVICE_BYTES_PER_BYTE = 1.0  # letters and planes of the bases, offsets and counts of the records
FIXED_DEVICE_BYTES = 256 << 20  # index, tables and results, for thousands of signatures


@dataclass(frozen=True)
class BadBase:
    """An illegal letter: in which piece of the span, where in that, and which."""

    piece: int
    position: int
    letter: bytes


@dataclass(frozen=True, eq=False)
class ScanPart:
    """The rows of one span. Samples are counted from the first record that begins in it.

    begin, stop  the bytes of the file that the part is about; begin -1: no record was found
    records      how many begin in it
    rows         of the records that lie in it: a batch, or its text where the job has a text format
    lead, tail   rows of the piece that goes on from the span before, and of the record that may go
                 on into the next; starts counted from the piece's first base
    lead_bases, tail_bases   how long these are; -1: there is none
    error        what stopped the scan in this span
    bad_lead     an illegal letter in the lead, whose record's name stands in another span
    longest      bases of the longest record that lies in the span
    unsure       how many of `rows` rest on ambiguous bases by more than half
    named        the name of every sample in `rows`, one a line
    """

    source: int
    begin: int
    stop: int
    records: int
    bases: int
    hits: int
    rows: Batch | bytes
    lead: Batch
    lead_bases: int
    tail: Batch
    tail_bases: int
    tail_name: bytes
    error: InputError | None
    bad_lead: BadBase | None
    longest: int
    unsure: int
    named: bytes


@dataclass(frozen=True, eq=False)
class Loaded:
    """Pieces in host memory.

    part       of their bases, what is to be searched; None for all
    stretches  of their bases, all that may have matches; None for all
    """

    pieces: Pieces
    part: Part | None = None
    stretches: Stretches | None = None

    @property
    def chunk(self) -> Chunk:
        """All bases that may have matches, as the kernels want them."""
        if self.stretches is not None:
            return self.stretches.chunk
        return Chunk(self.pieces.letters, self.pieces.offsets)

    @property
    def searched(self) -> tuple[Chunk, int]:
        """What to search, and where the last hit may begin."""
        if self.part is not None:
            return self.part.chunk, self.part.limit
        return self.chunk, len(self.chunk.letters)


@dataclass(frozen=True, eq=False)
class Computed:
    """The hits, or where in the bases an illegal letter stands, for which there are none."""

    hits: Hits
    bad: int | None = None


class Scanner(Protocol):
    """A backend of `multigpu.kernels.scan`."""

    def scan(self, chunk: Chunk, limit: int | None = None) -> Hits: ...

    def seconds(self) -> dict[str, float]: ...

    def close(self) -> None: ...


PART_CLASSES = (ScanPart, Batch, BadBase, InputError)  # what a journal of a scan holds


@dataclass(eq=False)
class ScanWorkload:
    """Everything a worker needs to know of a scan job."""

    key: str
    sources: Sequence[Source]
    signatures: Signatures
    options: ScanOptions
    fmt: str | None = None  # a text format: the workers render the rows
    expected: Expected | None = None  # of a worker that is not this process
    reached: dict[int, int] = field(default_factory=dict)  # client: where each source is checked to

    def open(self, place: Place) -> "ScanSession":
        require(self.expected, place)
        return ScanSession(self, place)

    def name(self, span: Span) -> str:
        path = self.sources[span.source].path
        if isinstance(span, BlockSpan):
            return f"{path}, a block of {len(span.parsed.table)} records"
        return f"{path}, bytes {span.start} to {span.stop}"

    def correct(self, span: Span | None, part: ScanPart) -> Span | None:
        """A FASTQ part is good when it begins where the one before it ended.

        The first span of a file begins at a record, so by induction all do, however the first
        record of a span was looked for. FASTA spans and blocks are exact by themselves.
        """
        source = self.sources[part.source]
        if isinstance(span, BlockSpan) or not source.cuttable or source.layout == "fasta":
            return None
        expected = self.reached.get(part.source, 0)
        if part.begin == expected:
            self.reached[part.source] = part.stop
            return None
        if span is None or (expected >= span.stop and not part.records and part.error is None):
            return None  # one record spans it all
        return replace(span, start=expected, exact=True)


class ScanSession:
    """The scan on one worker: the index of the signatures, and buffers."""

    def __init__(self, workload: ScanWorkload, place: Place) -> None:
        self.workload = workload
        options = workload.options
        # The first match is the first with few enough ambiguous bases, which is not known here.
        first = options.hits == "first" and options.max_ambiguous is None
        self.rules = Rules(first, options.sample_n == "mismatch")
        joined, both = workload.signatures.joined, options.strand == "both"
        self.patterns = Patterns.of_joined(joined.joined, joined.offsets, both)
        bases = expected_bases(workload.sources)
        self.memory = _size(self.patterns.lengths, bases, place.gpu is not None).memory
        self.scanner, allocate = _backend(place, self.patterns, self.rules, bases)
        overlap = int(self.patterns.lengths.max()) - 1
        self.reader = SpanReader(
            workload.sources,
            overlap=overlap,
            phred_offset=options.phred_offset,
            allocate=allocate,
        )
        self._stretched = Buffers(allocate)
        self._windows: Windows | None = None
        if options.max_ambiguous is not None:
            self._windows = Windows(options.max_ambiguous, self.patterns.lengths)

    def load(self, span: Span) -> Loaded:
        """Reads and parses the span; its bases lie one after the other."""
        loaded = Loaded(self.reader.read(span))
        if self._windows is None:
            return loaded
        buffer = self._stretched.take(len(loaded.pieces.letters))
        stretches = self._windows.stretches(loaded.chunk, buffer)
        if stretches is None:
            self._stretched.give(buffer)
        return replace(loaded, stretches=stretches)

    def compute(self, loaded: Loaded) -> Computed:
        """All hits in the loaded bases, those that begin behind the span among them."""
        chunk, limit = loaded.searched
        try:
            hits = self.scanner.scan(chunk, limit)
        except BadBaseError as problem:
            return Computed(Hits.none(), problem.position)
        except TooManyPatternsError as problem:
            needs = _needs(self.workload.signatures, self.memory)
            raise Failure(f"{needs}: {problem}") from problem
        add_device_steps(self.scanner.seconds())
        return Computed(hits)

    def need(self, loaded: Loaded) -> int:
        """Letters, planes, offsets and counts."""
        chunk, _ = loaded.searched
        return int(1.5 * len(chunk.letters)) + 16 * len(chunk.offsets)

    def halves(self, loaded: Loaded) -> tuple[Loaded, ...]:
        """Two pieces that overlap by the longest signature less one."""
        chunk, limit = loaded.searched
        if limit < 2:
            return ()
        parts = split(chunk, limit, int(self.patterns.lengths.max()))
        return tuple(replace(loaded, part=part) for part in parts)

    def joined(
        self, loaded: Loaded, halves: Sequence[Loaded], computed: Sequence[Computed]
    ) -> Computed:
        """The hits of both as hits of the whole, or the first illegal letter."""
        hits = []
        for half, found in zip(halves, computed, strict=True):
            assert half.part is not None
            if found.bad is not None:
                return Computed(Hits.none(), half.part.begin + found.bad)
            hits.append(half.part.moved(found.hits))
        joined = Hits.joined(hits).ordered(self.patterns.strands, self.rules.first)
        return Computed(joined)

    def finish(self, loaded: Loaded, computed: Computed) -> ScanPart:
        """Scores, names and, where the job has a text format, text."""
        pieces, hits = loaded.pieces, computed.hits
        if loaded.stretches is not None:
            hits = loaded.stretches.placed(hits)
        batch = self._batch(pieces, hits.where(hits.start < pieces.inside[hits.record]))
        last = len(pieces.table) - 1
        is_lead = (batch.sample_index == 0) & pieces.lead
        is_tail = (batch.sample_index == last) & pieces.tail & ~is_lead
        renumbered = replace(batch, sample_index=batch.sample_index - int(pieces.lead))
        whole = renumbered[~(is_lead | is_tail)]
        rows: Batch | bytes = whole
        if self.workload.fmt is not None:
            rows = render(whole, self.workload.signatures.names, self.workload.fmt)
        has_tail = pieces.tail and last >= int(pieces.lead)
        part = ScanPart(
            pieces.source, pieces.begin, pieces.stop, len(pieces.table) - int(pieces.lead),
            int(pieces.inside.sum()), len(whole), rows,
            renumbered[is_lead], int(pieces.inside[0]) if pieces.lead else -1,
            renumbered[is_tail], int(pieces.inside[-1]) if has_tail else -1,
            pieces.name(last) if has_tail else b"", *self._problems(loaded, computed.bad),
            int(pieces.table[:, LENGTH].max(initial=0)), whole.unsure, whole.named,
        )  # fmt: skip
        if loaded.stretches is not None:
            self._stretched.give(loaded.stretches.chunk.letters)
        self.reader.give_back(pieces)
        return part

    def _problems(
        self, loaded: Loaded, position: int | None
    ) -> tuple[InputError | None, BadBase | None]:
        """(error, bad_lead) of the part: an illegal letter stands before what the reader found."""
        pieces = loaded.pieces
        if position is None:
            return pieces.error, None
        bad = _bad_base(loaded.chunk, position)
        if pieces.lead and bad.piece == 0:
            return None, bad
        path = self.workload.sources[pieces.source].path
        return illegal_base(path, pieces.name(bad.piece), bad.letter, bad.position), None

    def _batch(self, pieces: Pieces, hits: Hits) -> Batch:
        strands = self.patterns.strands
        if self._windows is not None:
            hits = self._sure(pieces, hits)
        lengths = self.patterns.lengths[hits.pattern]
        ambiguous = _ambiguous(pieces, hits, lengths)
        score = self._scores(pieces, hits, lengths)
        kept = np.ones(len(hits), bool)
        if self.workload.options.min_score is not None:
            kept = ~(score < self.workload.options.min_score)  # rows without a score stay
        record, start = hits.record[kept].astype(np.int64), hits.start[kept]
        unique, row = np.unique(record, return_inverse=True)
        names = pieces.names(unique)
        return Batch(
            record,
            [names[i] for i in row.tolist()],
            (hits.pattern[kept] // strands).astype(np.int32),
            start,
            start + lengths[kept],
            hits.pattern[kept] % strands == 1,
            score[kept],
            ambiguous[kept],
        )

    def _sure(self, pieces: Pieces, hits: Hits) -> Hits:
        """Those with few enough ambiguous bases in order; only the first, where that is wanted."""
        options = self.workload.options
        assert options.max_ambiguous is not None
        lengths = self.patterns.lengths[hits.pattern]
        most = ambiguity.allowed(options.max_ambiguous, lengths)
        sure = hits.where(_ambiguous(pieces, hits, lengths) <= most)
        return sure.ordered(self.patterns.strands, options.hits == "first")

    def _scores(
        self, pieces: Pieces, hits: Hits, lengths: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The mean quality under every hit: an exact sum, divided once. NaN for FASTA."""
        rows = pieces.table[hits.record]
        if not len(hits) or rows[0, QUALITY] < 0:
            return np.full(len(hits), np.nan)
        total = pieces.text.sum_qualities(rows, hits.start, lengths)
        total -= lengths * self.workload.options.phred_offset
        score: NDArray[np.float64] = total / lengths
        return score

    def close(self) -> None:
        self.scanner.close()
        self.reader.clear()
        self._stretched.clear()


def _ambiguous(pieces: Pieces, hits: Hits, lengths: NDArray[np.int64]) -> NDArray[np.int32]:
    """The ambiguous bases of the sample under every hit."""
    found: NDArray[np.int32] = count_ambiguous(
        pieces.letters, pieces.offsets[hits.record] + hits.start, lengths
    )
    return found


def _bad_base(chunk: Chunk, position: int) -> BadBase:
    piece = int(np.searchsorted(chunk.offsets, position, "right")) - 1
    letter = chunk.letters[position : position + 1].tobytes()
    return BadBase(piece, position - int(chunk.offsets[piece]), letter)


def _backend(
    place: Place, patterns: Patterns, rules: Rules, bases: float
) -> tuple[Scanner, Callable[[int], NDArray[np.uint8]]]:
    """The scanner of a place, and where the letters for it should lie."""
    if place.gpu is None:
        from multigpu.kernels.scan import cpu

        return cpu.Scanner(patterns, rules, bases), lambda size: np.empty(size, np.uint8)
    import cupy

    from multigpu.kernels.device.pinned import pinned
    from multigpu.kernels.scan import cuda

    with cupy.cuda.Device(place.gpu):
        return cuda.Scanner(patterns, rules, bases), pinned


def expected_bases(sources: Sequence[Source]) -> float:
    """About how many bases there are to search: where sizes are known, half of the bytes."""
    sizes = [source.size for source in sources if source.cuttable]
    return sum(size or 0 for size in sizes) / 2 if sizes else EXPECTED_BASES


def _size(lengths: NDArray[np.int64], bases: float, gpu: bool) -> Size:
    """What patterns of these lengths take."""
    return size_of(lengths, GPU, bases, EXPECTED_N) if gpu else size_of(lengths, CPU, bases, 0.0)


def _needs(signatures: Signatures, memory: int) -> str:
    bases = len(signatures.joined.joined)
    return (
        f"{len(signatures):,} signatures of {bases:,} bases need {memory:,} bytes of memory with"
        " their index"
    )


@dataclass(frozen=True)
class ScanPlan:
    """How the input is going to be cut.

    chunk_bytes   of a file, at most; streams are cut into as many decompressed bytes
    chunks        of each source, None for streams: nobody knows how long they are
    budget        memory that the chunks may take where there is least of it
    lanes         chunks in hand at a time on each device
    in_hand       by the process that has most
    index         of the signatures
    """

    chunk_bytes: int
    chunks: tuple[int | None, ...]
    budget: int
    cost: Cost
    lanes: int
    in_hand: int
    index: Size

    def with_chunks(self, chunk_bytes: int, sources: Sequence[Source]) -> "ScanPlan":
        """The same with chunks of another size."""
        return replace(self, chunk_bytes=chunk_bytes, chunks=_chunks(sources, chunk_bytes))

    @property
    def device_bytes(self) -> int:
        """What the chunks take where they are computed."""
        return self.cost.fixed_bytes + int(self.lanes * self.chunk_bytes * self.cost.unit_bytes)

    @property
    def host_bytes(self) -> int:
        """What a process takes at most: the program, and what the chunks in hand take.

        That is their bytes, their bases and, on a CPU, the planes of these, and the signatures with
        their index. A stream has blocks besides, read ahead and in line. Rows come on top until
        they are written.
        """
        buffers = self.in_hand * BUFFER_SLACK * (1.75 * self.chunk_bytes + READ_AHEAD)
        blocks = 0
        if None in self.chunks:
            line = BLOCKS_AHEAD + LINE_PER_THREAD * self.in_hand
            blocks = line * (min(self.chunk_bytes, LARGEST_BLOCK) + HEADROOM)
        return int(PROGRAM_BYTES + self.index.memory + buffers + blocks)


def plan_scan(
    sources: Sequence[Source],
    signatures: Signatures,
    here: Capacity,
    run: RunOptions,
    strands: int = 1,
) -> ScanPlan:
    """How the input is cut for where there is least memory.

    Raises UsageError where there is too little for the signatures.
    """
    budget = int(here.free * run.memory_fraction)
    lengths = np.repeat(signatures.joined.lengths, strands)
    index = _size(lengths, expected_bases(sources), here.gpu)
    cost = Cost(DEVICE_BYTES_PER_BYTE, FIXED_DEVICE_BYTES + index.memory)
    if cost.fixed_bytes > budget and index.memory > FIXED_DEVICE_BYTES:
        raise UsageError(
            f"{_needs(signatures, index.memory)}, and {FIXED_DEVICE_BYTES:,} are needed besides,"
            f" where {budget:,} may be used: free some, give a larger --memory-fraction, or scan"
            " with a part of the signatures at a time"
        )
    most = chunk_units(cost, budget, here.lanes, run.chunk_bytes(_serves(here)))
    known = [source.size or 0 for source in sources if source.cuttable]
    size = balanced(sum(known), most, here.threads) if known else most
    chunks, in_hand = _chunks(sources, size), here.chunks_in_process
    return ScanPlan(size, chunks, budget, cost, here.lanes, in_hand, index)


def _serves(here: Capacity) -> int:
    """The bytes of a chunk that serve a scan best."""
    if not here.gpu:
        return DEFAULT_CHUNK_BYTES
    if here.in_process and here.threads == here.lanes:
        return CACHED_BYTES
    dispatched = min(DISPATCHED_BYTES, IN_HAND_BYTES // here.lanes)
    if not here.in_process:
        return dispatched
    return min(SHARED_BYTES, dispatched, SHARED_IN_HAND_BYTES // here.threads)


def _chunks(sources: Sequence[Source], size: int) -> tuple[int | None, ...]:
    """How many of each source; None for a stream."""
    return tuple(-(-(s.size or 0) // size) if s.cuttable else None for s in sources)


def scan_spans(
    sources: Sequence[Source], plan: ScanPlan, options: ScanOptions, streams: Streams
) -> Iterator[Span]:
    """The spans of all sources in order. Streams are read as the spans are taken."""
    for number, source in enumerate(sources):
        if source.cuttable:
            yield from file_spans(number, source.size or 0, plan.chunk_bytes)
        else:
            content = streams.blocks(source, min(plan.chunk_bytes, LARGEST_BLOCK))
            yield from block_spans(number, source, content, options.phred_offset)
