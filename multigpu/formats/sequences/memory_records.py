"""Records that a caller has in memory, as a source: tuples, objects of other packages, Arrow."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from multigpu.errors import InputError, printable_name, several
from multigpu.formats.sequences.alignment_records import PAIRED, characters, fields_of_alignment
from multigpu.formats.sequences.record_source import (
    PHRED_OFFSET,
    Fields,
    GivenRecords,
    RecordSource,
    bytes_of,
)
from multigpu.formats.tables.arrow import pyarrow, texts_of_binary
from multigpu.formats.tables.texts import Texts

if TYPE_CHECKING:
    import pyarrow as pa

FORM = ("name", "sequence", "quality", "flag")  # the last of alignments only

Reader = Callable[[Any, int], Fields]  # takes a record, and the quality character that means 0


@runtime_checkable
class ArrowStream(Protocol):
    """A table of pyarrow, polars, pandas, DuckDB …, by the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class MemoryRecords(RecordSource):
    """Records of a caller, which are taken once, by the thread that takes the spans.

    Its path is the name of the parameter; it is FASTQ where the first record has a quality.
    """

    def __init__(self, name: str, records: Iterable[Any]) -> None:
        items = iter(records)
        first = list(islice(items, 1))
        self._records = chain(first, items)
        self._read = _reader_of(first[0]) if first else None
        fields: Any = self._read(first[0], PHRED_OFFSET) if self._read else [*first, ()][0]
        has_quality = len(fields) > 2 and fields[2] is not None
        super().__init__(name, None, "none", "fastq" if has_quality else "fasta")
        self._form = FORM[: len(fields)] if self._read else FORM[: max(2, min(3, len(fields)))]
        self._has_mates = len(self._form) > 3 and bool(fields[-1] & PAIRED)

    @property
    def has_mates(self) -> bool:
        return self._has_mates

    def given(self, size: int, phred_offset: int) -> Iterator[GivenRecords]:
        found, read, form = self._records, self._read, len(self._form)
        if read is None:
            return self.in_pieces(found, form, size)
        return self.in_pieces((read(record, phred_offset) for record in found), form, size)

    def misfit(self, records: Sequence[Any], first: int) -> InputError:
        form = ", ".join(self._form)
        for number, record in enumerate(records, first):
            is_right = isinstance(record, tuple) and len(record) == len(self._form)
            try:
                every = [bytes_of(field) for field in record if is_right and field is not None]
            except (TypeError, UnicodeEncodeError):
                every = []
            if not every:
                problem = f"expected ({form}) as text; got {printable_name(repr(record))}"
                return InputError(self.path, problem, f"record {number} (from 0)")
        return super().misfit(records, first)


class ArrowRecords(RecordSource):
    """Records in a table with columns `name`, `sequence` and perhaps `quality`; not copied."""

    def __init__(self, name: str, table: ArrowStream) -> None:
        pa = pyarrow()
        # Before its version 25 Arrow crashed over streams of its own tables with views of texts.
        if isinstance(table, pa.Table):
            self._reader = table.to_reader()
        else:
            self._reader = pa.RecordBatchReader.from_stream(table)
        names = self._reader.schema.names
        if missing := [column for column in FORM[:2] if column not in names]:
            raise InputError(name, f"the table has no column {missing[0]}: {several(names)}")
        super().__init__(name, None, "none", "fastq" if "quality" in names else "fasta")

    def given(self, size: int, phred_offset: int) -> Iterator[GivenRecords]:
        fields = FORM[: 3 if self.layout == "fastq" else 2]
        for batch in self._reader:
            columns = [self._texts(batch.column(field), field) for field in fields]
            held = sum(int(texts.lengths.sum()) for texts in columns)
            count = max(1, size * batch.num_rows // (held + 1))
            for at in range(0, batch.num_rows, count):
                texts = Texts.joined([_part(texts, at, at + count) for texts in columns])
                form = (len(fields), -1)
                begins, lengths = texts.begins.reshape(form), texts.lengths.reshape(form)
                yield GivenRecords.of_fields(texts.raw, begins, lengths)

    def _texts(self, array: "pa.Array", column: str) -> Texts:
        """Return the texts of a column; empty ones where a name or a quality is null."""
        pa = pyarrow()
        try:
            array = array.cast(pa.large_binary())
        except pa.ArrowException as error:
            problem = f"the column {column} must have text; it is {array.type}"
            raise InputError(self.path, problem) from error
        if array.null_count and column == FORM[1]:
            raise InputError(self.path, f"the column {column} has nulls: {array.null_count:,}")
        return texts_of_binary(array.fill_null(b"") if array.null_count else array)


def _part(texts: Texts, begin: int, end: int) -> Texts:
    """Return some of the texts of a column of Arrow, in the part of the buffer that has them."""
    begins, lengths = texts.begins[begin:end], texts.lengths[begin:end]
    first, last = int(begins[0]), int(begins[-1] + lengths[-1])
    return Texts(texts.raw[first:last], begins - first, lengths)


def records_or_paths(given: Any, name: str) -> Any:
    """Return the source of the records that an argument has, or else the argument itself.

    name  of the parameter, by which messages call the records
    """
    if isinstance(given, ArrowStream):
        return ArrowRecords(name, given)
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | os.PathLike):
        return given
    items = iter(given)
    first = list(islice(items, 1))
    every = chain(first, items)
    is_record = first and (isinstance(first[0], tuple) or _reader_of(first[0]))
    return MemoryRecords(name, every) if is_record else every


# ---- objects of other packages ------------------------------------------------------------------


def _reader_of(record: Any) -> Reader | None:
    """Return what reads objects like this one; None for tuples and what is no record."""
    if isinstance(record, tuple | str | bytes | os.PathLike):
        return None
    if hasattr(record, "get_forward_sequence"):  # pysam.AlignedSegment
        return fields_of_alignment
    if hasattr(record, "letter_annotations"):  # Bio.SeqRecord
        return _fields_of_seq_record
    for quality in ("quality", "qualities"):  # pysam.FastxRecord, dnaio.SequenceRecord
        if hasattr(record, quality) and hasattr(record, "sequence"):
            fields = attrgetter("name", "sequence", quality)
            return lambda record, _: fields(record)
    return None


def _fields_of_seq_record(record: Any, phred_offset: int) -> Fields:
    values = record.letter_annotations.get("phred_quality")
    quality = None if values is None else bytes(values).translate(characters(phred_offset))
    return record.id, bytes(record.seq), quality
