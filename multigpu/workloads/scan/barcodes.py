"""Demultiplexing: the sample of each read by the barcodes of a sheet, and rows of the barcodes.

barcode1 stands in a read, or in the first of a pair, and barcode2 in the second; or both stand in
index reads, in files of their own or in the titles of the reads.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.sequences.pieces import Pieces, TextInMemory
from multigpu.formats.sequences.sample_sheets import SampleSheet
from multigpu.formats.sequences.spans import IndexReads
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text.records import NAME_END
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan import Chunk, Hits, allowed_bases
from multigpu.kernels.scan.approximate.pieces import Portion
from multigpu.kernels.scan.barcodes import Barcodes, BarcodeWindows, assign
from multigpu.workloads.scan.options import HEADERS, ScanOptions
from multigpu.workloads.scan.patterns import patterns_of
from multigpu.workloads.scan.search import (
    Matches,
    SignatureSearch,
    unpinned,
)

Numbers = NDArray[np.int64]
ANYWHERE = 1 << 62  # places
# Index reads in the title of a read, after its name: 1:N:0:ACGT+TGCA.
INDEX = re.compile(rb"[ \t](?:[^:\x00- ]*:){3}([A-Za-z]+)[+-]?([A-Za-z]*)")
NO_READS = IndexReads(np.empty(0, np.uint8), np.zeros(1, np.int64))


class BarcodeSearch(SignatureSearch):
    """The comparison of barcodes with the places where they stand. It runs on CPUs."""

    overlap = 0

    def __init__(self, sheet: SampleSheet, sources: Sequence[Source], options: ScanOptions) -> None:
        super().__init__(patterns_of(sheet.signatures(), options), options)
        self._sources = sources
        self.allocate, self._buffers = unpinned, Buffers(unpinned)
        strict, none = options.sample_n == "mismatch", [b""] * len(sheet.samples)
        self._is_dual = len(sheet.barcodes) > 1
        one, other = (
            Barcodes.of(column, allowed_bases(options.most_errors, lengths), strict)
            for column in (sheet.barcodes[0], sheet.barcodes[1] if self._is_dual else none)
            for lengths in [np.array([len(barcode) for barcode in column])]
        )
        self._barcodes = one, other

    def whole(self, pieces: Pieces) -> Portion:
        return Portion(chunk=Chunk(pieces.letters, pieces.offsets))

    def find(self, portion: Portion) -> Hits:
        none = np.empty(0, np.int64)
        return Hits.at_places(none, none, none, none, self.patterns.lengths)

    def matches(self, pieces: Pieces, portion: Portion, hits: Hits) -> Matches:
        """Return rows of the samples that are the best for each read.

        There is one for each barcode that stands in a read; where they stand elsewhere, one for
        each record, of no bases and with the errors of both barcodes.
        """
        step = 2 if self._sources[pieces.source].is_paired else 1
        placed = 0 if self._options.index_reads else 1 + self._is_dual
        windows, delta = self._windows(pieces, step), self._options.min_delta
        rows = assign(windows, self._barcodes, delta, step, placed)
        hits = Hits(
            record=rows.record,
            pattern=rows.sample,
            start=rows.start,
            end=rows.end,
            errors=rows.errors,
            edge=np.zeros(len(rows.record), np.uint8),
        )
        return Matches(
            hits=hits,
            cigars=[b""] * len(hits),
            ambiguous=rows.ambiguous,
            tied=rows.shared,
        )

    def texts(self, pieces: Pieces, reads: Numbers) -> list[bytes]:
        """Return what stands where the barcodes of some reads are, + between those of both."""
        step = 2 if self._sources[pieces.source].is_paired else 1
        texts = []
        for windows, barcodes in zip(self._windows(pieces, step), self._barcodes, strict=True):
            begins = windows.begins[reads]
            ends = np.minimum(windows.ends[reads], begins + barcodes.lengths.max())
            places = zip(begins.tolist(), ends.tolist(), strict=True)
            texts.append([windows.letters[begin:end].tobytes() for begin, end in places])
        return list(map(b"+".join, zip(*texts, strict=True))) if self._is_dual else texts[0]

    def _windows(self, pieces: Pieces, step: int) -> tuple[BarcodeWindows, BarcodeWindows]:
        """Return where the barcodes of each read stand; `step` records are a read."""
        if self._options.index_reads == [HEADERS]:
            return self._in_headers(pieces, step)
        if self._options.index_reads:
            reads = len(pieces.table) // step
            index = pieces.index or (NO_READS,)
            one, other = (
                BarcodeWindows(each.letters, each.offsets[:reads], each.offsets[1 : reads + 1])
                for each in (index[0], index[-1])
            )
            return one, other
        places = 1 if self._options.within is None else ANYWHERE
        begins, ends = pieces.offsets[:-1], pieces.offsets[1:]
        one, other = (
            BarcodeWindows(pieces.letters, begins[first::step], ends[first::step], places)
            for first in (0, step - 1)
        )
        return one, other

    def _in_headers(self, pieces: Pieces, step: int) -> tuple[BarcodeWindows, BarcodeWindows]:
        """Return the index reads in the titles of reads. Raises InputError where there are none."""
        assert isinstance(pieces.text, TextInMemory)
        raw, borders = pieces.text.raw, list[tuple[int, ...]]()
        for read, name_end in enumerate(pieces.table[::step, NAME_END].tolist()):
            found = INDEX.match(raw.data, name_end)
            if not found or (self._is_dual and not found[2]):
                form = "1:N:0:ACGT+TGCA" if self._is_dual else "1:N:0:ACGT"
                problem = f"there is no index in the title, as in {form}"
                where = f"record {quoted(pieces.name(read * step))}"
                raise InputError(self._sources[pieces.source].files[0].path, problem, where)
            borders.append((*found.span(1), *found.span(2)))
        begin, end, other_begin, other_end = np.array(borders, np.int64).reshape(-1, 4).T.copy()
        return BarcodeWindows(raw, begin, end), BarcodeWindows(raw, other_begin, other_end)
