"""Reads spans of samples. Exact wherever they are cut.

* **FASTQ**: a span has the records that begin in it; where its first one begins is guessed, and the
  guess is checked against where the span before ended. Files of four lines a record are read by
  `plain_fastq`, at once from the file to letters; all else through a buffer that holds the span.
* **FASTA**: a span has the bases that stand in it, even of records that began before or go on
  behind; those are read on for as many bases as a signature may reach over the border.
* Blocks of a stream are whole records, parsed where the job was started.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from io import FileIO

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences import plain_fastq, records
from multigpu.formats.sequences.faults import described
from multigpu.formats.sequences.pieces import Pieces, TextInFile, TextInMemory
from multigpu.formats.sequences.records import BASES, LENGTH, Fault, Parsed
from multigpu.formats.sequences.spans import BlockSpan, FileSpan, Span
from multigpu.formats.storage.inlets import errors_named
from multigpu.formats.storage.sources import Source, read_into
from multigpu.kernels.device.buffers import Buffers

READ_AHEAD = 1 << 20  # bytes behind a span that are read with it, for its last record
LOOK_BACK = 1 << 16  # bytes before a FASTA span: longer header lines are not recognized
_NOTHING = np.empty(0, np.uint8)


class SpanReader:
    """Reads spans; used by several threads at once.

    overlap: bases that a FASTA piece is read on over the border
    allocate: makes buffers for letters
    """

    def __init__(
        self, sources: Sequence[Source], overlap: int, phred_offset: int,
        allocate: Callable[[int], NDArray[np.uint8]],
    ) -> None:  # fmt: skip
        self._sources, self._overlap, self._phred_offset = sources, overlap, phred_offset
        self._raw = Buffers(lambda size: np.empty(size, np.uint8))
        self._letters, self._borders = Buffers(allocate), Buffers(allocate)

    def read(self, span: Span) -> Pieces:
        """The span's records. Raises InputError where the file cannot be read."""
        if isinstance(span, BlockSpan):
            return self._whole(span, TextInMemory(span.raw), span.parsed, 0, 0, span.error)
        if span.start >= span.stop:
            return self._whole(span, TextInMemory(_NOTHING), Parsed.none(0), span.start, span.start)
        if self._sources[span.source].layout == "fasta":
            return self._read_fasta(span)
        return self._read_plain(span) or self._read_fastq(span)

    def give_back(self, pieces: Pieces) -> None:
        """What the pieces lie in may be used for others."""
        self._letters.give(pieces.letters)
        self._borders.give(pieces.offsets)
        pieces.text.give_back()

    def clear(self) -> None:
        self._raw.clear()
        self._letters.clear()
        self._borders.clear()

    def _read_plain(self, span: FileSpan) -> Pieces | None:
        """FASTQ of four lines a record; None where it is something else."""
        path = self._sources[span.source].path
        letters = self._letters.take((span.stop - span.start) // 2 + READ_AHEAD)
        with errors_named(path), FileIO(path) as file:
            found = self._plain(file.fileno(), span, letters)
        if found is None:
            self._letters.give(letters)
            return None
        begin, table, stop = found
        offsets = self._offsets(table)
        return Pieces(
            span.source, TextInFile(path), table, letters[: offsets[-1]], offsets,
            table[:, LENGTH], False, False, begin, stop, None,
        )  # fmt: skip

    def _plain(
        self, file: int, span: FileSpan, letters: NDArray[np.uint8]
    ) -> tuple[int, NDArray[np.int64], int] | None:
        """Where the first record begins, the table, and where the next record begins."""
        begin = span.start
        if not span.exact:  # with the newline of the line before
            begin = plain_fastq.first_record(file, span.start - 1, span.stop)
            if begin < 0:
                return None
        found = plain_fastq.read(file, begin, span.stop, self._phred_offset, letters)
        return found and (begin, *found)

    def _read_fastq(self, span: FileSpan) -> Pieces:
        source = self._sources[span.source]
        origin = span.start - (0 if span.exact else 1)  # with the newline of the line before
        window = _Window(source, origin, self._raw)
        window.extend(span.stop + READ_AHEAD)
        begin = 0 if span.exact else _after_first_line(window.bytes)
        border = span.stop - origin
        if begin < 0 or begin >= border:
            where = -1 if begin < 0 else origin + begin
            return self._whole(span, window.text(), Parsed.none(max(begin, border)), origin, where)
        tables = []
        at = begin
        while True:
            parsed = records.parse(
                window.bytes, at, border, "fastq", final=window.final, offset=self._phred_offset
            )
            tables.append(parsed.table)
            if parsed.fault is not Fault.INCOMPLETE or window.final:
                break
            at = parsed.stop
            window.extend(2 * (origin + len(window.bytes)) - span.start)
        parsed = replace(parsed, table=np.concatenate(tables))
        error = described(source, window.bytes, parsed, origin, self._phred_offset)
        return self._whole(span, window.text(), parsed, origin, origin + begin, error)

    def _whole(
        self, span: Span, text: TextInMemory, parsed: Parsed, origin: int, begin: int,
        error: InputError | None = None,
    ) -> Pieces:  # fmt: skip
        """Whole records."""
        table = parsed.table
        if parsed.fault is Fault.QUALITY:  # the last one is not good
            table = table[:-1]
        letters, offsets = self._gathered(text.raw, table)
        return Pieces(
            span.source, text, table, letters, offsets, table[:, LENGTH], False, False, begin,
            origin + parsed.stop, error,
        )  # fmt: skip

    def _read_fasta(self, span: FileSpan) -> Pieces:
        source = self._sources[span.source]
        origin = max(0, span.start - LOOK_BACK)
        window = _Window(source, origin, self._raw)
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
            where = f"byte {origin + int(table[0, BASES])}"
            error = InputError(source.path, "a record should begin with '>' here", where)
        letters, offsets = self._gathered(window.bytes, table)
        return Pieces(
            span.source, window.text(), table, letters, offsets, own, lead, True, span.start,
            span.stop, error,
        )  # fmt: skip

    def _gathered(
        self, raw: NDArray[np.uint8], table: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The bases of all pieces in one buffer, and where each begins."""
        offsets = self._offsets(table)
        letters = self._letters.take(int(offsets[-1]))
        records.gather(raw, table, letters)
        return letters, offsets

    def _offsets(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        offsets: NDArray[np.int64] = self._borders.take(8 * (len(table) + 1)).view(np.int64)
        records.set_offsets(table, offsets)
        return offsets


class _Window:
    """A stretch of a file in memory that can be made longer."""

    def __init__(self, source: Source, origin: int, buffers: Buffers) -> None:
        self._path, self._size = source.path, source.size or 0
        self._origin, self._buffers = origin, buffers
        self.bytes = _NOTHING
        self.final = False

    def text(self) -> TextInMemory:
        return TextInMemory(self.bytes, self._buffers)

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
        if len(self.bytes):
            self._buffers.give(self.bytes)
        self.bytes = larger
        self.final = stop >= self._size


def _after_first_line(raw: NDArray[np.uint8]) -> int:
    """The first record behind the first newline: the span was cut in the middle of a line."""
    newline = records.find_newline(raw, 0)
    return records.first_record(raw, newline + 1) if newline >= 0 else -1
