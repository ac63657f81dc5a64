"""The scan as a workload: spans of sample files in, rows out."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cluster.deploy import GPU_LANES
from cluster.plan import Cost, balanced, chunk_units
from cluster.workload import Place
from kernels.scan import BadBaseError, Chunk, Hits, Patterns, Rules
from multigpu.batch import Batch
from multigpu.config import RunOptions, ScanOptions
from multigpu.errors import InputError, quoted
from multigpu.io import records
from multigpu.io.records import BASES, LENGTH, NAME, NAME_END, QUALITY, Fault, Parsed
from multigpu.io.signatures import Signatures, illegal_base
from multigpu.io.sources import Source, blocks, read_into
from multigpu.io.writers import render

READ_AHEAD = 1 << 20  # bytes behind a span that are read with it, for its last record
DEVICE_BYTES_PER_BYTE = 1.0  # letters and planes of the bases, offsets and counts of the records
FIXED_DEVICE_BYTES = 256 << 20  # index, tables and results, for thousands of signatures


@dataclass(frozen=True)
class FileSpan:
    """The records of a file that begin in [start, stop), byte positions.

    exact: a record begins at `start`; else the first one after it is looked for.
    """

    source: int
    start: int
    stop: int
    exact: bool


@dataclass(frozen=True, eq=False)
class BlockSpan:
    """Whole records out of a stream, parsed where it was read; or the error that ended it."""

    source: int
    raw: NDArray[np.uint8]
    parsed: Parsed
    error: InputError | None = None

    @property
    def nbytes(self) -> int:
        """Tells the engine that this span is data."""
        return self.raw.nbytes


Span = FileSpan | BlockSpan


@dataclass(frozen=True, eq=False)
class ScanPart:
    """The rows of one span. `sample_index` counts from the part's first record.

    begin, stop  the bytes of the file that the part is about; begin -1: no record was found
    rows         a batch, or its text where the job has a text format
    """

    begin: int
    stop: int
    records: int
    bases: int
    hits: int
    rows: Batch | bytes
    error: InputError | None


@dataclass(eq=False)
class Loaded:
    """The records of a span in host memory. `raw` and `chunk.letters` are borrowed buffers."""

    path: str
    raw: NDArray[np.uint8]
    borrowed: list[NDArray[np.uint8]]
    begin: int
    stop: int
    table: NDArray[np.int64]
    chunk: Chunk
    error: InputError | None


class Scanner(Protocol):
    """A backend of `kernels.scan`."""

    def scan(self, chunk: Chunk) -> Hits: ...


@dataclass(eq=False)
class ScanWorkload:
    """Everything a worker needs to know of a scan job."""

    key: str
    sources: Sequence[Source]
    signatures: Signatures
    options: ScanOptions
    fmt: str | None = None  # a text format: the workers render the rows
    reached: dict[int, int] = field(default_factory=dict)  # client: where each source is checked to

    def open(self, place: Place) -> "ScanSession":
        return ScanSession(self, place)

    def correct(self, span: Span, part: ScanPart) -> Span | None:
        """A part is good when it begins where the one before it ended.

        The first span of a file begins at a record, so by induction all do, whatever the search
        for the first record of a span made of a file.
        """
        if isinstance(span, BlockSpan):
            return None
        expected = self.reached.get(span.source, 0)
        if expected >= span.stop and not part.records and part.error is None:
            return None  # one record spans it all
        if part.begin == expected:
            self.reached[span.source] = part.stop
            return None
        return replace(span, start=expected, exact=True)


def file_spans(source: int, size: int, chunk_bytes: int) -> Iterator[FileSpan]:
    """A file cut every `chunk_bytes`, wherever that is."""
    for start in range(0, size, chunk_bytes):
        yield FileSpan(source, start, min(start + chunk_bytes, size), exact=start == 0)


def block_spans(
    number: int, source: Source, chunk_bytes: int, phred_offset: int
) -> Iterator[BlockSpan]:
    """A stream cut at record borders. What goes wrong with it becomes the last span's error."""
    left = np.empty(0, np.uint8)
    content = blocks(source, chunk_bytes)
    while True:
        try:
            block = next(content, None)
        except InputError as error:
            yield BlockSpan(number, left[:0], _nothing(), error)
            return
        raw = left if block is None else np.concatenate([left, block]) if len(left) else block
        final = block is None
        parsed = records.parse(raw, 0, len(raw), source.layout, final=final, offset=phred_offset)
        good = parsed.fault in (Fault.NONE, Fault.INCOMPLETE) and not final
        if len(parsed.table) or not good:
            yield BlockSpan(number, raw, replace(parsed, fault=Fault.NONE) if good else parsed)
        if not good:
            return
        left = raw[parsed.stop :]


def _nothing() -> Parsed:
    return Parsed(np.empty((0, 5), np.int64), 0, Fault.NONE, 0)


class ScanSession:
    """The scan on one worker: the index of the signatures, and buffers."""

    def __init__(self, workload: ScanWorkload, place: Place) -> None:
        self.workload = workload
        options = workload.options
        rules = Rules(options.hits == "first", options.sample_n == "mismatch")
        self.patterns = Patterns.of(workload.signatures.letters, options.strand == "both")
        self.scanner, allocate = _backend(place, self.patterns, rules)
        self.buffers = Buffers(lambda size: np.empty(size, np.uint8))
        self.letters = Buffers(allocate)

    def load(self, span: Span) -> Loaded:
        """Reads and parses the span; its bases lie one after the other in `chunk`."""
        source = self.workload.sources[span.source]
        borrowed: list[NDArray[np.uint8]] = []
        if isinstance(span, BlockSpan):
            raw, parsed, begin, stop = span.raw, span.parsed, 0, span.parsed.stop
            error = span.error or self._fault(source, raw, parsed, 0)
        else:
            raw, parsed, begin, stop = self._read(source, span)
            borrowed.append(raw)
            error = self._fault(source, raw, parsed, stop - parsed.stop)
        table = parsed.table[:-1] if parsed.fault is Fault.QUALITY else parsed.table
        return Loaded(
            source.path, raw, borrowed, begin, stop, table, self._gather(raw, table), error
        )

    def _read(self, source: Source, span: FileSpan) -> tuple[NDArray[np.uint8], Parsed, int, int]:
        """(bytes, their records, where in the file the first begins, where the last ends)."""
        size = source.size or 0
        before = 0 if span.exact else 1  # the newline that ends the line before
        origin = span.start - before
        ahead = READ_AHEAD
        raw = self.buffers.take(min(span.stop + ahead, size) - origin)
        held = read_into(source.path, origin, raw)
        tables: list[NDArray[np.int64]] = []
        begin = 0 if span.exact else _after_first_line(raw, source.layout)
        first = begin
        while True:
            border = span.stop - origin
            if begin < 0 or begin >= border:
                parsed = replace(_nothing(), stop=border)
            else:
                final = origin + held >= size or held < len(raw)
                parsed = records.parse(
                    raw[:held], begin, border, source.layout,
                    final=final, offset=self.workload.options.phred_offset,
                )  # fmt: skip
            tables.append(parsed.table)
            if parsed.fault is not Fault.INCOMPLETE or origin + held >= size or held < len(raw):
                break
            ahead *= 4
            larger = self.buffers.take(min(span.stop + ahead, size) - origin)
            larger[:held] = raw[:held]
            held += read_into(source.path, origin + held, larger[held:])
            self.buffers.give(raw)
            raw, begin = larger, parsed.stop
        whole = replace(parsed, table=np.concatenate(tables))
        return raw, whole, -1 if first < 0 else origin + first, origin + parsed.stop

    def _fault(
        self, source: Source, raw: NDArray[np.uint8], parsed: Parsed, origin: int
    ) -> InputError | None:
        if parsed.fault is Fault.NONE:
            return None
        offset = self.workload.options.phred_offset
        return InputError(source.path, *_described(source, raw, parsed, origin, offset))

    def _gather(self, raw: NDArray[np.uint8], table: NDArray[np.int64]) -> Chunk:
        bases = int(table[:, LENGTH].sum())
        letters = self.letters.take(bases)
        offsets = self.letters.take(8 * (len(table) + 1)).view(np.int64)
        records.gather(raw, table, letters, offsets)
        return Chunk(letters, offsets)

    def compute(self, loaded: Loaded) -> Hits:
        """The hits; none where the records are not in order, which then `loaded.error` says."""
        try:
            return self.scanner.scan(loaded.chunk)
        except BadBaseError as problem:
            loaded.error = _illegal(loaded, problem.position)
            nothing = np.empty(0, np.int32)
            return Hits(nothing, nothing, np.empty(0, np.int64))

    def finish(self, loaded: Loaded, hits: Hits) -> ScanPart:
        """Scores, names and, where the job has a text format, text."""
        batch = self._batch(loaded, hits)
        rows: Batch | bytes = batch
        if self.workload.fmt is not None:
            rows = render(batch, self.workload.signatures.names, self.workload.fmt)
        part = ScanPart(
            loaded.begin, loaded.stop, len(loaded.table), len(loaded.chunk.letters),
            len(batch), rows, loaded.error,
        )  # fmt: skip
        self.letters.give(loaded.chunk.letters)
        self.letters.give(loaded.chunk.offsets)
        for buffer in loaded.borrowed:
            self.buffers.give(buffer)
        return part

    def _batch(self, loaded: Loaded, hits: Hits) -> Batch:
        strands = self.patterns.strands
        lengths = self.patterns.lengths[hits.pattern]
        score = self._scores(loaded, hits, lengths)
        kept = np.ones(len(hits), bool)
        if self.workload.options.min_score is not None:
            kept = ~(score < self.workload.options.min_score)  # rows without a score stay
        record, start = hits.record[kept].astype(np.int64), hits.start[kept]
        names = _names(loaded, record)
        return Batch(
            record,
            names,
            (hits.pattern[kept] // strands).astype(np.int32),
            start,
            start + lengths[kept],
            hits.pattern[kept] % strands == 1,
            score[kept],
        )

    def _scores(
        self, loaded: Loaded, hits: Hits, lengths: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The mean quality under every hit: an exact sum, divided once. NaN for FASTA."""
        qualities = loaded.table[hits.record, QUALITY]
        if not len(hits) or qualities[0] < 0:
            return np.full(len(hits), np.nan)
        total = records.sums(loaded.raw, qualities + hits.start, lengths)
        total -= lengths * self.workload.options.phred_offset
        score: NDArray[np.float64] = total / lengths
        return score

    def close(self) -> None:
        self.buffers.clear()
        self.letters.clear()


def _backend(
    place: Place, patterns: Patterns, rules: Rules
) -> tuple[Scanner, Callable[[int], NDArray[np.uint8]]]:
    """The scanner of a place, and where the letters for it should lie."""
    if place.gpu is None:
        from kernels.scan import cpu

        return cpu.Scanner(patterns, rules), lambda size: np.empty(size, np.uint8)
    import cupy

    from kernels.scan import cuda

    with cupy.cuda.Device(place.gpu):
        return cuda.Scanner(patterns, rules), cuda.pinned


class Buffers:
    """Buffers that are used again: fresh pages cost as much as reading into them."""

    def __init__(self, allocate: Callable[[int], NDArray[np.uint8]]) -> None:
        self._allocate = allocate
        self._free: list[NDArray[np.uint8]] = []
        self._lock = threading.Lock()

    def take(self, size: int) -> NDArray[np.uint8]:
        """uint8[size] with anything in it."""
        with self._lock:
            fitting = [i for i, buffer in enumerate(self._free) if len(buffer) >= size]
            if fitting:
                best = min(fitting, key=lambda i: len(self._free[i]))
                return self._free.pop(best)[:size]
        return self._allocate(max(1, size + size // 8))[:size]

    def give(self, view: NDArray[Any]) -> None:
        """What `take` gave, back; as any view of it."""
        whole = view.base
        assert isinstance(whole, np.ndarray)
        with self._lock:
            self._free.append(whole)

    def clear(self) -> None:
        with self._lock:
            self._free.clear()


def _after_first_line(raw: NDArray[np.uint8], layout: Any) -> int:
    """The first record behind the first newline: the span was cut in the middle of a line."""
    newline = np.flatnonzero(raw[: 1 << 16] == records.NEWLINE)
    if not len(newline):
        newline = np.flatnonzero(raw == records.NEWLINE)
    return records.first_record(raw, int(newline[0]) + 1, layout) if len(newline) else -1


def _names(loaded: Loaded, record: NDArray[np.int64]) -> list[bytes]:
    """The name of each row's sample."""
    unique, row = np.unique(record, return_inverse=True)
    spans = loaded.table[unique][:, [NAME, NAME_END]].tolist()
    names = [loaded.raw[begin:end].tobytes() for begin, end in spans]
    return [names[i] for i in row.tolist()]


def _illegal(loaded: Loaded, position: int) -> InputError:
    record = int(np.searchsorted(loaded.chunk.offsets, position, "right")) - 1
    row = loaded.table[record]
    name = loaded.raw[row[NAME] : row[NAME_END]].tobytes()
    within = position - int(loaded.chunk.offsets[record])
    return illegal_base(
        loaded.path, name, loaded.raw[row[BASES] : row[BASES] + row[LENGTH]], within
    )


def _described(
    source: Source, raw: NDArray[np.uint8], parsed: Parsed, origin: int, offset: int
) -> tuple[str, str]:
    """What is wrong with the record at parsed.stop, and which it is.

    origin: where in the file `raw` begins; offset: the quality character that means 0.
    """
    where = f"byte {origin + parsed.stop}"
    if parsed.fault is Fault.NO_HEADER:
        mark = "@" if source.layout == "fastq" else ">"
        return f"a record should begin with {mark!r} here", where
    words = raw[parsed.stop + 1 : parsed.stop + 1000].tobytes().split()
    record = f"record {quoted(words[0] if words else b'')} at {where}"
    if parsed.fault is Fault.INCOMPLETE:
        return f"the record is cut off: the data end at byte {origin + len(raw)}", record
    if parsed.fault is Fault.NO_PLUS:
        return "the sequence is not followed by a line that begins with '+'", record
    if parsed.fault is Fault.LENGTHS:
        bases = _bases_at(raw, parsed.stop)
        return f"the sequence has {bases} bases, the quality has {parsed.where} letters", record
    row = parsed.table[-1]
    values = raw[row[QUALITY] : row[QUALITY] + row[LENGTH]]
    position = records.lowest_outside(values, offset)
    letter = quoted(bytes([values[position]]))
    return f"{letter} at position {position} (from 0) is no quality from offset {offset}", record


def _bases_at(raw: NDArray[np.uint8], start: int) -> int:
    """How many bases the FASTQ record at `start` has."""
    lines = raw[start:].tobytes().split(b"\n+", 1)[0].split(b"\n")[1:]
    return sum(len(line.rstrip(b"\r")) for line in lines)


@dataclass(frozen=True)
class ScanPlan:
    """How the input is going to be cut.

    chunk_bytes   of a file, at most; streams are cut into as many decompressed bytes
    chunks        of each source, None for streams: nobody knows how long they are
    budget        memory that the chunks may take where there is least of it
    """

    chunk_bytes: int
    chunks: tuple[int | None, ...]
    budget: int
    cost: Cost
    lanes: int

    @property
    def device_bytes(self) -> int:
        """What the chunks take where they are computed."""
        return self.cost.fixed_bytes + int(self.lanes * self.chunk_bytes * self.cost.unit_bytes)

    @property
    def host_bytes(self) -> int:
        """Bytes and bases of the chunks in hand, on every worker."""
        return int(self.lanes * (1.5 * self.chunk_bytes + READ_AHEAD))


def plan_scan(
    sources: Sequence[Source], signatures: Signatures, free: int, threads: int, run: RunOptions
) -> ScanPlan:
    """free: bytes on the device that has least; threads: chunks that are in hand at a time."""
    budget = int(free * run.memory_fraction)
    largest = max((len(letters) for letters in signatures.letters), default=0)
    total = sum(len(letters) for letters in signatures.letters)
    cost = Cost(DEVICE_BYTES_PER_BYTE, FIXED_DEVICE_BYTES + 2 * total + largest)
    most = chunk_units(cost, budget, min(threads, GPU_LANES), run.max_chunk_bytes)
    known = [source.size or 0 for source in sources if source.cuttable]
    size = balanced(sum(known), most, threads) if known else most
    chunks = tuple(-(-(s.size or 0) // size) if s.cuttable else None for s in sources)
    return ScanPlan(size, chunks, budget, cost, min(threads, GPU_LANES))


def scan_spans(sources: Sequence[Source], plan: ScanPlan, options: ScanOptions) -> Iterator[Span]:
    """The spans of all sources in order. Streams are read as the spans are taken."""
    for number, source in enumerate(sources):
        if source.cuttable:
            yield from file_spans(number, source.size or 0, plan.chunk_bytes)
        else:
            yield from block_spans(number, source, plan.chunk_bytes, options.phred_offset)
