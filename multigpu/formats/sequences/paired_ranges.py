"""Ranges of plain files of paired reads.

A span is a byte range of the first file and has the pairs whose first mate begins in it. Where the
other file has its mate is guessed: by the share of the file before it, and there by its name. In a
file with mates in turns the first of two records with one name begins the span. Both guesses are
checked against where the span before ended, as is every first record of FASTQ.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import FileIO

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences.fastq import FASTQ, find_first_record
from multigpu.formats.sequences.pairs import (
    PairedSource,
    Table,
    check_mates,
    interleave,
    lone_error,
    title_at,
)
from multigpu.formats.sequences.pieces import RangeRecords
from multigpu.formats.sequences.records import Parsed, describe, empty_table
from multigpu.formats.sequences.sequence_format import BLOCK
from multigpu.formats.sequences.spans import FileSpan
from multigpu.formats.storage.sources import Source, raise_unreadable
from multigpu.formats.storage.stored_streams import errors_named
from multigpu.kernels.compiled.text import fastq
from multigpu.kernels.compiled.text.mates import find_name, find_stray, split_name
from multigpu.kernels.compiled.text.records import (
    LENGTH,
    NAME,
    NAME_END,
    TABLE_FULL,
    Fault,
    gather,
)
from multigpu.kernels.device.buffers import Buffers

READ_BYTES = 1 << 20  # at a time: they are parsed while they are in the cache of a core
ROWS = READ_BYTES // 64
ALL = 1 << 62
# How far around the guess the name of a mate is looked for, in bytes. What is farther off is found
# when the span before has ended.
DISTANCES = (1 << 16, 1 << 20, 1 << 24, 1 << 26)


def read_pairs(
    source: PairedSource, span: FileSpan, *, offset: int, letters: Buffers, texts: Buffers
) -> RangeRecords:
    """Read the pairs whose first mate begins in a span, with their text.

    offset   the quality character that means 0
    letters  source of the memory for the letters
    texts    source of that for the text

    Raises InputError where a file is shorter now than `source` says, or cannot be read.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_opened(file)) for file in source.files]
        share = (source.size or 0) / files[0].size
        text = _Text(texts, int(share * (span.stop - span.start)) + len(files) * READ_BYTES)
        begins = _find_begins(files, span, text, offset)
        table, stops, error = empty_table(0), (span.stop, 0), None
        if -1 not in begins:
            text.size = 0
            table, stops, error = _read_mates(source, files, begins, span.stop, text, offset)
    bases = letters.take(int(table[:, LENGTH].sum()))
    gather(text.raw, table, bases, 0)
    return RangeRecords(
        begin=begins[0],
        stop=stops[0],
        mate_begin=begins[1],
        mate_stop=stops[1],
        table=table,
        letters=bases,
        raw=text.raw[: text.size],
        error=error,
    )


# ---- files and their text -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _File:
    source: Source
    opened: FileIO

    @property
    def size(self) -> int:
        return self.source.size or 0


@contextmanager
def _opened(source: Source) -> Iterator[_File]:
    with errors_named(source.path):
        opened = FileIO(source.path)
    with opened:
        yield _File(source, opened)


class _Text:
    """Buffer that grows, for pieces of files one after the other."""

    def __init__(self, buffers: Buffers, room: int) -> None:
        self._buffers = buffers
        self.raw, self.size = buffers.take(room), 0

    def read(self, file: _File, position: int) -> None:
        """Append a piece of a file. Raises InputError where it ends before its size."""
        count = min(READ_BYTES, file.size - position)
        if self.size + count > len(self.raw):
            full, self.raw = self.raw, self._buffers.take(2 * (self.size + count))
            self.raw[: self.size] = full[: self.size]
            self._buffers.give(full)
        with errors_named(file.source.path):
            while count > 0:
                room = self.raw[self.size : self.size + count]
                done = os.preadv(file.opened.fileno(), [room.data], position)
                if not done:
                    raise_unreadable(file.opened.fileno(), file.source.path, position, file.size)
                self.size, count, position = self.size + done, count - done, position + done


@dataclass(frozen=True, eq=False, kw_only=True)
class _RecordRun:
    """Records that follow each other in a file.

    table    int64[n, 6], with positions from the first record on
    at       where that one begins in the text
    begin    where it begins in the file
    stop     where the next record begins in the file, or the one that is wrong
    error    what is wrong with that one, or None
    """

    table: Table
    at: int
    begin: int
    stop: int
    error: InputError | None


def _read(
    text: _Text,
    file: _File,
    begin: int,
    border: int,
    offset: int,
    *,
    most: int = ALL,
    each: int = 1,
) -> _RecordRun:
    """Read the records that begin in [begin, border) of a file into the text.

    most  number of records that are enough
    each  number of which theirs is a multiple: the last ones may begin after the border
    """
    origin, tables, stop, count = text.size, [empty_table(0)], 0, 0
    error = None
    text.read(file, begin)
    while count < most:
        raw = text.raw[origin : text.size]
        final = begin + len(raw) >= file.size
        table = empty_table(min(ROWS, most - count))
        found, stop, why, qualities = fastq.parse(raw, stop, border - begin, final, offset, table)
        good = found - (why == Fault.QUALITY)
        tables.append(table[:good])
        count += good
        # Blank lines may follow the last record.
        if not final and (why == Fault.INCOMPLETE or (why == Fault.NONE and stop == len(raw))):
            text.read(file, begin + len(raw))
        elif why == Fault.NONE and count % each and stop < len(raw):
            border = begin + stop + 1
        elif why != TABLE_FULL:
            parsed = Parsed(
                table=table[good:found], stop=stop, fault=Fault(why), qualities=qualities
            )
            error = describe(file.source.path, FASTQ.mark, raw, parsed, begin, offset)
            break
    table = np.concatenate(tables)
    return _RecordRun(table=table, at=origin, begin=begin, stop=begin + stop, error=error)


# ---- where the span begins ----------------------------------------------------------------------


def _find_begins(
    files: Sequence[_File], span: FileSpan, text: _Text, offset: int
) -> tuple[int, int]:
    """Return where the first pair begins in the first file, and in the second, 0 without one.

    -1 where it was not found.
    """
    if span.exact:
        return span.start, span.mate_start
    first = find_first_record(files[0].opened.fileno(), span.start - 1, span.stop)
    if first < 0:
        return -1, 0
    table = _read(text, files[0], first, files[0].size, offset, most=3).table
    if len(files) == 1:
        is_second = len(table) == 3 and find_stray(text.raw, table[:2]) == 0
        if is_second and find_stray(text.raw, table[1:]) < 0:
            first += int(table[1, NAME]) - 1
        return first if first < span.stop else -1, 0
    if not len(table):
        return first, -1
    name = int(table[0, NAME])
    end, _ = split_name(text.raw, name, int(table[0, NAME_END]))
    return first, _find_mate(files[1], text.raw[name:end], first * files[1].size // files[0].size)


def _find_mate(file: _File, name: NDArray[np.uint8], guess: int) -> int:
    """Return where a record of this name begins near a place in a file; -1 where none does."""
    block = np.empty(BLOCK, np.uint8)
    for distance in DISTANCES:
        begin, end = max(0, guess - distance), min(guess + distance, file.size)
        found = int(find_name(file.opened.fileno(), begin, end, block, name))
        if found >= 0 or (begin, end) == (0, file.size):
            return found
    return -1


# ---- the pairs ----------------------------------------------------------------------------------


def _read_mates(
    source: PairedSource,
    files: Sequence[_File],
    begins: tuple[int, int],
    border: int,
    text: _Text,
    offset: int,
) -> tuple[Table, tuple[int, int], InputError | None]:
    """Return the rows of whole pairs, where the next pair begins, and what is wrong with it."""
    each = 2 // len(files)  # records of a file in a pair
    runs = [_read(text, files[0], begins[0], border, offset, each=each)]
    if len(files) == 2:
        most = len(runs[0].table)
        runs.append(_read(text, files[1], begins[1], files[1].size, offset, most=most))
    count = each * min(len(run.table) // each for run in runs)
    table = interleave([run.table[:count] for run in runs], [run.at for run in runs])
    table, error = check_mates(source, text.raw, table, [run.begin - run.at for run in runs])
    stops = (runs[0].stop, runs[1].stop if len(files) == 2 else 0)
    return table, stops, error or _error_after(source, files, runs, count, text, offset)


def _error_after(
    source: PairedSource,
    files: Sequence[_File],
    runs: Sequence[_RecordRun],
    count: int,
    text: _Text,
    offset: int,
) -> InputError | None:
    """Return what is wrong after the pairs, or None.

    count  records of each file in these
    """

    def lone(which: int, run: _RecordRun, row: int) -> InputError:
        name = int(run.table[row, NAME])
        return lone_error(source, which, title_at(text.raw, run.at + name), run.begin + name)

    for run in runs:
        if run.error and len(run.table) - count < 2 // len(files):
            return run.error
    for which, run in enumerate(runs):
        if len(run.table) > count:
            return lone(which, run, count)
    if len(files) == 2 and runs[0].stop >= files[0].size:
        rest = _read(text, files[1], runs[1].stop, files[1].size, offset, most=1)
        return lone(1, rest, 0) if len(rest.table) else rest.error
    return None
