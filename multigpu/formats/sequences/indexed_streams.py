"""Reads with their index reads: files in step, whose records have the names of the reads."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from multigpu.errors import InputError, quoted
from multigpu.formats.sequences.file_records import FileRecords, place_of
from multigpu.formats.sequences.records import gather_letters
from multigpu.formats.sequences.spans import BlockSpan, IndexReads
from multigpu.formats.storage.sources import Source, new_memory
from multigpu.kernels.compiled.text.records import LENGTH, NAME, NAME_END, find_other_name


class IndexedSource(Source):
    """Reads, of which each one or each pair has a record in every index file."""

    def __init__(self, reads: Source, indexes: Sequence[Source]) -> None:
        super().__init__(reads.path, reads.size, reads.compression, reads.layout)
        self.reads, self.indexes = reads, tuple(indexes)

    def __reduce__(self) -> Any:
        return IndexedSource, (self.reads, self.indexes)

    @property
    def files(self) -> tuple[Source, ...]:
        return self.reads.files

    @property
    def is_paired(self) -> bool:
        return self.reads.is_paired

    @property
    def has_ranges(self) -> bool:
        return False

    def with_absolute_path(self) -> Source:
        return self  # only this process reads it


def indexed_spans(
    source: IndexedSource, blocks: Iterator[BlockSpan], indexes: Sequence[Iterator[BlockSpan]]
) -> Iterator[BlockSpan]:
    """Yield the blocks of reads with their index reads, from the blocks of each index file.

    The last one may have the error that ended it.
    """
    files = [(file, FileRecords(each)) for file, each in zip(source.indexes, indexes, strict=True)]
    block = BlockSpan(0, -1)
    try:
        for block in blocks:
            yield replace(block, index=tuple(_take(source, *each, block) for each in files))
        for each in files:
            _check_end(source, *each)
    except InputError as error:
        yield BlockSpan(block.source, block.number + 1, error=error)


def _take(source: IndexedSource, file: Source, held: FileRecords, block: BlockSpan) -> IndexReads:
    """Return the index reads of a block, from one file. Raises InputError where they are others."""
    table = block.table[:: 2 if source.is_paired else 1]
    count = min(len(table), held.fill(len(table)))
    raw, records, begin = held.take(count)
    at = int(find_other_name(block.raw, table, raw, records, False))
    if at < len(table):
        name = quoted(block.raw[table[at, NAME] : table[at, NAME_END]].tobytes())
        if at == count:
            problem = f"has no record for {name} of {source.path}: it has fewer records"
            raise held.error or InputError(file.path, problem)
        problem = f"is not of {name} in {source.path}: index reads must be in step with the reads"
        raise InputError(file.path, problem, place_of(raw, int(records[at, NAME]), begin))
    letters = gather_letters(raw, records, new_memory)
    return IndexReads(letters, np.cumsum([0, *records[:, LENGTH]], dtype=np.int64))


def _check_end(source: IndexedSource, file: Source, held: FileRecords) -> None:
    """Raise InputError where an index file has more records than there are reads."""
    if held.fill(1):
        raise InputError(file.path, f"has no read: {source.path} has fewer", held.place())
    if held.error:
        raise held.error
