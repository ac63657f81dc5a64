"""Parts of a scan: the rows of one span, as workers return them and as a journal keeps them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.tables.batch import Batch


@dataclass(frozen=True, kw_only=True)
class OutputNeeds:
    """Facts that an output needs of the workers.

    fmt      text format in which they render rows; None: rows stay columns
    cigars   whether rows have alignments also where no edits are searched
    records  whether parts list all records
    """

    fmt: str | None = None
    cigars: bool = False
    records: bool = False

    def __str__(self) -> str:
        """Return what a journal says of the rows in it."""
        if self.fmt is not None:
            return self.fmt
        more = {"cigar": self.cigars, "records": self.records}
        return "+".join(["columns", *(name for name, needed in more.items() if needed)])


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
class RecordList:
    """Records of a span that no other span has a piece of.

    names    bytes: their names, each with a line end after it
    lengths  int64[n]: their bases
    """

    names: bytes
    lengths: NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class RowStats:
    """Numbers and names of rows, kept when the rows are rendered as text.

    hits              number of rows
    mostly_ambiguous  rows with more ambiguous than unambiguous bases under the match
    sample_names      name of every sample that has rows, one a line
    """

    hits: int
    mostly_ambiguous: int
    sample_names: bytes

    @classmethod
    def of(cls, rows: Batch) -> "RowStats":
        is_mostly = 2 * rows.ambiguous.astype(np.int64) > rows.end - rows.start
        # Rows of a sample stand together.
        first = np.flatnonzero(np.diff(rows.sample_index, prepend=-2))
        names = b"".join([rows.sample[row] + b"\n" for row in first.tolist()])
        return cls(hits=len(rows), mostly_ambiguous=int(is_mostly.sum()), sample_names=names)


@dataclass(frozen=True, eq=False, kw_only=True)
class ScanPart:
    """Rows of one span. Samples are counted from the first record that begins in the span.

    source        number of the sample file
    begin, stop   bytes of the file that the part covers; begin -1: no record, or of FASTA no line
                  that is no header line of the span before
    records       records that begin in the span
    bases         bases that stand in the span
    longest       bases of the longest record or piece in the span
    rows          rows of the records that lie in the span alone: a batch, or text in the format of
                  the job
    stats         `RowStats` of `rows`
    lead          the rest of a record that began in an earlier span, or None
    tail          the last record, which may continue in the next span, or None
    listed        the records that lie in the span alone, where the output needs them, or None
    error         what stopped the scan in this span, or None
    illegal_lead  an illegal letter in the lead, or None: the record's name stands in another span
    """

    source: int
    begin: int
    stop: int
    records: int
    bases: int
    longest: int
    rows: Batch | bytes
    stats: RowStats
    lead: RecordPiece | None
    tail: RecordPiece | None
    listed: RecordList | None
    error: InputError | None
    illegal_lead: IllegalBase | None


JOURNAL_CLASSES = (ScanPart, RecordPiece, RecordList, RowStats, Batch, IllegalBase, InputError)
