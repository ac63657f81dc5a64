"""Readers of spans of samples. They are exact wherever samples are cut.

* **FASTQ**: a span has the records that begin in it; where its first one begins is guessed, and the
  guess is checked against where the span before ended.
* **FASTA**: a span has the bases that stand in it, even of records that began before or continue
  after it; such a piece extends over the border as far as a signature may reach. Whether it begins
  in a header line is guessed where that line is very long, and checked likewise.
* Blocks of a stream are whole records, parsed where the job was started.
"""

from collections.abc import Callable, Sequence
from io import FileIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences import fasta, fastq, records
from multigpu.formats.sequences.pieces import Pieces, TextInFile, TextInMemory
from multigpu.formats.sequences.spans import BlockSpan, FileSpan, Span
from multigpu.formats.storage.sources import Source
from multigpu.formats.storage.stored_streams import errors_named
from multigpu.kernels.compiled.text.records import LENGTH, Fault, gather
from multigpu.kernels.device.buffers import Buffers


class SpanReader:
    """Reader of spans, used by several threads at once."""

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        overlap: int,
        phred_offset: int,
        allocate: Callable[[int], NDArray[np.uint8]],
    ) -> None:
        """Make a reader.

        overlap   bases that a FASTA piece extends over the border
        allocate  makes buffers for letters
        """
        self._sources, self._overlap, self._phred_offset = sources, overlap, phred_offset
        self._letters, self._borders = Buffers(allocate), Buffers(allocate)

    def read(self, span: Span) -> Pieces:
        """Return the span's records. Raises InputError where the file cannot be read."""
        if isinstance(span, BlockSpan):
            return self._read_block(span)
        if self._sources[span.source].layout == "fasta":
            return self._read_fasta(span)
        return self._read_fastq(span)

    def give_back(self, pieces: Pieces) -> None:
        """Let the memory that the pieces lie in be used for others."""
        self._letters.give(pieces.letters)
        self._borders.give(pieces.offsets)

    def clear(self) -> None:
        """Give the memory of all buffers back."""
        self._letters.clear()
        self._borders.clear()

    def _read_block(self, span: BlockSpan) -> Pieces:
        parsed, table = span.parsed, span.parsed.table
        # The last record of the table is the one with a wrong quality.
        if parsed.fault is Fault.QUALITY:
            table = table[:-1]
        offsets = self._offsets(table)
        letters = self._letters.take(int(offsets[-1]))
        gather(span.raw, table, letters, 0)
        return Pieces(
            source=span.source,
            text=TextInMemory(span.raw),
            table=table,
            letters=letters,
            offsets=offsets,
            inside=table[:, LENGTH],
            begin=0,
            stop=parsed.stop,
            error=span.error,
        )

    def _read_fastq(self, span: FileSpan) -> Pieces:
        source = self._sources[span.source]
        with errors_named(source.path), FileIO(source.path) as file:
            begin = span.start
            # The newline of the line before belongs to the search.
            if not span.exact:
                begin = fastq.find_first_record(file.fileno(), span.start - 1, span.stop)
            found = fastq.read_records(
                file.fileno(),
                source,
                span.stop if begin < 0 else begin,
                span.stop,
                offset=self._phred_offset,
                buffers=self._letters,
            )
        return self._pieces(span, found, inside=found.table[:, LENGTH], begin=begin)

    def _read_fasta(self, span: FileSpan) -> Pieces:
        source = self._sources[span.source]
        with errors_named(source.path), FileIO(source.path) as file:
            found = fasta.read_pieces(
                file.fileno(),
                source,
                span.start,
                span.stop,
                exact=span.exact,
                overlap=self._overlap,
                buffers=self._letters,
            )
        inside = found.table[:, LENGTH].copy()
        inside[-1:] -= found.beyond
        return self._pieces(
            span, found, inside=inside, lead=found.lead, tail=True, begin=found.begin
        )

    def _pieces(
        self, span: FileSpan, found: fastq.FastqRecords | fasta.FastaPieces, **more: Any
    ) -> Pieces:
        """Return what was found in a span of a file; `more` are the other fields of `Pieces`."""
        return Pieces(
            source=span.source,
            text=TextInFile(self._sources[span.source].path),
            table=found.table,
            letters=found.letters,
            offsets=self._offsets(found.table),
            stop=found.stop,
            error=found.error,
            **more,
        )

    def _offsets(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        offsets: NDArray[np.int64] = self._borders.take(8 * (len(table) + 1)).view(np.int64)
        records.set_offsets(table, offsets)
        return offsets
