"""gzip, BGZF and zstd: all the data or an error, never a short read that looks like the end."""

import io
from typing import Any, Literal, Protocol

from multigpu.errors import Failure, InputError

CompressionKind = Literal["gzip", "zstd"]

CHUNK = 256 << 10  # stored bytes that are read at a time
LARGE_CHUNK = 4 << 20  # the same, where other threads must not wait for each read
PIECE = 128 << 10  # decompressed bytes at a time: they stay in the cache of a core
HEADER = 64  # bytes at the front of a member, in which the size of a BGZF block is looked for
ZSTD_LONGEST_WINDOW = 29  # log2: a decompressor takes several times as many bytes

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# How members begin: of zstd also those that have no data, with which pzstd begins a file.
MAGICS: dict[CompressionKind, tuple[bytes, ...]] = {
    "gzip": (GZIP_MAGIC,),
    "zstd": (ZSTD_MAGIC, *(bytes([0x50 + number]) + b"\x2a\x4d\x18" for number in range(16))),
}
PADDING: dict[CompressionKind, bytes] = {"gzip": b"\0", "zstd": b""}  # between and after members

# BGZF is gzip: members with their size in the header, and an empty one as the end marker.
BGZF_MAGIC = b"\x1f\x8b\x08\x04"  # gzip, deflate, with an extra field
BGZF_LARGEST = 64 << 10  # bytes in one block, compressed
BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
NO_BGZF_END = "gzip data ends early: the file is truncated (the BGZF end marker is missing)"


class Stream(Protocol):
    """Source of bytes."""

    def readinto(self, out: memoryview, /) -> int | None:
        """Fill the front of `out`; 0 only at the end."""


class NamedStream(Stream, Protocol):
    """Stream with the path that its errors name."""

    @property
    def path(self) -> str: ...


class Members:
    """Content of a file of any number of gzip members or zstd frames, one after the other."""

    def __init__(
        self, stream: NamedStream, kind: CompressionKind, stored: bytes = b"", last: bytes = b""
    ) -> None:
        """Continue to read a file.

        stored  bytes that were read of the stream before
        last    the member before these bytes, if there was one
        """
        self._stream, self._kind = stream, kind
        self._chunk = memoryview(bytearray(CHUNK))
        self._stored = stored  # bytes that wait to be decompressed
        self._front = last[:HEADER]  # of the last member that began
        self._member: Any = None  # its decompressor, until it ends

    def readinto(self, out: memoryview) -> int:
        while self._member is not None or self._begin_member():
            if piece := self._decompress(min(PIECE, len(out))):
                out[: len(piece)] = piece
                return len(piece)
        return 0

    def _read(self) -> memoryview:
        return self._chunk[: self._stream.readinto(self._chunk) or 0]

    def _begin_member(self) -> bool:
        """Begin with the next member, if there is one."""
        path, kind, padding = self._stream.path, self._kind, PADDING[self._kind]
        front = self._stored.lstrip(padding)
        while len(front) < HEADER and (more := self._read()):
            front = (front + more).lstrip(padding)
        if not front:
            if bgzf_size(self._front) is not None and not self._front.startswith(BGZF_END):
                raise InputError(path, NO_BGZF_END)
            return False
        if not any(magic.startswith(front[: len(magic)]) for magic in MAGICS[kind]):
            raise InputError(path, f"something that is not {kind} follows the {kind} data")
        self._front, self._stored = front[:HEADER], front
        self._member = _decompressor(kind)
        return True

    def _decompress(self, most: int) -> bytes:
        """Return some bytes of the member, perhaps none yet."""
        stored: bytes | memoryview = b""
        if self._member.needs_input:
            stored, self._stored = self._stored or self._read(), b""
            if not stored:
                raise truncation_error(self._stream.path, self._kind)
        try:
            piece: bytes = self._member.decompress(stored, most)
        except Exception as error:  # each library has its own class
            raise damage_error(self._stream.path, self._kind, error) from error
        if self._member.eof:
            self._stored, self._member = self._member.unused_data, None
        return piece


class RestartableStream(NamedStream, Protocol):
    """Stream that can be read again."""

    def restart(self) -> None:
        """Begin again with the first byte."""


class FileOfStream(io.RawIOBase):
    """Bytes of a stream as a file object."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any, /) -> int:
        return self._stream.readinto(memoryview(out)) or 0


class GzipFile:
    """Content of a file of gzip members, decompressed where it is wanted, without a copy.

    All of a block takes one call, in which other threads run. Where the library meets an error, the
    file is read again by `Members`, which knows what is wrong.
    """

    def __init__(self, stream: RestartableStream) -> None:
        # The class under `igzip.open`, which has no `readinto` of its own.
        from isal.isal_zlib import _GzipReader

        self._stream, self._given = stream, 0
        self._reader: Any = _GzipReader(FileOfStream(stream), LARGE_CHUNK)  # type: ignore[arg-type]
        self._members: Members | None = None

    def readinto(self, out: memoryview) -> int:
        if self._members is None:
            try:
                count = int(self._reader.readinto(out))
            except Exception:  # noqa: BLE001 - whatever it is, it happens again
                self._members = self._read_again()
            else:
                self._given += count
                return count
        return self._members.readinto(out)

    def _read_again(self) -> Members:
        """Return the content after the bytes that were given."""
        self._stream.restart()
        members, room = Members(self._stream, "gzip"), memoryview(bytearray(PIECE))
        while self._given and (count := members.readinto(room[: min(PIECE, self._given)])):
            self._given -= count
        return members


def _decompressor(kind: CompressionKind) -> Any:
    """Return a decompressor of one member."""
    if kind == "gzip":
        from isal import igzip_lib

        return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    from multigpu.formats.storage.zstandard import zstd

    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: ZSTD_LONGEST_WINDOW}
    return zstd.ZstdDecompressor(options=options)


def damage_error(path: str, kind: CompressionKind, error: Exception) -> Exception:
    """Return the error for what a library says of damaged data."""
    if isinstance(error, MemoryError):
        return error
    if kind == "zstd" and "too much memory" in str(error):
        problem = f"its zstd window has more than {1 << ZSTD_LONGEST_WINDOW:,} bytes"
        return InputError(path, f"{problem}: compress it with --long={ZSTD_LONGEST_WINDOW} or less")
    if "not enough memory" in str(error):
        return Failure(f"{path}: there is not enough memory to decompress it")
    if isinstance(error, EOFError):
        return truncation_error(path, kind)
    return InputError(path, f"{kind} data is corrupt: {str(error).rpartition(': ')[2]}")


def truncation_error(path: str, kind: CompressionKind) -> InputError:
    return InputError(path, f"{kind} data ends early: the file is truncated")


def lacks_bgzf_end(data: bytes) -> bool:
    """Whether the end of a file is a BGZF block that is not the end marker; zeros may pad it.

    Cut between two blocks a file is valid gzip, and half of the reads are gone.
    """
    solid = at = len(data.rstrip(b"\0"))
    while (at := data.rfind(BGZF_MAGIC, 0, at)) >= 0:
        size = bgzf_size(data[at:])
        if size is not None and solid <= at + size <= len(data):
            return data[at : at + size] != BGZF_END
    return False


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
