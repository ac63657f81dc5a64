"""Rows of a scan as columns, which the lines of all text formats are made of."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.text.table_lines import add_number_lengths, put_numbers, put_texts
from multigpu.workloads.scan.batch import Batch

if TYPE_CHECKING:
    from multigpu.formats.sequences.signatures import Signatures

BLOCK = 1 << 14  # rows that stay in the processor's cache

Columns = tuple[str, ...]  # some of `row_sink.REQUESTED`


@dataclass(frozen=True, eq=False, kw_only=True)
class ScanRows:
    """Rows to make lines of.

    requested  names of the columns on request
    files      paths of the samples, by their numbers
    is_first   bool[n]: whether a row is the first one of its sample
    is_lone    bool[n]: whether it is of a pair of which the mate has no row
    """

    batch: Batch
    signatures: "Signatures"
    requested: Columns
    files: Sequence[str]
    is_first: NDArray[np.bool_]
    is_lone: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        batch: Batch,
        signatures: "Signatures",
        requested: Columns,
        files: Sequence[str] = (),
    ) -> "ScanRows":
        """Return the rows of a batch, which must have all rows of each of its samples."""
        is_first = np.diff(batch.sample_index, prepend=-2) != 0
        is_lone = batch.mate > 0
        if is_lone.any():
            is_lone = ~np.isin(batch.sample_index ^ 1, batch.sample_index)
        return cls(
            batch=batch,
            signatures=signatures,
            requested=requested,
            files=files,
            is_first=is_first,
            is_lone=is_lone,
        )

    def __len__(self) -> int:
        return len(self.batch)

    def blocks(self, size: int = 0) -> Iterator["ScanRows"]:
        """Yield the rows, so many at a time, or as many as stay in the processor's cache."""
        size = size or BLOCK
        for at in range(0, len(self), size):
            some = slice(at, at + size)
            yield replace(
                self,
                batch=self.batch[some],
                is_first=self.is_first[some],
                is_lone=self.is_lone[some],
            )


# ---- lines ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of texts, of which some may stand in many rows.

    distinct  all of them
    which     intp[n]: index into `distinct` for each row
    """

    distinct: Sequence[bytes]
    which: NDArray[np.intp]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Self:
        """Return a column with one text for each row."""
        return cls(texts, np.arange(len(texts)))

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """Places where the distinct texts begin, one after the other, and where the last ends."""
        return np.cumsum([0, *map(len, self.distinct)], dtype=np.int64)


# A column of a line: the same bytes in every row, whole numbers, or texts.
Column = bytes | NDArray[np.integer[Any]] | TextColumn


def lines_of(count: int, *columns: Column) -> bytes:
    """Return `count` lines, made of these columns from left to right; the last ends the line."""
    ready = [_ready(column, count) for column in columns]
    lengths = np.zeros(count, np.int64)
    for column in ready:
        if isinstance(column, TextColumn):
            lengths += np.diff(column.begins)[column.which]
        else:
            add_number_lengths(column, lengths)
    cursors = np.cumsum(lengths) - lengths
    out = np.empty(int(lengths.sum()), np.uint8)
    for column in ready:
        if isinstance(column, TextColumn):
            raw = np.frombuffer(b"".join(column.distinct), np.uint8)
            put_texts(raw, column.begins, column.which, out, cursors)
        else:
            put_numbers(column, out, cursors)
    return out.tobytes()


def delimited(count: int, separator: bytes, columns: Sequence[Column]) -> bytes:
    """Return `count` lines of these columns with the separator between them."""
    line = [each for column in columns for each in (separator, column)]
    return lines_of(count, *line[1:], b"\n")


def _ready(column: Column, count: int) -> TextColumn | NDArray[np.int64]:
    """Return a column of `count` rows as texts, or as numbers of the type that is compiled for."""
    if isinstance(column, np.ndarray):
        return column.astype(np.int64)
    return TextColumn([column], np.zeros(count, np.intp)) if isinstance(column, bytes) else column


# ---- columns on request -------------------------------------------------------------------------

TEXTS = ("file", "bulge", "cigar")  # the others are numbers
SEPARATORS = bytes.maketrans(b"\t\r\n", b"   ")


def on_request(rows: ScanRows, name: str) -> Column:
    """Return a column on request."""
    batch = rows.batch
    if name == "file":
        return TextColumn(names_of_files(rows.files), batch.source.astype(np.intp))
    if name == "bulge":
        return bulges_of(rows, b"")
    if name == "cigar":
        return TextColumn.of(batch.cigar)
    if name == "bulge_size":
        return np.abs(batch.bulge)
    numbers: NDArray[np.integer[Any]]
    numbers = getattr(batch, "errors" if name in ("mismatches", "edits") else name)
    return numbers.astype(np.int32)


def names_of_files(files: Sequence[str]) -> list[bytes]:
    """Return the paths of files as they stand in a table, without its separators."""
    return [os.fsencode(file).translate(SEPARATORS) for file in files]


# ---- columns that several formats have ----------------------------------------------------------


def samples_of(rows: ScanRows) -> TextColumn:
    """Return the names of the samples."""
    begins = rows.is_first.copy()
    begins[:1] = True
    names = [rows.batch.sample[i] for i in np.flatnonzero(begins).tolist()]
    return TextColumn(names, np.cumsum(begins) - 1)


def signatures_of(rows: ScanRows) -> TextColumn:
    """Return the names of the signatures."""
    numbers, which = np.unique(rows.batch.signature, return_inverse=True)
    return TextColumn([rows.signatures.names[i] for i in numbers.tolist()], which)


def strands_of(rows: ScanRows) -> TextColumn:
    """Return the strand of each row, + or -."""
    return TextColumn([b"+", b"-"], rows.batch.reverse.astype(np.intp))


def bulges_of(rows: ScanRows, none: bytes) -> TextColumn:
    """Return RNA for bases of the signature alone, DNA for those of the sample alone, or `none`."""
    return TextColumn([b"RNA", none, b"DNA"], np.sign(rows.batch.bulge).astype(np.intp) + 1)


def scores_of(rows: ScanRows, show: Callable[[float], str], missing: bytes) -> TextColumn:
    """Return the scores as texts, NaN as `missing`."""
    # + 0.0, so that there is no -0.0 beside 0.0.
    return numbers_as_texts(rows.batch.score + 0.0, show, missing)


def numbers_as_texts(
    values: NDArray[np.float64], show: Callable[[float], str] = repr, missing: bytes = b""
) -> TextColumn:
    """Return numbers as texts, NaN as `missing`."""
    distinct, which = np.unique(values, return_inverse=True)
    texts = [missing if math.isnan(each) else show(each).encode() for each in distinct.tolist()]
    return TextColumn(texts, which)


def decoded(names: Sequence[bytes], encoding: str) -> list[str]:
    """Return names as text; they hold no line ends."""
    # All at once: a call for each name takes longer.
    return b"\n".join(names).decode(encoding, "replace").split("\n") if names else []
