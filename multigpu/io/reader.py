"""Samples in spans: how the input is cut, and how a span is read. Exact wherever it is cut.

* A plain file is cut every so many bytes. **FASTQ**: a span has the records that begin in it; where
  its first one begins is guessed, and the guess is checked against where the span before ended.
  **FASTA**: a span has the bases that stand in it, even of records that began before or go on
  behind; those are read on for as many bases as a signature may reach over the border.
* Everything else is a stream: it is read and parsed once, where the job was started, and travels
  in blocks of whole records.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.plan import spans
from multigpu.errors import InputError, Unreadable, quoted
from multigpu.io import records
from multigpu.io.ahead import HEADROOM, Block, ReadAhead
from multigpu.io.records import LENGTH, QUALITY, Fault, Parsed
from multigpu.io.sources import Source, read_into

READ_AHEAD = 1 << 20  # bytes behind a span that are read with it, for its last record
LOOK_BACK = 1 << 16  # bytes before a FASTA span: longer header lines are not recognized


@dataclass(frozen=True)
class FileSpan:
    """A piece of a file, byte positions. exact: a record begins at `start`."""

    source: int
    start: int
    stop: int
    exact: bool


@dataclass(frozen=True, eq=False)
class BlockSpan:
    """Whole records out of a stream, parsed; or the error that ended it."""

    source: int
    raw: NDArray[np.uint8]
    parsed: Parsed
    error: InputError | None = None


Span = FileSpan | BlockSpan


@dataclass(eq=False)
class Pieces:
    """The records, and pieces of records, of a span.

    table        as in `records`; lengths include what is read over the border
    own          int64[n]: how many bases of each piece stand in the span
    lead, tail   the first piece goes on from, the last one may go on into another span
    begin, stop  which bytes of the file these are; begin -1: no record was found
    error        what is wrong behind the last record
    borrowed     buffers to give back
    """

    source: int
    raw: NDArray[np.uint8]
    table: NDArray[np.int64]
    own: NDArray[np.int64]
    lead: bool
    tail: bool
    begin: int
    stop: int
    error: InputError | None
    borrowed: list[NDArray[np.uint8]]


def file_spans(source: int, size: int, chunk_bytes: int) -> Iterator[FileSpan]:
    """A file cut every `chunk_bytes`, wherever that is."""
    for piece in spans(size, chunk_bytes):
        yield FileSpan(source, piece.start, piece.stop, exact=piece.start == 0)


def block_spans(
    number: int, source: Source, content: ReadAhead[Block], phred_offset: int
) -> Iterator[BlockSpan]:
    """A stream cut at record borders. What is wrong with it becomes the last span's error.

    Raises Unreadable where it cannot be read.
    """
    left, before = np.empty(0, np.uint8), 0  # bytes of the content in blocks that were given
    least = 0
    with contextlib.closing(content):
        while True:
            try:
                raw, final = _next_bytes(content, left, least)
            except Unreadable:
                raise  # a journal must not know of it
            except InputError as damage:
                yield BlockSpan(number, left[:0], _nothing(0), damage)
                return
            parsed = records.parse(
                raw, 0, len(raw), source.layout, final=final, offset=phred_offset
            )
            good = parsed.fault in (Fault.NONE, Fault.INCOMPLETE) and not final
            error = None if good else described(source, raw, parsed, before, phred_offset)
            if len(parsed.table) or error:
                yield BlockSpan(number, raw, parsed, error)
            if error or final:
                return
            left, before = raw[parsed.stop :], before + parsed.stop
            # A long record is not looked at again with every block.
            least = 0 if len(parsed.table) else 2 * len(left)


def _next_bytes(
    content: Iterator[Block], left: NDArray[np.uint8], least: int
) -> tuple[NDArray[np.uint8], bool]:
    """What was left and the next block, or more to make `least` bytes; and whether that is all."""
    block = next(content, None)
    if block is None:
        return left, True
    if len(left) + len(block) >= least:
        return _behind(left, block), False
    parts = [left, block]
    while sum(map(len, parts)) < least and (block := next(content, None)) is not None:
        parts.append(block)
    return np.concatenate(parts), block is None


def _behind(left: NDArray[np.uint8], block: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The block with what was left before it; in its headroom, where that is enough."""
    if len(left) > HEADROOM:
        return np.concatenate([left, block])
    room = block.base
    assert isinstance(room, np.ndarray)
    begin = HEADROOM - len(left)
    room[begin:HEADROOM] = left
    return room[begin : HEADROOM + len(block)]


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
            if self._free:  # all are too small: one gives way, so that they do not pile up
                self._free.pop()
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


class SpanReader:
    """Reads spans; used by several threads at once.

    overlap: bases that a FASTA piece is read on over the border
    """

    def __init__(self, sources: Sequence[Source], overlap: int, phred_offset: int) -> None:
        self._sources, self._overlap, self._offset = sources, overlap, phred_offset
        self.buffers = Buffers(lambda size: np.empty(size, np.uint8))

    def read(self, span: Span) -> Pieces:
        """The span's records. Raises InputError where the file cannot be read."""
        if isinstance(span, BlockSpan):
            return self._pieces(span.source, span.raw, span.parsed, 0, 0, [], span.error)
        if span.start >= span.stop:
            nothing = np.empty(0, np.uint8)
            return self._pieces(span.source, nothing, _nothing(0), span.start, span.start, [], None)
        if self._sources[span.source].layout == "fasta":
            return self._read_fasta(span)
        return self._read_fastq(span)

    def _pieces(
        self, source: int, raw: NDArray[np.uint8], parsed: Parsed, origin: int, begin: int,
        borrowed: list[NDArray[np.uint8]], error: InputError | None,
    ) -> Pieces:  # fmt: skip
        """Whole records."""
        if parsed.fault is Fault.QUALITY:  # the last one is not good
            parsed = replace(parsed, table=parsed.table[:-1])
        table = parsed.table
        return Pieces(
            source, raw, table, table[:, LENGTH], False, False, begin, origin + parsed.stop, error,
            borrowed,
        )  # fmt: skip

    def _read_fastq(self, span: FileSpan) -> Pieces:
        source = self._sources[span.source]
        origin = span.start - (0 if span.exact else 1)  # with the newline of the line before
        window = _Window(source, origin, self.buffers)
        window.extend(span.stop + READ_AHEAD)
        begin = 0 if span.exact else _after_first_line(window.bytes)
        border = span.stop - origin
        if begin < 0 or begin >= border:
            where = -1 if begin < 0 else origin + begin
            parsed = _nothing(max(begin, border))
            return self._pieces(
                span.source, window.bytes, parsed, origin, where, window.borrowed, None
            )
        tables = []
        at = begin
        while True:
            parsed = records.parse(
                window.bytes, at, border, "fastq", final=window.final, offset=self._offset
            )
            tables.append(parsed.table)
            if parsed.fault is not Fault.INCOMPLETE or window.final:
                break
            at = parsed.stop
            window.extend(2 * (origin + len(window.bytes)) - span.start)
        parsed = replace(parsed, table=np.concatenate(tables))
        error = described(source, window.bytes, parsed, origin, self._offset)
        return self._pieces(
            span.source, window.bytes, parsed, origin, origin + begin, window.borrowed, error
        )

    def _read_fasta(self, span: FileSpan) -> Pieces:
        source = self._sources[span.source]
        origin = max(0, span.start - LOOK_BACK)
        window = _Window(source, origin, self.buffers)
        window.extend(span.stop + min(READ_AHEAD, 2 * self._overlap + LOOK_BACK))
        while True:
            found = records.pieces(
                window.bytes, span.start - origin, span.stop - origin, self._overlap, window.final
            )
            if found is not None:
                break
            window.extend(2 * (origin + len(window.bytes)) - span.start)
        table, own, lead = found
        error = None
        if lead and span.start == 0:
            where = f"byte {origin + int(table[0, records.BASES])}"
            error = InputError(source.path, "a record should begin with '>' here", where)
        return Pieces(
            span.source, window.bytes, table, own, lead, True, span.start, span.stop, error,
            window.borrowed,
        )  # fmt: skip


class _Window:
    """A stretch of a file in memory that can be made longer."""

    def __init__(self, source: Source, origin: int, buffers: Buffers) -> None:
        self._path, self._size = source.path, source.size or 0
        self._origin, self._buffers = origin, buffers
        self.bytes = np.empty(0, np.uint8)
        self.borrowed: list[NDArray[np.uint8]] = []
        self.final = False

    def extend(self, stop: int) -> None:
        """Read on to the byte `stop` of the file, or to its end.

        Raises InputError where the file has become shorter than it was when the job was opened.
        """
        stop = min(stop, self._size)
        held = len(self.bytes)
        larger = self._buffers.take(stop - self._origin)
        larger[:held] = self.bytes
        held += read_into(self._path, self._origin + held, larger[held:])
        if held < len(larger):
            end = self._origin + held
            problem = f"was cut while it was read: it ends at byte {end}, not at {self._size}"
            raise InputError(self._path, problem)
        for buffer in self.borrowed:
            self._buffers.give(buffer)
        self.borrowed = [larger]
        self.bytes = larger
        self.final = stop >= self._size


def _nothing(stop: int) -> Parsed:
    return Parsed(np.empty((0, 5), np.int64), stop, Fault.NONE, 0)


def _after_first_line(raw: NDArray[np.uint8]) -> int:
    """The first record behind the first newline: the span was cut in the middle of a line."""
    newline = records.find_newline(raw, 0)
    return records.first_record(raw, newline + 1) if newline >= 0 else -1


def described(
    source: Source, raw: NDArray[np.uint8], parsed: Parsed, origin: int, offset: int
) -> InputError | None:
    """The error for the record at parsed.stop, if there is a fault.

    origin: where in the file `raw` begins; offset: the quality character that means 0.
    """
    if parsed.fault is Fault.NONE:
        return None
    where = f"byte {origin + parsed.stop}"
    if parsed.fault is Fault.NO_HEADER:
        mark = "@" if source.layout == "fastq" else ">"
        return InputError(source.path, f"a record should begin with {mark!r} here", where)
    words = raw[parsed.stop + 1 : parsed.stop + 1000].tobytes().split()
    record = f"record {quoted(words[0] if words else b'')} at {where}"
    return InputError(source.path, _problem(raw, parsed, origin, offset), record)


def _problem(raw: NDArray[np.uint8], parsed: Parsed, origin: int, offset: int) -> str:
    if parsed.fault is Fault.INCOMPLETE:
        return f"the record is cut off: the data end at byte {origin + len(raw)}"
    if parsed.fault is Fault.NO_PLUS:
        return "the sequence is not followed by a line that begins with '+'"
    if parsed.fault is Fault.LENGTHS:
        bases = _bases_at(raw, parsed.stop)
        return f"the sequence has {bases} bases, the quality has {parsed.where} characters"
    row = parsed.table[-1]
    values = raw[row[QUALITY] : row[QUALITY] + row[LENGTH]]
    position = records.lowest_outside(values, offset)
    letter = quoted(bytes([values[position]]))
    return f"{letter} at position {position} (from 0) is no quality from offset {offset}"


def _bases_at(raw: NDArray[np.uint8], start: int) -> int:
    """How many bases the FASTQ record at `start` has."""
    lines = raw[start:].tobytes().split(b"\n+", 1)[0].split(b"\n")[1:]
    return sum(len(line.rstrip(b"\r")) for line in lines)
