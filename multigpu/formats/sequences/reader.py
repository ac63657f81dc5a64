"""Readers of spans of samples. They are exact wherever samples are cut; see the formats.

Blocks of a stream are whole records, parsed by who reads it.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from io import FileIO

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences import bgzf_ranges, records
from multigpu.formats.sequences.paired_ranges import read_pairs
from multigpu.formats.sequences.pairs import PairedSource
from multigpu.formats.sequences.pieces import Pieces, RangeRecords, TextInFile, TextInMemory
from multigpu.formats.sequences.records import Parsed, empty_table
from multigpu.formats.sequences.registry import FORMATS
from multigpu.formats.sequences.spans import BgzfSpan, BlockSpan, FileSpan, Span
from multigpu.formats.sequences.streams import OpenStreams
from multigpu.formats.storage.sources import Source, new_memory
from multigpu.formats.storage.stored_streams import errors_named
from multigpu.kernels.compiled.text.records import LENGTH, Fault, gather
from multigpu.kernels.device.buffers import Buffers


class SpanReader:
    """Reader of spans, used by several threads at once."""

    def __init__(
        self,
        sources: Sequence[Source],
        streams: OpenStreams,
        *,
        overlap: int,
        phred_offset: int,
        allocate: Callable[[int], NDArray[np.uint8]],
    ) -> None:
        """Make a reader.

        streams   those that this process reads
        overlap   bases that a FASTA piece extends over the border
        allocate  makes buffers for letters
        """
        self._sources, self._streams = sources, streams
        self._overlap, self._phred_offset = overlap, phred_offset
        self._letters, self._borders = Buffers(allocate), Buffers(allocate)
        self._texts, self._ranges = Buffers(new_memory), Buffers(new_memory)  # of pairs

    def read(self, span: Span) -> Pieces:
        """Return the span's records. Raises InputError where the file cannot be read."""
        if isinstance(span, FileSpan):
            return self._read_range(span)
        block = span if isinstance(span, BlockSpan) else self._streams.read(span)
        return self._read_block(span, block)

    def give_back(self, pieces: Pieces) -> None:
        """Let the memory that the pieces lie in be used for others."""
        if isinstance(pieces.text, TextInMemory) and pieces.text.is_reusable:
            self._streams.give_back(pieces.text.raw)
        self._letters.give(pieces.letters)
        self._borders.give(pieces.offsets)
        if pieces.raw is not None:
            self._texts.give(pieces.raw)

    def clear(self) -> None:
        """Give the memory of all buffers back."""
        for buffers in (self._letters, self._borders, self._texts, self._ranges):
            buffers.clear()

    def _read_block(self, span: Span, block: BlockSpan | None) -> Pieces:
        """Return the records of a block of a stream; none where the stream has ended before."""
        parsed = block.parsed if block else Parsed(table=empty_table(0), stop=0)
        raw = block.raw if block else np.empty(0, np.uint8)
        table = parsed.table
        # The last record of the table is the one with a wrong quality.
        if parsed.fault is Fault.QUALITY:
            table = table[:-1]
        letters = self._letters.take(int(table[:, LENGTH].sum()))
        gather(raw, table, letters, 0)
        error = block.error if block else None
        found = RangeRecords(begin=0, stop=parsed.stop, table=table, letters=letters, error=error)
        text = TextInMemory(raw, is_reusable=self._streams.lends(span))
        pieces = self._pieces(span, found, text, ended=block is None)
        if block is None:
            return pieces
        return replace(pieces, mates=block.mates, left_out=block.left_out, index=block.index)

    def _read_range(self, span: FileSpan) -> Pieces:
        source = self._sources[span.source]
        if isinstance(source, PairedSource):
            found = read_pairs(
                source,
                span,
                offset=self._phred_offset,
                letters=self._letters,
                texts=self._texts,
                ranges=self._ranges,
            )
            assert found.raw is not None
            return self._pieces(span, found, TextInMemory(found.raw))
        if isinstance(span, BgzfSpan):
            found = bgzf_ranges.read_range(
                source,
                span,
                offset=self._phred_offset,
                letters=self._letters,
                texts=self._streams.buffers,
            )
            assert found.raw is not None
            return self._pieces(span, found, TextInMemory(found.raw, is_reusable=True))
        with errors_named(source.path), FileIO(source.path) as file:
            found = FORMATS[source.layout].read_range(
                file.fileno(),
                source,
                span,
                overlap=self._overlap,
                offset=self._phred_offset,
                buffers=self._letters,
            )
        return self._pieces(span, found, TextInFile(source.path))

    def _pieces(
        self, span: Span, found: RangeRecords, text: TextInMemory | TextInFile, ended: bool = False
    ) -> Pieces:
        offsets: NDArray[np.int64] = self._borders.take(8 * (len(found.table) + 1)).view(np.int64)
        records.set_offsets(found.table, offsets)
        inside = found.table[:, LENGTH].copy()
        inside[-1:] -= found.beyond
        return Pieces(
            **{each.name: getattr(found, each.name) for each in fields(found)},
            source=span.source,
            number=span.number,
            text=text,
            offsets=offsets,
            inside=inside,
            ended=ended,
        )
