"""Paired reads from blocks of one file with mates in turns, or of two files in step."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences.pairs import (
    PairedSource,
    Table,
    check_mates,
    interleave,
    moved,
    place_of,
    title_at,
)
from multigpu.formats.sequences.records import Parsed, empty_table
from multigpu.formats.sequences.spans import BlockSpan
from multigpu.formats.storage.sources import Block, new_memory
from multigpu.kernels.compiled.text.lines import NEWLINE
from multigpu.kernels.compiled.text.records import NAME, Fault


class FileRecords:
    """Records of a file that are read and not taken.

    raw    uint8[size]: their text
    table  int64[n, 6]: they, by positions in that
    begin  position in the file of raw[0]
    error  what is wrong after these, or None
    """

    def __init__(self, blocks: Iterator[BlockSpan], begin: int = 0) -> None:
        """Take the blocks of a file, which begin at a position in it."""
        self.raw, self.table, self.begin = np.empty(0, np.uint8), empty_table(0), begin
        self.error: InputError | None = None
        self._blocks = blocks

    def fill(self, least: int) -> int:
        """Read until there are `least` records, or the blocks end; return their number."""
        while len(self.table) < least and (block := next(self._blocks, None)):
            parsed, self.error = block.parsed, block.error
            table = parsed.table[:-1] if parsed.fault is Fault.QUALITY else parsed.table
            raw = block.raw[: parsed.stop]
            if not len(self.table):
                self.raw, self.table, self.begin = raw, table, block.begin
                continue
            blanks = np.full(block.begin - self.begin - len(self.raw), NEWLINE, np.uint8)
            at = len(self.raw) + len(blanks)
            self.raw = np.concatenate([self.raw, blanks, raw])
            self.table = np.concatenate([self.table, moved(table, at)])
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

    def take(self, count: int) -> tuple[NDArray[np.uint8], Table, int]:
        """Return the text of the first records, their table, and where the text is in the file."""
        begin, end = self._start(0), self._start(count)
        taken = self.raw[begin:end], moved(self.table[:count], -begin), self.begin + begin
        self.raw, self.table = self.raw[end:], moved(self.table[count:], -end)
        self.begin += end
        return taken


def paired_spans(
    number: int, source: PairedSource, blocks: Sequence[Iterator[BlockSpan]]
) -> Iterator[BlockSpan]:
    """Yield blocks of whole pairs from the blocks of each file; the last may have an error."""
    files = [FileRecords(each) for each in blocks]
    each = 2 // len(files)  # records of a file in a pair
    for block in itertools.count():
        count = min(file.fill(each) // each for file in files)
        raw, table, error = take_pairs(source, files, count)
        error = error or (None if count else error_at_end(source, files))
        if count or error:
            yield BlockSpan(number, block, raw, Parsed(table=table, stop=len(raw)), error)
        if error or not count:
            return


def take_pairs(
    source: PairedSource,
    files: Sequence[FileRecords],
    count: int,
    allocate: Callable[[int], Block] = new_memory,
) -> tuple[Block, Table, InputError | None]:
    """Return the text and the table of `count` pairs, up to the first that are no mates.

    allocate  makes memory for the text
    """
    texts, tables, origins, size = [], [], [], 0
    for file in files:
        text, table, begin = file.take(2 * count // len(files))
        texts.append(text)
        tables.append(moved(table, size))
        origins.append(begin - size)
        size += len(text)
    raw = np.concatenate(texts, out=allocate(size))
    table, error = check_mates(source, raw, interleave(tables), origins)
    return raw, table, error


def error_at_end(source: PairedSource, files: Sequence[FileRecords]) -> InputError | None:
    """Return the error where a file ends or is wrong after the pairs and the other is not."""
    each = 2 // len(files)
    ended = [file for file in files if file.fill(each) < each]
    if error := next((file.error for file in ended if file.error), None):
        return error
    for which, file in enumerate(files):
        if ended and len(file.table):
            where = place_of(title_at(file.raw, int(file.table[0, NAME])), file.position())
            why = "the number of records is odd"
            if len(files) == 2:
                why = f"{source.files[1 - which].path} has fewer records"
            return InputError(source.files[which].path, f"has no mate: {why}", where)
    return None
