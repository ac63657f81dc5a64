"""Sources whose records come one by one, as objects, or as columns: nothing is parsed."""

import re
from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, Unreadable, quoted
from multigpu.formats.names import LONGEST_NAME, name_problem
from multigpu.formats.sequences.records import empty_table
from multigpu.formats.sequences.spans import BlockSpan
from multigpu.formats.storage.sources import Block, Content, Source
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text.fastq import HIGHEST_QUALITY
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
class RecordColumns:
    """Records as columns of n texts each.

    names      up to the first white space
    bases      letters, as they were sequenced
    qualities  characters; without any where a record has no quality
    mates      int8[n]: 1 or 2 where a record is of a pair, else 0; None where there are no pairs
    left_out   number of records that were read and are none of these
    """

    names: Texts
    bases: Texts
    qualities: Texts | None = None
    mates: NDArray[np.int8] | None = None
    left_out: int = 0

    @classmethod
    def of(cls, records: Sequence[Fields]) -> "RecordColumns":
        """Return the fields of records as columns; alignments that are not primary are left out.

        Raises TypeError and ValueError, and UnicodeEncodeError, where a record has other fields.
        """
        left_out, mates = 0, None
        form = len(records[0])
        if form == FLAGGED:
            primary = [record for record in records if not record[-1] & NOT_PRIMARY]
            left_out, records = len(records) - len(primary), primary
        # `zip` of many records takes ten times as long.
        columns = [list(map(itemgetter(number), records)) for number in range(form)]
        if form == FLAGGED:
            flags = np.array(columns.pop(), np.int64)
            mates = np.select([flags & FIRST_OF_PAIR > 0, flags & SECOND_OF_PAIR > 0], [1, 2], 0)
        return cls(
            names=cut_names(_texts_of(columns[0])),
            bases=_texts_of(columns[1]),
            qualities=_texts_of(columns[2]) if len(columns) > 2 else None,
            mates=None if mates is None or not mates.any() else mates.astype(np.int8),
            left_out=left_out,
        )

    @property
    def size(self) -> int:
        """Bytes of all texts."""
        held = (self.names, self.bases, self.qualities)
        return sum(int(texts.lengths.sum()) for texts in held if texts)

    def span(self, source: int, number: int) -> BlockSpan:
        """Return the records as a block of a source, by their numbers."""
        names, letters, values = self.names, self.bases, self.qualities
        table = empty_table(len(names))
        table[:, NAME] = names.begins
        table[:, NAME_END] = names.begins + names.lengths
        table[:, BASES] = len(names.raw) + letters.begins
        table[:, LENGTH] = letters.lengths
        table[:, QUALITY] = -1
        table[:, WRAPPED] = 0
        raw = [names.raw, letters.raw]
        if values is not None:
            begins = len(names.raw) + len(letters.raw) + values.begins
            table[:, QUALITY] = np.where(values.lengths > 0, begins, -1)
            raw.append(values.raw)
        text = np.concatenate(raw)
        return BlockSpan(source, number, text, table, mates=self.mates, left_out=self.left_out)

    def error(self, path: str, first: int, phred_offset: int) -> InputError | None:
        """Return the error for the first wrong record; the records count from `first` on."""
        names, bases, values = self.names, self.bases, self.qualities
        # All at once: a look at each record takes longer than the search.
        if (
            _lie_in(names.raw, 0x20, 0x7E)
            and _lie_in(names.lengths, 1, LONGEST_NAME)
            and _lie_in(bases.raw, ord("A"), ord("z"))
            and (values is None or _lie_in(values.raw, phred_offset, HIGHEST_QUALITY))
            and (values is None or _are_as_long(values.lengths, bases.lengths))
        ):
            return None
        qualities = values.each() if values else [b""] * len(names)
        fields = zip(names.each(), bases.each(), qualities, strict=True)
        for number, (name, letters, quality) in enumerate(fields, first):
            if problem := _problem(name, letters, quality, phred_offset):
                where = quoted(name) if name else f"{number} (from 0)"
                return InputError(path, problem, f"record {where}")
        return None


def _lie_in(values: NDArray[Any], low: int, high: int) -> bool:
    return not len(values) or bool(values.min() >= low and values.max() <= high)


def _are_as_long(values: NDArray[np.int64], bases: NDArray[np.int64]) -> bool:
    return bool(((values == bases) | (values == 0)).all())


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


def cut_names(names: Texts) -> Texts:
    """Return names up to their first space or tab."""
    if not ((names.raw == ord(" ")) | (names.raw == ord("\t"))).any():
        return names
    lengths = [len(SPACE.split(name, 1)[0]) for name in names.each()]
    return Texts(names.raw, names.begins, np.array(lengths, np.int64))


def _texts_of(column: Sequence[Any]) -> Texts:
    """Return texts as they are in files; None as an empty one. Raises TypeError for others."""
    # All at once: a look at each text takes longer. What is no `str` ends the attempt.
    with suppress(TypeError):
        if (text := "".join(column)).isascii():
            lengths = np.fromiter(map(len, column), np.int64, len(column))
            return Texts.one_after_the_other(np.frombuffer(text.encode(), np.uint8), lengths)
    if set(map(type, column)) == {bytes}:
        return Texts.of(column)
    return Texts.of([b"" if each is None else bytes_of(each) for each in column])


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
        for columns in self._checked(size, PHRED_OFFSET):
            form, texts = b">%b\n%b\n", [columns.names.each(), columns.bases.each()]
            if self.layout != "fasta" and columns.qualities is not None:
                lacking = columns.qualities.lengths < columns.bases.lengths
                if lacking.any():
                    problem = "has no qualities, which all reads in turns need: make FASTA of them"
                    name = columns.names.each()[int(lacking.argmax())]
                    raise InputError(self.path, problem, f"record {quoted(name)}")
                form, texts = b"@%b\n%b\n+\n%b\n", [*texts, columns.qualities.each()]
            lines = [form % fields for fields in zip(*texts, strict=True)]
            yield np.frombuffer(b"".join(lines), np.uint8)

    def stream(self, size: int, ahead: bool = True) -> Content:
        """Return `blocks`: no thread reads ahead, as an iterator may be bound to its caller's."""
        return self.blocks(size)

    @abstractmethod
    def columns(self, size: int, phred_offset: int) -> Iterator[RecordColumns]:
        """Yield the records in columns of about `size` bytes.

        phred_offset  the quality character that means 0

        Raises InputError for a wrong record, after those before it.
        """

    def misfit(self, records: Sequence[Fields], first: int) -> InputError:
        """Return the error for the first record with other fields; they count from `first` on."""
        return InputError(self.path, f"cannot be read from record {first} (from 0) on")

    def in_columns(self, found: Iterator[Fields], form: int, size: int) -> Iterator[RecordColumns]:
        """Yield records of `form` fields each, in columns of about `size` bytes.

        Raises InputError for a record with other fields, after those before it.
        """
        count, first = FIRST_RECORDS if size >= FIRST_BYTES else 1, 0
        while records := list(islice(found, count)):
            try:
                are_tuples = all(issubclass(kind, tuple) for kind in set(map(type, records)))
                if not are_tuples or set(map(len, records)) != {form}:
                    raise TypeError
                columns = RecordColumns.of(records)
            except (TypeError, ValueError) as error:
                raise self.misfit(records, first) from error
            yield columns
            first += len(records)
            # Records may become longer: not more than twice as many as before.
            count = max(1, min(2 * count, size * len(records) // (columns.size + 1)))

    def spans(self, source: int, size: int, phred_offset: int) -> Iterator[BlockSpan]:
        """Yield the records as blocks of the source of this number; the last may be an error."""
        number = 0
        try:
            for columns in self._checked(size, phred_offset):
                yield columns.span(source, number)
                number += 1
        except Unreadable:
            raise  # a journal must not know of it
        except InputError as error:
            yield BlockSpan(source, number, error=error)

    def _checked(self, size: int, phred_offset: int) -> Iterator[RecordColumns]:
        """Yield the columns. Raises InputError for a wrong record, after the columns before it."""
        first = 0
        for columns in self.columns(size, phred_offset):
            if error := columns.error(self.path, first, phred_offset):
                raise error
            yield columns
            first += len(columns.names)
