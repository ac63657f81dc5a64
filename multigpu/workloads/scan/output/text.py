"""Rows of a scan as text, which workers render and the client compresses."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.workloads.scan.output.row_sink import RowSink, Write
from multigpu.workloads.scan.sink import Findings

COLUMNS = ("sample", "signature", "start", "end", "strand", "score")


class TextSink(RowSink[bytes]):
    """Rows as lines of a text format, below the names of the columns if it has a separator."""

    def collect(self, found: Findings) -> bytes:
        lines = self.format.lines
        assert lines is not None
        return b"".join([lines(block) for block in self.rows_of(found.rows).blocks()])

    def header(self) -> str:
        """Return the lines before the rows."""
        separator = self.format.separator
        return separator.join([*COLUMNS, *self.columns]) + "\n" if separator else ""

    @contextmanager
    def write_to(self, file: BinaryIO) -> Iterator[Write[bytes]]:
        out = Compressed(file, compression_of(self.path))
        out.write(self.header().encode())
        yield lambda lines, _: out.write(lines)
        out.close()
