"""Streams of paired reads: two contents in step, or one with mates in turns, to blocks of pairs."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, Unreadable
from multigpu.formats.sequences.pairs import (
    PairedSource,
    Table,
    check_mates,
    interleave,
    lone_error,
    title_at,
)
from multigpu.formats.sequences.records import Parsed, describe, empty_table
from multigpu.formats.sequences.registry import FORMATS
from multigpu.formats.sequences.spans import BlockSpan
from multigpu.formats.storage.sources import Content, Source
from multigpu.kernels.compiled.text.records import NAME, Fault


def paired_spans(
    number: int, source: PairedSource, contents: Sequence[Content], phred_offset: int
) -> Iterator[BlockSpan]:
    """Yield blocks of whole pairs; the last one may have the error that ended the stream.

    contents  of the files of the source, which are closed at the end

    Raises Unreadable where one cannot be read.
    """
    with ExitStack() as stack:
        for content in contents:
            stack.enter_context(closing(content))
        files = [
            _FileRecords(file, content, phred_offset)
            for file, content in zip(source.files, contents, strict=True)
        ]
        each = 2 // len(files)  # records of a file in a pair
        for block in itertools.count():
            pairs = min(file.fill(each) // each for file in files)
            texts, tables, places = zip(*(file.take(pairs * each) for file in files), strict=True)
            begins = [0, *itertools.accumulate(map(len, texts))][: len(files)]
            raw = np.concatenate(texts)
            origins = [place - begin for place, begin in zip(places, begins, strict=True)]
            table, error = check_mates(source, raw, interleave(tables, begins), origins)
            if not pairs:
                error = _end(source, files)
            if pairs or error:
                parsed = Parsed(table=table, stop=len(raw))
                yield BlockSpan(number, block, raw, parsed, error)
            if error or not pairs:
                return


def _end(source: Source, files: "Sequence[_FileRecords]") -> InputError | None:
    """Return the error after the last pair, if there is one."""
    for which, file in enumerate(files):
        if file.count:
            continue
        if file.error:
            return file.error
        if len(files) > 1 and files[1 - which].count:
            return files[1 - which].lone(source, 1 - which)
    if len(files) == 1 and files[0].count:
        return files[0].error or files[0].lone(source, 0)
    return None


class _FileRecords:
    """Records of one file of a pair, parsed as they are asked for.

    count  number of those that are parsed and not taken
    error  what is wrong after these, or None
    """

    def __init__(self, source: Source, content: Content, phred_offset: int) -> None:
        self._path, self._content, self._phred_offset = source.path, content, phred_offset
        # Text is made of alignments.
        self._format = FORMATS.get(source.layout, FORMATS["fastq"])
        self._raw, self._table, self._stop = np.empty(0, np.uint8), empty_table(0), 0
        self._begin, self._before = 0, 0  # of the records left in raw; of raw in the content
        self._ended = False
        self.error: InputError | None = None

    @property
    def count(self) -> int:
        return len(self._table)

    def fill(self, least: int) -> int:
        """Read until there are so many records, or the content ends; return their number."""
        wanted = 0
        while self.count < least and not self._ended:
            self._read(wanted)
            wanted = 2 * len(self._raw)  # a long record is not looked at again with every block
        return self.count

    def _read(self, wanted: int) -> None:
        """Read a block, or more, until there are `wanted` bytes, and parse what is there."""
        parts = [self._raw[self._begin :]]
        size = len(parts[0])
        try:
            while (block := next(self._content, None)) is not None:
                parts.append(block)
                size += len(block)
                if size >= wanted:
                    break
        except Unreadable:
            raise  # a journal must not know of it
        except InputError as damage:
            self.error, self._ended = damage, True
            return
        self._ended = block is None
        self._before, self._begin = self._before + self._begin, 0
        self._raw = np.concatenate(parts)
        parsed = self._format.parse(self._raw, self._ended, self._phred_offset)
        self._table, self._stop = parsed.table, parsed.stop
        if parsed.fault is Fault.QUALITY:
            self._table = self._table[:-1]
        if self._ended or parsed.fault not in (Fault.NONE, Fault.INCOMPLETE):
            self.error = describe(
                self._path, self._format.mark, self._raw, parsed, self._before, self._phred_offset
            )
            self._ended = True

    def take(self, count: int) -> tuple[NDArray[np.uint8], Table, int]:
        """Return the text of the first records, their table, and where the text begins."""
        begin, table = self._begin, self._table[:count]
        self._table = self._table[count:]
        self._begin = int(self._table[0, NAME]) - 1 if self.count else self._stop
        moved = interleave([table], [-begin])
        return self._raw[begin : self._begin], moved, self._before + begin

    def lone(self, source: Source, which: int) -> InputError:
        """Return the error for the first record: it has no mate."""
        name = int(self._table[0, NAME])
        return lone_error(source, which, title_at(self._raw, name), self._before + name)
