"""Compressed output, whose bytes do not depend on the pieces in which it was written."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal

from multigpu.cluster.files import atomic_output
from multigpu.formats.storage.suffixes import COMPRESSIONS, suffix_of_output

Compression = Literal["none", "gzip", "zstd"]

BLOCK = 1 << 20  # bytes that are compressed at a time
GZIP_LEVEL = 6
GZIP_FORMAT = 31  # zlib's wbits for a gzip header, which then has no name and no time
ZSTD_LEVEL = 3


def compression_of(path: str | None) -> Compression:
    """Return the compression that the path's suffix asks for."""
    return COMPRESSIONS.get(suffix_of_output(path), "none")


@contextmanager
def compressed_output(path: str | None) -> Iterator["Compressed"]:
    """Yield an `atomic_output` that is compressed as the suffix of the path says."""
    with atomic_output(path) as raw:
        out = Compressed(raw, compression_of(path))
        yield out
        out.close()


class Compressed:
    """A writer of compressed bytes into `raw`, which stays open."""

    def __init__(self, raw: BinaryIO, compression: Compression) -> None:
        self._raw, self._compressor = raw, _compressor(compression)
        self._waiting = bytearray()

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Write bytes; the compressor always gets `BLOCK` of them."""
        if self._compressor is None:
            self._raw.write(data)
            return
        self._waiting += data
        whole = len(self._waiting) // BLOCK * BLOCK
        for at in range(0, whole, BLOCK):
            self._raw.write(self._compressor.compress(bytes(self._waiting[at : at + BLOCK])))
        del self._waiting[:whole]

    def close(self) -> None:
        """Write what is still held back. Without this call the file is not complete."""
        if self._compressor is not None:
            self._raw.write(self._compressor.compress(bytes(self._waiting)))
            self._raw.write(self._compressor.flush())


def _compressor(compression: Compression) -> Any:
    """Return an object with `compress` and `flush`; None for no compression."""
    if compression == "none":
        return None
    if compression == "gzip":
        return zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_FORMAT)
    from multigpu.formats.storage.zstandard import zstd

    parameter = zstd.CompressionParameter
    options: dict[int, int] = {parameter.compression_level: ZSTD_LEVEL, parameter.checksum_flag: 1}
    return zstd.ZstdCompressor(options=options)
