"""Parts of a scan: what was found in one span, as workers return and a journal keeps it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.extracted import ExtractedRecords
from multigpu.workloads.scan.tally import Sums, Tally

ROW_BYTES = 200  # as text or as columns, most of them for the objects of its names


@dataclass(frozen=True, kw_only=True)
class IllegalBase:
    """A letter that is no base.

    piece     number of the record, or piece of a record, in the span
    position  in that piece
    """

    piece: int
    position: int
    letter: bytes


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordPiece:
    """Rows of a record that lies in several spans, from one of them.

    name   of the record; empty where its header stands in an earlier span
    bases  length of the piece
    rows   starts are counted from the first base of the piece
    edge   uint8[rows]: flags of rows that reach a border of the piece, as in
           `multigpu.kernels.scan.approximate.pieces`
    """

    name: bytes
    bases: int
    rows: Batch
    edge: NDArray[np.uint8]


@dataclass(frozen=True, eq=False, kw_only=True)
class RowStats:
    """Numbers and names of rows, whatever outputs keep of these.

    hits              number of rows
    mostly_ambiguous  rows with more ambiguous than unambiguous bases under the match
    sample_names      name of every sample that has rows, one a line; none where no output asks
    """

    hits: int
    mostly_ambiguous: int
    sample_names: bytes

    @classmethod
    def of(cls, rows: Batch, named: bool = True) -> "RowStats":
        """Return those of a batch, whose samples may have no names that anyone asks for."""
        is_mostly = 2 * rows.ambiguous.astype(np.int64) > rows.end - rows.start
        return cls(
            hits=len(rows),
            mostly_ambiguous=int(is_mostly.sum()),
            sample_names=rows.sample_names() if named else b"",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ScanPart:
    """Findings of one span. Samples count from the first record that begins in the span.

    source        number of the sample file
    number        of the span in the file
    ended         whether the span is behind the last one of its file, as a worker read it
    begin, stop   bytes of the file that the part covers; begin -1: no record, or of FASTA no line
                  that is no header line of the span before
    mate_begin, mate_stop  the same of the second file of a pair, else 0
    records       records that begin in the span
    bases         bases that stand in the span
    longest       bases of the longest record or piece in the span
    payloads      what each output of the job took of the records that lie in the span alone, and
                  of their rows; none at all where one of the outputs cannot have them
    stats         `RowStats` of these rows
    lead          the rest of a record that began in an earlier span, or None
    tail          the last record, which may continue in the next span, or None
    error         what stopped the scan in this span, or None
    left_out      records that were read and are none of the samples
    illegal_lead  an illegal letter in the lead, or None: the record's name stands in another span
    """

    source: int
    number: int
    ended: bool
    begin: int
    stop: int
    mate_begin: int
    mate_stop: int
    records: int
    bases: int
    longest: int
    payloads: tuple[Any, ...]
    stats: RowStats
    lead: RecordPiece | None
    tail: RecordPiece | None
    error: InputError | None
    illegal_lead: IllegalBase | None
    left_out: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of memory that the rows and records take, about."""
        texts = (each.nbytes for each in self.payloads if isinstance(each, ExtractedRecords))
        return ROW_BYTES * self.stats.hits + sum(texts)


JOURNAL_CLASSES = (
    ScanPart, RecordPiece, RowStats, Batch, Tally, Sums, ExtractedRecords, IllegalBase, InputError,
)  # fmt: skip
