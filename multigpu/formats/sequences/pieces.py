"""Records of a span in memory: their bases, and the text with their names and qualities."""

from dataclasses import dataclass, field
from io import FileIO
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences.spans import IndexReads
from multigpu.formats.storage.sources import raise_unreadable
from multigpu.formats.storage.stored_streams import errors_named
from multigpu.kernels.compiled.text import records
from multigpu.kernels.compiled.text.records import NAME, NAME_END, QUALITY

QUALITY_BLOCK = 1 << 16  # bytes of a file that qualities are read in

Positions = NDArray[np.int64]
Table = NDArray[np.int64]
Windows = tuple[NDArray[np.integer], Positions, Positions]


@dataclass(frozen=True, slots=True, eq=False)
class TextInMemory:
    """Text in an array.

    is_reusable  whether other text may lie there once the pieces are given back
    """

    raw: NDArray[np.uint8]
    is_reusable: bool = False

    def windows(self, begins: Positions, ends: Positions) -> list[bytes]:
        """Return the bytes of windows."""
        borders, raw = zip(begins.tolist(), ends.tolist(), strict=True), self.raw.data
        return [raw[begin:end].tobytes() for begin, end in borders]

    def mean_qualities(self, table: Table, windows: Windows, offset: int) -> NDArray[np.float64]:
        """Return float64[n]: the mean qualities of windows of records; NaN where there are none.

        table    int64[m, 6]: the records
        windows  int[n] each: the record, and where the window begins and ends in it; an end beyond
                 its last base continues at its first
        offset   the quality character that means 0
        """
        means = np.empty(len(windows[0]))
        records.mean_qualities(-1, self.raw, table, *windows, offset, means)
        return means

    def copied(
        self, begins: Positions, ends: Positions, chosen: NDArray[np.integer]
    ) -> tuple[NDArray[np.uint8], Positions]:
        """Return the text of some of the records in these windows, and where each begins in it.

        The last line gets an end where it has none.
        """
        offsets = np.empty(len(chosen) + 1, np.int64)
        out = np.empty(records.find_offsets(self.raw, begins, ends, chosen, offsets), np.uint8)
        records.copy_records(self.raw, begins, ends, chosen, offsets, out)
        return out, offsets


@dataclass(frozen=True, slots=True, eq=False)
class TextInFile:
    """Text of a file, of which only what matches need is read again. Else as `TextInMemory`."""

    path: str

    def windows(self, begins: Positions, ends: Positions) -> list[bytes]:
        borders = [0, *np.cumsum(ends - begins).tolist()]
        text = self._read(begins, ends).tobytes()
        return [text[begin:end] for begin, end in pairwise(borders)]

    def _read(self, begins: Positions, ends: Positions) -> NDArray[np.uint8]:
        """Return the bytes of windows, one after the other."""
        joined = np.empty(int((ends - begins).sum()), np.uint8)
        with errors_named(self.path), FileIO(self.path) as file:
            if not records.copy_windows(file.fileno(), begins, ends, joined):
                raise_unreadable(file.fileno(), self.path, int(ends.max()) - 1)
        return joined

    def mean_qualities(self, table: Table, windows: Windows, offset: int) -> NDArray[np.float64]:
        means, block = np.empty(len(windows[0])), np.empty(QUALITY_BLOCK, np.uint8)
        with errors_named(self.path), FileIO(self.path) as file:
            number = file.fileno()
            wrong = records.mean_qualities(number, block, table, *windows, offset, means)
            if wrong >= 0:
                raise_unreadable(number, self.path, int(table[windows[0][wrong], QUALITY]))
        return means

    def copied(
        self, begins: Positions, ends: Positions, chosen: NDArray[np.integer]
    ) -> tuple[NDArray[np.uint8], Positions]:
        stop = ends[chosen].max(initial=0)
        first = begins[chosen].min(initial=stop)
        raw = self._read(np.array([first]), np.array([stop]))
        return TextInMemory(raw).copied(begins - first, ends - first, chosen)


Text = TextInMemory | TextInFile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pieces:
    """The records, and pieces of records, that stand in a span.

    begin    where in the file what belongs to the span begins; -1 for nothing in the span
    stop     the same of the next span, or the record that is wrong
    table    int64[n, 6], as in `multigpu.kernels.compiled.text.records`; lengths include the bases
             after the span
    letters  uint8[b]: their bases, one after the other
    text     the text that NAME, NAME_END and QUALITY of the table are positions in; in memory it
             ends with the last record
    error    what is wrong after the last record, or None
    lead     whether the first piece continues a record that began before the span
    tail     whether the last piece may continue in the next span
    beyond   how many bases of the last piece stand after the span
    mate_begin, mate_stop
             `begin` and `stop` in the second file of a pair, else 0
    mates    int8[n]: 1 or 2 where a record is of a pair, else 0; None where there are no pairs
    left_out number of records that were read and are none of these
    index    of each index file the reads that go with the records, or pairs of records

    The others are set by `SpanReader`:

    source   number of the file
    number   of the span in the file
    offsets  int64[n + 1]: where each piece begins in the letters
    inside   int64[n]: number of bases of each piece in the span
    ended    whether the span is behind the last one of its file
    """

    begin: int
    stop: int
    table: NDArray[np.int64]
    letters: NDArray[np.uint8]
    text: Text
    error: InputError | None = None
    lead: bool = False
    tail: bool = False
    beyond: int = 0
    mate_begin: int = 0
    mate_stop: int = 0
    mates: NDArray[np.int8] | None = None
    left_out: int = 0
    index: tuple[IndexReads, ...] = ()
    source: int = 0
    number: int = 0
    offsets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    inside: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    ended: bool = False

    def names(self, pieces: NDArray[np.intp]) -> list[bytes]:
        """Return the names of the records that pieces are of."""
        return self.text.windows(self.table[pieces, NAME], self.table[pieces, NAME_END])

    def borders(self) -> tuple[Positions, Positions]:
        """Return int64[n] twice: where the text of each record begins, and where it ends.

        It has all of a record only where records are not cut.
        """
        begins, text = self.table[:, NAME] - 1, self.text
        ends = np.full(len(begins), len(text.raw) if isinstance(text, TextInMemory) else self.stop)
        # Of two files records take turns, and the text of the second follows that of the first.
        step = 2 if len(begins) > 2 and begins[1] > begins[2] else 1
        ends[:-step] = begins[step:]
        ends[-step:-1] = begins[1:step]
        return begins, ends

    def name(self, piece: int) -> bytes:
        """Return the name of the record that a piece is of."""
        return self.names(np.array([piece]))[0]
