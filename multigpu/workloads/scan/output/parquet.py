"""Rows of a scan as tables of Arrow and Parquet files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.tables.arrow import numbers, pyarrow, strings
from multigpu.formats.tables.parquet import COMPRESSED_INSIDE, ROW_GROUP, RowGroups
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.output.columns import (
    BULGES,
    TEXTS,
    Columns,
    decoded,
    names_of_files,
    requested_numbers,
)
from multigpu.workloads.scan.output.row_sink import RowSink, Write
from multigpu.workloads.scan.sink import Findings

if TYPE_CHECKING:
    import pyarrow as pa

REPEATED = ("sample", "signature", "strand", "file")  # columns with few different values


class ParquetSink(RowSink[Batch]):
    """Rows as a Parquet file, in row groups of one size."""

    def collect(self, found: Findings) -> Batch:
        return found.rows

    @contextmanager
    def write_to(self, file: BinaryIO) -> Iterator[Write[Batch]]:
        """Yield the function that writes. Raises UsageError for a compressed file."""
        if compression_of(self.path) != "none":
            raise UsageError(COMPRESSED_INSIDE)
        names, columns, files = self.signatures.names, self.columns, self.files
        with RowGroups(file, _schema(pyarrow(), columns), REPEATED) as groups:
            yield lambda rows, first: groups.write(
                to_arrow(rows.numbered(first), names, columns, files)
            )


def to_arrow(
    batch: Batch, signature_names: Sequence[bytes], columns: Columns, files: Sequence[str] = ()
) -> "pa.Table":
    """Return the rows as a table with the columns of the Parquet files (see `_schema`).

    Names that are no UTF-8 get U+FFFD; the score is null without quality.
    """
    pa = pyarrow()
    schema = _schema(pa, columns)
    # In pieces, because one array of strings holds 2 GiB at most.
    pieces = [
        pa.Table.from_arrays(
            _arrays(batch[at : at + ROW_GROUP], signature_names, columns, files), schema=schema
        )
        for at in range(0, len(batch), ROW_GROUP)
    ]
    return pa.concat_tables(pieces) if pieces else pa.Table.from_batches([], schema)


def _schema(pa: Any, columns: Columns) -> "pa.Schema":
    requested = [
        pa.field(name, pa.string() if name in TEXTS else pa.int32(), nullable=False)
        for name in columns
    ]
    return pa.schema(
        [
            pa.field("sample", pa.string(), nullable=False),
            pa.field("sample_index", pa.int64(), nullable=False),
            pa.field("signature", pa.string(), nullable=False),
            pa.field("signature_index", pa.int32(), nullable=False),
            pa.field("start", pa.int64(), nullable=False),
            pa.field("end", pa.int64(), nullable=False),
            pa.field("strand", pa.string(), nullable=False),
            pa.field("score", pa.float64()),
            *requested,
        ]
    )


def _arrays(
    batch: Batch, signature_names: Sequence[bytes], columns: Columns, files: Sequence[str]
) -> list["pa.Array"]:
    """Return the columns in the order of the schema."""
    which, rows = np.unique(batch.signature, return_inverse=True)
    names = strings(decoded([signature_names[i] for i in which.tolist()], "utf-8"))
    return [
        strings(decoded(batch.sample, "utf-8")),
        numbers(batch.sample_index),
        names.take(numbers(rows.astype(np.int32))),
        numbers(batch.signature),
        numbers(batch.start),
        numbers(batch.end),
        strings(["+", "-"]).take(numbers(batch.reverse.astype(np.int8))),
        numbers(batch.score, nan_is_null=True),
        *(_on_request(batch, name, files) for name in columns),
    ]


def _on_request(batch: Batch, name: str, files: Sequence[str]) -> "pa.Array":
    if name == "file":
        return strings(decoded(names_of_files(files), "utf-8")).take(numbers(batch.source))
    if name == "bulge":
        kinds = strings(decoded(BULGES, "ascii"))
        return kinds.take(numbers((np.sign(batch.bulge) + 1).astype(np.int8)))
    if name == "cigar":
        return strings(decoded(batch.cigar, "ascii"))
    return numbers(requested_numbers(batch, name))
