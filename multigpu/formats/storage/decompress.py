"""gzip, BGZF and zstd: all the data or an error, never a short read that looks like the end."""

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from multigpu.errors import InputError

COMPRESSED_CHUNK = 128 << 10  # bytes; more is not faster
GZIP_CHUNK = 2 << 20  # bytes; while the program loads, a thread waits for it at every chunk
ZSTD_LONGEST_WINDOW = 31  # log2: what `zstd --long=31` writes

GZIP_MAGIC, GZIP_HEADER = b"\x1f\x8b", 10  # how a member begins; bytes
GZIP_SHORTEST = 20  # bytes of a member
NO_GZIP = "Not a gzipped file"  # isal's words where something else begins
BGZF_MAGIC = b"\x1f\x8b\x08\x04"  # gzip, deflate, with an extra field
BGZF_LARGEST = 64 << 10  # bytes in one block, compressed
BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


class Stream(Protocol):
    """Source of bytes."""

    def readinto(self, out: memoryview, /) -> int | None:
        """Fill the front of `out`; 0 only at the end."""


class Stored(Stream, Protocol):
    """Stream with the path that its errors name."""

    @property
    def path(self) -> str: ...


class GzipContent:
    """Content of a gzip file of any number of members; zeros may pad its end.

    isal checks each member; that a file was cut between two BGZF blocks is seen here.
    """

    def __init__(self, inlet: Stored) -> None:
        from isal import isal_zlib

        self._path = inlet.path
        self._stored = EndKept(inlet)
        # IGzipFile reads with it, but copies everything once more (20 % slower).
        self._reader = isal_zlib._GzipReader(self._stored, GZIP_CHUNK)  # type: ignore[arg-type]

    def readinto(self, out: memoryview) -> int:
        with gzip_errors_named(self._path):
            try:
                count = self._reader.readinto(out)
            except EOFError:
                if self._is_followed():
                    raise gzip.BadGzipFile(NO_GZIP) from None
                raise
        if not count:
            check_bgzf_end(self._path, self._stored.end, self._stored.zeros)
        return count

    def _is_followed(self) -> bool:
        """Whether less than a header follows a member; isal takes it for the begin of another.

        A member ends with its size, BGZF with its marker; of other files with several members the
        last one's size is not known.
        """
        end, size = self._stored.end, self._reader.tell()
        if not size or GZIP_MAGIC in end[-GZIP_SHORTEST:]:  # another one begins
            return False
        ends = ((size % (1 << 32)).to_bytes(4, "little"), BGZF_END)
        return any(
            any(_ends_with(end[:at], sign) for sign in ends)
            for at in range(-1, -GZIP_HEADER, -1)
            if not GZIP_MAGIC.startswith(end[at:][:2])
        )


def _ends_with(data: bytes, sign: bytes) -> bool:
    """Whether the data end with `sign`, but for zeros that may pad them."""
    own_zeros = len(sign) - len(sign.rstrip(b"\0"))
    return data[: len(data.rstrip(b"\0")) + own_zeros].endswith(sign)


@contextmanager
def gzip_errors_named(path: str) -> Iterator[None]:
    """Raise errors of isal as an InputError that names the file."""
    from isal import isal_zlib

    damage: Any = (gzip.BadGzipFile, OverflowError, isal_zlib.IsalError)
    try:
        yield
    except EOFError as error:
        raise _truncated(path, "gzip") from error
    except damage as error:
        raise _damaged(path, "gzip", str(error), NO_GZIP) from error


class ZstdContent:
    """Content of a zstd file of any number of frames."""

    def __init__(self, inlet: Stored) -> None:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd

        self._zstd = zstd
        self._inlet = inlet
        self._chunk = memoryview(bytearray(COMPRESSED_CHUNK))
        self._inside = False  # of a frame: the data must not end here
        self._begin_frame()

    def readinto(self, out: memoryview) -> int:
        while (stored := self._stored()) is not None:
            if piece := self._decompress(stored, len(out)):
                out[: len(piece)] = piece
                return len(piece)
        return 0

    def _begin_frame(self) -> None:
        options: dict[int, int] = {
            self._zstd.DecompressionParameter.window_log_max: ZSTD_LONGEST_WINDOW
        }
        self._frame = self._zstd.ZstdDecompressor(options=options)

    def _stored(self) -> bytes | memoryview | None:
        """Return the bytes to feed next: none where output still waits inside; None at the end."""
        if not self._frame.eof and not self._frame.needs_input:
            return b""
        if self._frame.eof:
            rest = self._frame.unused_data
            self._begin_frame()
            if rest:
                return rest
        if count := self._inlet.readinto(self._chunk):
            return self._chunk[:count]
        if self._inside:
            raise _truncated(self._inlet.path, "zstd")
        return None

    def _decompress(self, stored: bytes | memoryview, most: int) -> bytes:
        try:
            piece = self._frame.decompress(stored, max_length=most)
        except self._zstd.ZstdError as error:
            reason = str(error).rpartition(": ")[2]
            raise _damaged(self._inlet.path, "zstd", reason, "Unknown frame") from error
        self._inside = not self._frame.eof
        return piece


def _truncated(path: str, kind: str) -> InputError:
    return InputError(path, f"{kind} data ends early: the file is truncated")


def _damaged(path: str, kind: str, reason: str, stranger: str) -> InputError:
    """Return the error for damaged data, or for other data after it.

    stranger  how the text of the library begins where other data follows
    """
    if reason.startswith(stranger):
        return followed(path, kind)
    return InputError(path, f"{kind} data is corrupt: {reason}")


def followed(path: str, kind: str) -> InputError:
    return InputError(path, f"something that is not {kind} follows the {kind} data")


# ---- BGZF: gzip members with their size in the header, and an empty one as the end marker -----


class EndKept(io.RawIOBase):
    """Stream that keeps the end of what went through: its last bytes without zeros after them.

    A file object, because isal takes anything else for the data itself.
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream
        self.end = b""  # at most BGZF_LARGEST bytes, the last one not zero
        self.zeros = 0  # that followed

    def readinto(self, out: Any, /) -> int:
        count = self._stream.readinto(out) or 0
        if count:
            self._remember(out[:count])
        return count

    def _remember(self, new: memoryview) -> None:
        solid = _length_without_zeros(new)
        if solid:
            kept = self.end + bytes(min(self.zeros, BGZF_LARGEST))
            kept += new[max(0, solid - BGZF_LARGEST) : solid]
            self.end, self.zeros = kept[-BGZF_LARGEST:], 0
        self.zeros += len(new) - solid


def _length_without_zeros(data: memoryview) -> int:
    if data[-1]:
        return len(data)  # nearly always
    filled = np.flatnonzero(np.frombuffer(data, np.uint8))
    return int(filled[-1]) + 1 if filled.size else 0


def check_bgzf_end(path: str, end: bytes, zeros: int) -> None:
    """Raise InputError where the block is missing that ends every whole BGZF file.

    Cut between two blocks a file is valid gzip, and half of the reads are gone.
    """
    block = _last_bgzf_block(end, zeros)
    if block is not None and block != BGZF_END:
        problem = "gzip data ends early: the file is truncated (the BGZF end marker is missing)"
        raise InputError(path, problem)


def _last_bgzf_block(end: bytes, zeros: int) -> bytes | None:
    """Return the block that `end` and some of the `zeros` after it finish, or None."""
    start = len(end)
    while (start := end.rfind(BGZF_MAGIC, 0, start)) >= 0:
        size = bgzf_size(end[start:])
        if size is not None and 0 <= start + size - len(end) <= zeros:
            return end[start:] + bytes(start + size - len(end))
    return None


def bgzf_size(header: bytes) -> int | None:
    """Return the bytes of the block that begins with `header`; None where it is not BGZF."""
    if not header.startswith(BGZF_MAGIC):
        return None
    at, stop = 12, 12 + int.from_bytes(header[10:12], "little")
    while at + 6 <= min(stop, len(header)):
        length = int.from_bytes(header[at + 2 : at + 4], "little")
        if header[at : at + 2] == b"BC" and length == 2:
            return int.from_bytes(header[at + 4 : at + 6], "little") + 1
        at += 4 + length
    return None
