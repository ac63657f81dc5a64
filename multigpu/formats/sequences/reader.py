"""Readers of spans of samples. They are exact wherever samples are cut; see the formats.

Blocks of a stream are whole records, parsed by who reads it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from io import FileIO

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences import records
from multigpu.formats.sequences.pairs import PairedSource
from multigpu.formats.sequences.pieces import Pieces, TextInMemory
from multigpu.formats.sequences.ranges import read_bgzf, read_pairs
from multigpu.formats.sequences.registry import FORMATS
from multigpu.formats.sequences.spans import BgzfSpan, BlockSpan, FileSpan, Span, StreamSpan
from multigpu.formats.sequences.streams import OpenStreams
from multigpu.formats.storage.sources import Source
from multigpu.formats.storage.stored_streams import errors_named
from multigpu.kernels.compiled.text.records import LENGTH
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

    def read(self, span: Span) -> Pieces:
        """Return the span's records. Raises InputError where the file cannot be read."""
        is_ended = False
        if isinstance(span, FileSpan):
            found = self._read_range(span)
        else:
            block = span if isinstance(span, BlockSpan) else self._streams.read(span)
            is_ended = block is None
            found = self._read_block(block or BlockSpan(0, 0), isinstance(span, StreamSpan))
        offsets: NDArray[np.int64] = self._borders.take(8 * (len(found.table) + 1)).view(np.int64)
        offsets[0] = 0
        inside = found.table[:, LENGTH].copy()
        np.cumsum(inside, out=offsets[1:])
        inside[-1:] -= found.beyond
        return replace(
            found,
            source=span.source,
            number=span.number,
            offsets=offsets,
            inside=inside,
            ended=is_ended,
        )

    def give_back(self, pieces: Pieces) -> None:
        """Let the memory that the pieces lie in be used for others."""
        self._letters.give(pieces.letters)
        self._borders.give(pieces.offsets)
        text = pieces.text
        if isinstance(text, TextInMemory) and text.is_reusable and text.raw.base is not None:
            self._streams.buffers.give(text.raw)

    def clear(self) -> None:
        """Give the memory of all buffers back."""
        for buffers in (self._letters, self._borders, self._streams.buffers):
            buffers.clear()

    def _read_block(self, block: BlockSpan, is_reusable: bool) -> Pieces:
        """Return the records of a block of a stream."""
        return Pieces(
            begin=0,
            stop=len(block.raw),
            table=block.table,
            letters=records.gather_letters(block.raw, block.table, self._letters.take),
            text=TextInMemory(block.raw, is_reusable),
            error=block.error,
            mates=block.mates,
            left_out=block.left_out,
            index=block.index,
        )

    def _read_range(self, span: FileSpan) -> Pieces:
        source, offset, letters = self._sources[span.source], self._phred_offset, self._letters
        texts = self._streams.buffers
        if isinstance(source, PairedSource):
            return read_pairs(source, span, offset=offset, letters=letters, texts=texts)
        if isinstance(span, BgzfSpan):
            return read_bgzf(source, span, offset=offset, letters=letters, texts=texts)
        with errors_named(source.path), FileIO(source.path) as file:
            read_range = FORMATS[source.layout].read_range
            return read_range(file.fileno(), source, span, self._overlap, offset, letters)
