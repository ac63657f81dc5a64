"""Sources whose records come one by one, as objects, or as columns: no text is parsed."""

import re
from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, Unreadable, quoted
from multigpu.formats.names import name_problem
from multigpu.formats.sequences.records import empty_table
from multigpu.formats.sequences.spans import BlockSpan
from multigpu.formats.storage.sources import Block, Content, Source
from multigpu.formats.tables.arrow import pyarrow, texts_of_binary
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text.fastq import HIGHEST_QUALITY, find_wrong
from multigpu.kernels.compiled.text.records import (
    BASES,
    LENGTH,
    NAME,
    NAME_END,
    QUALITY,
    WRAPPED,
)

# Name, bases and quality, all str or bytes, the quality None for none; SAM flags of alignments.
Fields = tuple[Any, ...]

FLAGGED = 4  # fields of an alignment
FIRST_OF_PAIR, SECOND_OF_PAIR, NOT_PRIMARY = 0x40, 0x80, 0x100 | 0x800  # SAM flags
PHRED_OFFSET = 33  # of text that is made here
FIRST_RECORDS, FIRST_BYTES = 64, 1 << 16  # in a first block, of a size from which on
NO_BASE = re.compile(rb"[^A-Za-z]")  # what no search has to see
SPACE = re.compile(rb"[ \t]")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GivenRecords:
    """Records that were given as texts.

    text       uint8[size] with all names, bases, as they were sequenced, and qualities
    table      int64[n, 6], as in `multigpu.kernels.compiled.text.records`
    qualities  int64[n]: the lengths that the qualities have; 0 for none
    mates      int8[n]: 1 or 2 where a record is of a pair, else 0; None where there are no pairs
    left_out   number of records that were read and are none of these
    """

    text: NDArray[np.uint8]
    table: NDArray[np.int64]
    qualities: NDArray[np.int64]
    mates: NDArray[np.int8] | None = None
    left_out: int = 0

    @classmethod
    def of(cls, records: Sequence[Fields], form: int) -> "GivenRecords":
        """Return records of `form` fields each; alignments that are not primary are left out.

        Raises TypeError and ValueError, and UnicodeEncodeError, where a record has other fields.
        """
        left_out, mates = 0, None
        if form == FLAGGED:
            primary = [record for record in records if not record[-1] & NOT_PRIMARY]
            left_out = len(records) - len(primary)
            flags = np.array([record[-1] for record in primary], np.int64)
            mates = np.select([flags & FIRST_OF_PAIR > 0, flags & SECOND_OF_PAIR > 0], [1, 2], 0)
            mates = mates.astype(np.int8) if mates.any() else None
            records, form = [record[:-1] for record in primary], form - 1
        texts = _texts_of(records, form)
        begins, lengths = (each.reshape(-1, form).T for each in (texts.begins, texts.lengths))
        return cls.of_fields(texts.raw, begins, lengths, mates=mates, left_out=left_out)

    @classmethod
    def of_fields(cls, text: Any, begins: Any, lengths: Any, **more: Any) -> "GivenRecords":
        """Return records by where names, bases and perhaps qualities are, int64[form, n]."""
        form, count = begins.shape
        qualities = lengths[2] if form > 2 else np.zeros(count, np.int64)
        table = empty_table(count)
        table[:, NAME], table[:, NAME_END] = begins[0], begins[0] + lengths[0]
        table[:, BASES], table[:, LENGTH] = begins[1], lengths[1]
        table[:, QUALITY] = np.where(qualities > 0, begins[-1], -1)
        table[:, WRAPPED] = 0
        return cls(text=text, table=table, qualities=qualities, **more)

    def check(self, path: str, first: int, phred_offset: int) -> InputError | None:
        """Cut all names at their first white space; return the error for the first wrong record.

        The records count from `first` on.
        """
        unlike = (self.qualities != self.table[:, LENGTH]) & (self.qualities > 0)
        fit = int(unlike.argmax()) if unlike.any() else len(unlike)
        wrong = int(find_wrong(self.text, self.table[:fit], phred_offset))
        if wrong == len(self.table):
            return None
        name, letters, values = self.each()[wrong]
        name = SPACE.split(name, 1)[0]
        where = quoted(name) if name else f"{first + wrong} (from 0)"
        return InputError(path, _problem(name, letters, values, phred_offset), f"record {where}")

    def each(self) -> list[tuple[bytes, bytes, bytes]]:
        """Return name, bases and quality of every record."""
        raw = self.text.tobytes()
        rows = zip(*self.table.T[: QUALITY + 1].tolist(), self.qualities.tolist(), strict=True)
        return [
            (raw[name:name_end], raw[bases : bases + length], raw[quality : quality + count])
            for name, name_end, bases, length, quality, count in rows
        ]


def _problem(name: bytes, bases: bytes, qualities: bytes, phred_offset: int) -> str:
    """Return what is wrong with a record; empty for nothing."""
    if qualities and len(qualities) != len(bases):
        return f"the sequence has {len(bases)} bases, the quality has {len(qualities)} characters"
    if found := NO_BASE.search(bases):
        return f"{quoted(found[0])} at position {found.start()} (from 0) is not a base"
    for position, value in enumerate(qualities):
        if not phred_offset <= value <= HIGHEST_QUALITY:
            where = f"{quoted(bytes([value]))} at position {position} (from 0)"
            return f"{where} is no quality from offset {phred_offset}"
    return name_problem(name) if name else "the name is empty"


def _texts_of(records: Sequence[Fields], form: int) -> Texts:
    """Return all fields, each str, bytes or None for an empty one, as they are in files.

    Raises TypeError and ValueError where a record has others, or another number.
    """
    pa = pyarrow()
    kind = pa.large_list(pa.large_binary())
    try:
        found = pa.array(records, kind)
    except UnicodeEncodeError:  # bytes of a file that are no UTF-8
        texts = [[field and bytes_of(field) for field in record] for record in records]
        found = pa.array(texts, kind)
    if (np.diff(found.offsets.to_numpy()) != form).any():
        raise ValueError("records of other forms")
    return texts_of_binary(found.values)


def bytes_of(text: Any) -> bytes:
    """Return a text as bytes. Raises TypeError for anything else."""
    return text if isinstance(text, bytes) else str.encode(text, "utf-8", "surrogateescape")


class RecordSource(Source):
    """A source of records, which is read from its beginning, as blocks of whole records."""

    @property
    def has_ranges(self) -> bool:
        return False

    def blocks(self, size: int) -> Generator[Block]:
        """Yield the records as text, for what parses it: FASTQ, or FASTA without qualities."""
        is_fasta = self.layout == "fasta"
        form, kept = (b">%b\n%b\n", 2) if is_fasta else (b"@%b\n%b\n+\n%b\n", 3)
        for given in self._checked(size, PHRED_OFFSET):
            records = given.each()
            lacking = given.qualities < given.table[:, LENGTH]
            if lacking.any() and not is_fasta:
                problem = "has no qualities, which all reads in turns need: make FASTA of them"
                name = records[int(lacking.argmax())][0]
                raise InputError(self.path, problem, f"record {quoted(name)}")
            yield np.frombuffer(b"".join([form % fields[:kept] for fields in records]), np.uint8)

    def stream(self, size: int, ahead: bool = True) -> Content:
        """Return `blocks`: no thread reads ahead, as an iterator may be bound to its caller's."""
        return self.blocks(size)

    @abstractmethod
    def given(self, size: int, phred_offset: int) -> Iterator[GivenRecords]:
        """Yield the records in pieces of about `size` bytes.

        phred_offset  the quality character that means 0

        Raises InputError for a wrong record, after those before it.
        """

    def misfit(self, records: Sequence[Fields], first: int) -> InputError:
        """Return the error for the first record with other fields; they count from `first` on."""
        return InputError(self.path, f"cannot be read from record {first} (from 0) on")

    def in_pieces(self, found: Iterator[Fields], form: int, size: int) -> Iterator[GivenRecords]:
        """Yield records of `form` fields each, in pieces of about `size` bytes.

        Raises InputError for a record with other fields, after those before it.
        """
        count, first = FIRST_RECORDS if size >= FIRST_BYTES else 1, 0
        while records := list(islice(found, count)):
            try:
                are_tuples = all(issubclass(kind, tuple) for kind in set(map(type, records)))
                if not are_tuples:
                    raise TypeError
                given = GivenRecords.of(records, form)
            except (TypeError, ValueError) as error:
                raise self.misfit(records, first) from error
            yield given
            first += len(records)
            # Records may become longer: not more than twice as many as before.
            count = max(1, min(2 * count, size * len(records) // (len(given.text) + 1)))

    def spans(self, source: int, size: int, phred_offset: int) -> Iterator[BlockSpan]:
        """Yield the records as blocks of the source of this number; the last may be an error."""
        number = 0
        try:
            for given in self._checked(size, phred_offset):
                mates, left_out = given.mates, given.left_out
                yield BlockSpan(source, number, given.text, given.table, None, mates, left_out)
                number += 1
        except Unreadable:
            raise  # a journal must not know of it
        except InputError as error:
            yield BlockSpan(source, number, error=error)

    def _checked(self, size: int, phred_offset: int) -> Iterator[GivenRecords]:
        """Yield the records. Raises InputError for a wrong one, after those before its piece."""
        first = 0
        for given in self.given(size, phred_offset):
            if error := given.check(self.path, first, phred_offset):
                raise error
            yield given
            first += len(given.table)
