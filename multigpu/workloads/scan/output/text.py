"""Rows of a scan as text, which workers render and the client compresses."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.workloads.scan.output.row_sink import RowSink, Write
from multigpu.workloads.scan.sink import Findings


class TextSink(RowSink[bytes]):
    """Rows as lines of a text format, below its header."""

    def collect(self, found: Findings) -> bytes:
        lines = self.format.lines
        assert lines is not None
        return b"".join([lines(block) for block in self.rows_of(found.rows).blocks()])

    @contextmanager
    def write_to(self, file: BinaryIO) -> Iterator[Write[bytes]]:
        out = Compressed(file, compression_of(self.path))
        out.write(self.format.header(self.columns).encode())
        yield lambda lines, _: out.write(lines)
        out.close()
