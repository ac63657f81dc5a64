"""Rows of a scan as TSV, CSV and BED; the columns of which lines and tables of Arrow are made."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.scan.batch import Batch

if TYPE_CHECKING:
    from multigpu.formats.sequences.signatures import Signatures

Columns = tuple[str, ...]  # some of `row_sink.REQUESTED`


@dataclass(frozen=True, eq=False)
class ScanRows:
    """Rows to make lines of: all rows of each of their samples.

    requested  names of the columns on request
    files      paths of the samples, by their numbers
    """

    batch: Batch
    signatures: "Signatures"
    requested: Columns
    files: Sequence[str] = ()


# A column of a line: the same bytes in every row, whole numbers, or texts.
Column = bytes | NDArray[np.integer[Any]] | Sequence[bytes]


def lines_of(*columns: Column) -> bytes:
    """Return a line for each row, made of these columns from left to right; the last ends it."""
    line, values = b"", list[Sequence[Any]]()
    for column in columns:
        if isinstance(column, bytes):
            line += column.replace(b"%", b"%%")
        elif isinstance(column, np.ndarray):
            line += b"%d"
            values.append(column.tolist())
        else:
            line += b"%b"
            values.append(column)
    return b"".join([line % row for row in zip(*values, strict=True)])


def delimited(separator: bytes, columns: Sequence[Column]) -> bytes:
    """Return lines of these columns with the separator between them."""
    return lines_of(*[each for column in columns for each in (separator, column)][1:], b"\n")


# ---- columns on request -------------------------------------------------------------------------

TEXTS = ("file", "bulge", "cigar")  # the others are numbers
SEPARATORS = bytes.maketrans(b"\t\r\n", b"   ")


def on_request(rows: ScanRows, name: str) -> Column:
    """Return a column on request."""
    batch = rows.batch
    if name == "file":
        return texts_of(names_of_files(rows.files), batch.source)
    if name == "bulge":
        return bulges_of(rows, b"")
    if name == "cigar":
        return batch.cigar
    if name == "bulge_size":
        return np.abs(batch.bulge)
    numbers: NDArray[np.integer[Any]]
    numbers = getattr(batch, "errors" if name in ("mismatches", "edits") else name)
    return numbers.astype(np.int32)


def names_of_files(files: Sequence[str]) -> list[bytes]:
    """Return the paths of files as they stand in a table, without its separators."""
    return [os.fsencode(file).translate(SEPARATORS) for file in files]


# ---- columns that several formats have ----------------------------------------------------------


def texts_of(distinct: Sequence[bytes], which: NDArray[np.integer[Any]]) -> list[bytes]:
    """Return the text of each row by its number."""
    return [distinct[i] for i in which.tolist()]


def signatures_of(rows: ScanRows) -> list[bytes]:
    """Return the names of the signatures."""
    return texts_of(rows.signatures.names, rows.batch.signature)


def strands_of(rows: ScanRows) -> list[bytes]:
    """Return the strand of each row, + or -."""
    return [b"-" if is_reverse else b"+" for is_reverse in rows.batch.reverse.tolist()]


def bulges_of(rows: ScanRows, none: bytes) -> list[bytes]:
    """Return RNA for bases of the signature alone, DNA for those of the sample alone, or `none`."""
    return texts_of([b"RNA", none, b"DNA"], np.sign(rows.batch.bulge) + 1)


def scores_of(rows: ScanRows, show: Callable[[float], str], missing: bytes) -> list[bytes]:
    """Return the scores as texts, NaN as `missing`."""
    return numbers_as_texts(rows.batch.score, show, missing)


def numbers_as_texts(
    values: NDArray[np.float64], show: Callable[[float], str] = repr, missing: bytes = b""
) -> list[bytes]:
    """Return numbers as texts, NaN as `missing`."""
    # + 0.0, so that there is no -0.0 beside 0.0.
    numbers = (values + 0.0).tolist()
    # Most are there several times.
    texts = {each: missing if math.isnan(each) else show(each).encode() for each in {*numbers}}
    return [texts[each] for each in numbers]


def decoded(names: Sequence[bytes], encoding: str) -> list[str]:
    """Return names as text; they hold no line ends."""
    # All at once: a call for each name takes longer.
    return b"\n".join(names).decode(encoding, "replace").split("\n") if names else []


# ---- formats of text ---------------------------------------------------------------------------

COLUMNS = ("sample", "signature", "start", "end", "strand", "score")


def titles(requested: Columns, separator: str) -> str:
    """Return the line of names above those of `separated`."""
    return separator.join([*COLUMNS, *requested]) + "\n"


def separated(rows: ScanRows, separator: bytes) -> bytes:
    samples, signatures = rows.batch.sample, signatures_of(rows)
    start, end, scores = rows.batch.start, rows.batch.end, scores_of(rows, repr, b"")
    return _delimited(rows, separator, samples, signatures, start, end, strands_of(rows), scores)


def bed(rows: ScanRows) -> bytes:
    start, end, signatures = rows.batch.start, rows.batch.end, signatures_of(rows)
    scores = np.clip(np.rint(np.nan_to_num(rows.batch.score) * 10), 0, 1000).astype(np.int64)
    return _delimited(
        rows, b"\t", rows.batch.sample, start, end, signatures, scores, strands_of(rows)
    )


def _delimited(rows: ScanRows, separator: bytes, *columns: Column) -> bytes:
    """Return lines with these columns and those on request, the separator between them."""
    line = [*columns, *(on_request(rows, name) for name in rows.requested)]
    if separator == b",":
        line = [list(map(_csv_name, c)) if isinstance(c, list) else c for c in line]
    return delimited(separator, line)


def _csv_name(name: bytes) -> bytes:
    """Return a name as in RFC 4180: in quotes where it needs them, with quotes inside doubled."""
    if b"," in name or b'"' in name or b"\r" in name:
        return b'"' + name.replace(b'"', b'""') + b'"'
    return name
