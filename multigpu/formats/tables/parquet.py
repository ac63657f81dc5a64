"""Parquet files whose bytes do not depend on the batches in which their rows came."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from multigpu.formats.tables.arrow import pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP = 1 << 20  # rows
COMPRESSED_INSIDE = "Parquet files are compressed inside: choose a name without .gz or .zst"


class RowGroups:
    """Writer of tables as row groups of exactly `ROW_GROUP` rows, the last one smaller.

    `raw` stays open. The file is complete when the block of a `with` ends without an error.

    dictionary  columns whose values repeat
    """

    def __init__(self, raw: BinaryIO, schema: "pa.Schema", dictionary: Sequence[str]) -> None:
        self._pa = pyarrow()
        import pyarrow.parquet as pq

        self._waiting: list[pa.Table] = []
        self._file = _ClosableFile(raw)
        self._writer = pq.ParquetWriter(
            self._file, schema, compression="zstd", use_dictionary=list(dictionary)
        )

    def write(self, table: "pa.Table") -> None:
        self._waiting.append(table)
        if sum(table.num_rows for table in self._waiting) >= ROW_GROUP:
            self._write_groups(complete_only=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # A writer that is freed or closed would write the end of a file.
        self._file.shut = kind is not None
        if self._waiting and kind is None:
            self._write_groups(complete_only=False)
        self._writer.close()

    def _write_groups(self, complete_only: bool) -> None:
        rows = self._pa.concat_tables(self._waiting)
        stop = rows.num_rows // ROW_GROUP * ROW_GROUP if complete_only else rows.num_rows
        for at in range(0, stop, ROW_GROUP):
            # One chunk for each column: where chunks end shows in the pages (at some 100,000 rows).
            group = rows.slice(at, min(ROW_GROUP, stop - at)).combine_chunks()
            self._writer.write_table(group, ROW_GROUP)
        self._waiting = [rows.slice(stop)] if stop < rows.num_rows else []


class _ClosableFile:
    """File whose writes have no effect once it is shut."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self.shut, self.closed = raw, False, False

    def write(self, data: Any, /) -> int:
        return len(data) if self.shut else self._raw.write(data)

    def flush(self) -> None:
        if not self.shut:
            self._raw.flush()
