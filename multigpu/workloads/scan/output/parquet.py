"""Rows of a scan as tables of Arrow and Parquet files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.tables.arrow import numbers, pyarrow, schema, strings
from multigpu.formats.tables.parquet import COMPRESSED_INSIDE, ROW_GROUP, RowGroups
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.output.row_lines import (
    TEXTS,
    Column,
    Columns,
    ScanRows,
    decoded,
    on_request,
    signatures_of,
    strands_of,
)
from multigpu.workloads.scan.output.row_sink import RowSink, Write
from multigpu.workloads.scan.sink import Findings

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = {
    "sample": "string", "sample_index": "int64", "signature": "string", "signature_index": "int32",
    "start": "int64", "end": "int64", "strand": "string", "score": "double",
}  # fmt: skip
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
        with RowGroups(file, _schema(self.columns), REPEATED) as groups:
            yield lambda rows, first: groups.write(to_arrow(self.rows_of(rows.numbered(first))))


def to_arrow(rows: ScanRows) -> "pa.Table":
    """Return the rows as a table with the columns of the Parquet files (see `_schema`).

    Names that are no UTF-8 get U+FFFD; the score is null without quality.
    """
    table, kinds = pyarrow().Table, _schema(rows.requested)
    # In pieces, because one array of strings holds 2 GiB at most.
    begins = range(0, max(1, len(rows.batch)), ROW_GROUP)
    pieces = (replace(rows, batch=rows.batch[at : at + ROW_GROUP]) for at in begins)
    return pyarrow().concat_tables(
        [table.from_arrays(_arrays(one), schema=kinds) for one in pieces]
    )


def _schema(requested: Columns) -> "pa.Schema":
    more = {name: "string" if name in TEXTS else "int32" for name in requested}
    return schema({**COLUMNS, **more}, nullable="score")


def _arrays(rows: ScanRows) -> list["pa.Array"]:
    """Return the columns in the order of the schema."""
    batch = rows.batch
    always: tuple[Column, ...] = (
        batch.sample, batch.sample_index, signatures_of(rows), batch.signature, batch.start,
        batch.end, strands_of(rows),
    )  # fmt: skip
    requested = [_array(on_request(rows, name)) for name in rows.requested]
    return [*map(_array, always), numbers(batch.score, nan_is_null=True), *requested]


def _array(column: Column) -> "pa.Array":
    if isinstance(column, np.ndarray):
        return numbers(column)
    assert not isinstance(column, bytes)
    return strings(decoded(column, "utf-8"))
