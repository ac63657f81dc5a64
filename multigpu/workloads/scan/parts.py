"""Parts of a scan: what was found in one span, as workers return and a journal keeps it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.journal import NOT_KEPT
from multigpu.errors import InputError, UsageError, option
from multigpu.formats.storage.many_outputs import Piece
from multigpu.kernels.compiled.text.records import mask_records, trim_records
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.sink import RecordTexts
from multigpu.workloads.scan.tally import Sums, Tally

ROW_BYTES = 200  # as text or as columns, most of them for the objects of its names


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
        some = np.flatnonzero(rows.ambiguous)
        is_mostly = 2 * rows.ambiguous[some].astype(np.int64) > rows.end[some] - rows.start[some]
        return cls(
            hits=len(rows),
            mostly_ambiguous=int(is_mostly.sum()),
            sample_names=rows.sample_names() if named else b"",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ExtractedRecords:
    """Records of a span for --matched and --unmatched, in the order of the files that they go to.

    One may go to several. A journal keeps which records these are. Their text is read again.

    files    int64[f]      numbers of the files, ascending
    borders  int64[f + 1]  the first record of each file among all, and their number
    records  int32[k]      numbers of the records in the span
    kept     int64[k, 2]   bases of each record that are kept; int64[0, 2]: all
    masked   int64[m, 3]   record (0 to k), begin and end of bases that N is written over
    content  uint8[b]      text of the records
    edges    int64[f + 1]  where the text for each file begins in it, and ends

    Raises ValueError otherwise: what is compiled does not look where it reads.
    """

    files: NDArray[np.int64]
    borders: NDArray[np.int64]
    records: NDArray[np.int32]
    kept: NDArray[np.int64]
    masked: NDArray[np.int64]
    content: NDArray[np.uint8] | None = field(default=None, metadata=NOT_KEPT)
    edges: NDArray[np.int64] | None = field(default=None, metadata=NOT_KEPT)

    def __post_init__(self) -> None:
        count, long = len(self.records), np.int64
        for array, dtype, shape in (
            (self.files, long, (len(self.files),)),
            (self.borders, long, (len(self.files) + 1,)),
            (self.records, np.int32, (count,)),
            (self.kept, long, (count if len(self.kept) else 0, 2)),
            (self.masked, long, (len(self.masked), 3)),
        ):
            if array.dtype != dtype or array.shape != shape:
                raise ValueError(f"{array.dtype}{list(array.shape)} is not about {count} records")
        for numbers, most in ((self.borders, count), (self.masked[:, 0], count - 1)):
            if len(numbers) and not 0 <= numbers.min() <= numbers.max() <= most:
                raise ValueError(f"what is about {count} records names others")
        if self.records.min(initial=0) < 0:
            raise ValueError("records count from 0")

    def read(self, texts: RecordTexts) -> "ExtractedRecords":
        """Return the same with its content.

        Raises InputError where a file cannot be read, and UsageError where a journal lies.
        """
        begins, ends = texts.borders()
        if self.records.max(initial=-1) >= len(begins):
            problem = f"the journal of this run names records beyond the {len(begins):,} that are"
            raise UsageError(f"{problem} there; start over, without {option('resume')}")
        out, offsets = texts.text.copied(begins, ends, self.records)
        if len(self.kept):
            trim_records(out, offsets, self.kept)
        if len(self.masked):
            mask_records(out, offsets, *self.masked.T.copy())
        return replace(self, content=out[: offsets[-1]], edges=offsets[self.borders])

    @property
    def nbytes(self) -> int:
        """Bytes of the content."""
        return 0 if self.content is None else self.content.nbytes

    def pieces(self) -> Iterator[Piece]:
        """Yield the text for each file that gets some."""
        assert self.content is not None
        assert self.edges is not None
        text, edges = self.content.data, self.edges.tolist()
        for at, number in enumerate(self.files.tolist()):
            yield number, text[edges[at] : edges[at + 1]]


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
    illegal_lead  position and letter in the lead that is no base, or None: the record's name stands
                  in another span
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
    illegal_lead: tuple[int, bytes] | None
    left_out: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of memory that the rows and records take, about."""
        texts = (each.nbytes for each in self.payloads if isinstance(each, ExtractedRecords))
        return ROW_BYTES * self.stats.hits + sum(texts)


JOURNAL_CLASSES = (
    ScanPart, RecordPiece, RowStats, Batch, Tally, Sums, ExtractedRecords, InputError,
)  # fmt: skip
