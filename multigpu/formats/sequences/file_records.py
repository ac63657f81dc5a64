"""Records of one file that are read and not taken, for what takes them in step with others."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.sequences.spans import BlockSpan
from multigpu.kernels.compiled.text.lines import NEWLINE
from multigpu.kernels.compiled.text.records import NAME, move

Table = NDArray[np.int64]


class FileRecords:
    """Records of a file that are read and not taken.

    raw    uint8[size]: their text
    table  int64[n, 6]: they, by positions in that
    begin  position in the file of raw[0]
    error  what is wrong after these, or None
    """

    def __init__(self, blocks: Iterator[BlockSpan], begin: int = 0) -> None:
        """Take the blocks of a file, which begin at a position in it."""
        nothing = BlockSpan(0, 0)
        self.raw, self.table, self.begin = nothing.raw, nothing.table, begin
        self.error: InputError | None = None
        self._blocks = blocks

    def fill(self, least: int) -> int:
        """Read until there are `least` records, or the blocks end; return their number."""
        while len(self.table) < least and (block := next(self._blocks, None)):
            self.error = block.error
            if not len(self.table):
                self.raw, self.table, self.begin = block.raw, block.table, block.begin
                continue
            blanks = np.full(block.begin - self.begin - len(self.raw), NEWLINE, np.uint8)
            at = len(self.raw) + len(blanks)
            self.raw = np.concatenate([self.raw, blanks, block.raw])
            self.table = np.concatenate([self.table, moved(block.table, at)])
        return len(self.table)

    def fill_to(self, border: int) -> int:
        """Read the records that begin before a position in the file; return their number."""
        count = 0
        while self.fill(count + 1) > count:
            count = int(np.searchsorted(self.table[:, NAME], border - self.begin, "right"))
            if count < len(self.table):
                break
        return count

    def position(self, record: int = 0) -> int:
        """Return where a record begins in the file; the end of the last one if there is none."""
        return self.begin + self._start(record)

    def _start(self, record: int) -> int:
        return int(self.table[record, NAME]) - 1 if record < len(self.table) else len(self.raw)

    def place(self) -> str:
        """Return in words which record is the first."""
        return place_of(self.raw, int(self.table[0, NAME]), self.begin)

    def first(
        self, count: int, at: int = 0, out: Table | None = None
    ) -> tuple[NDArray[np.uint8], Table, int]:
        """Return the text of the first records, their table, and where the text is in the file.

        at   position of the text in one that it is put in, which the table is for
        out  memory for the table
        """
        begin, end = self._start(0), self._start(count)
        table = moved(self.table[:count], at - begin, out)
        return self.raw[begin:end], table, self.begin + begin

    def take(
        self, count: int, at: int = 0, out: Table | None = None
    ) -> tuple[NDArray[np.uint8], Table, int]:
        """Return what `first` does, and leave it out from now on."""
        taken, end = self.first(count, at, out), self._start(count)
        self.raw, self.table = self.raw[end:], moved(self.table[count:], -end)
        self.begin += end
        return taken


def moved(table: Table, by: int, out: Table | None = None) -> Table:
    """Return a table with positions in a text that begins so many bytes earlier."""
    if not by and out is None:
        return table
    found = np.empty_like(table) if out is None else out
    move(table, by, found)
    return found


def title_at(raw: NDArray[np.uint8], name: int) -> bytes:
    """Return the title of a record from its name on."""
    return raw[name : name + 1000].tobytes().partition(b"\n")[0].rstrip()


def place_of(raw: NDArray[np.uint8], name: int, begin: int) -> str:
    """Return in words which record has its name there in a text that begins so in the file."""
    return f"record {quoted(title_at(raw, name))} at byte {begin + name - 1}"
