"""Sources of input: paths, patterns, URLs and standard input, and their bytes.

Nothing here knows what a record is; a `FileKind` says which files a job reads. A stream is anything
with `readinto(view) -> int` (0 at the end); compressed streams are such streams over others, and
every one of them either gives all the data or raises: a short read that looks like the end is the
one thing that must not happen.
"""

import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import accumulate, repeat
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import QUOTED, InputError, quoted
from multigpu.formats.storage.bgzf import BgzfContent
from multigpu.formats.storage.decompress import (
    BGZF_LARGEST,
    GZIP_MAGIC,
    MAGICS,
    NO_BGZF_END,
    ZSTD_MAGIC,
    FileOfStream,
    GzipFile,
    Members,
    Stream,
    bgzf_size,
    lacks_bgzf_end,
)
from multigpu.formats.storage.read_ahead import BLOCKS_AHEAD, LARGEST_BLOCK, ReadAhead
from multigpu.formats.storage.stored_streams import (
    HEAD,
    STDIN,
    StoredStream,
    errors_named,
    fill,
    forget,
    is_remote,
    open_stored,
    status_of,
)

Compression = Literal["none", "gzip", "bgzf", "zstd"]
Block = NDArray[np.uint8]
Content = Generator[Block] | ReadAhead[Block]

COMPRESSED = ("", ".gz", ".bgz", ".zst")  # what may follow a suffix

MIB = 1 << 20
ROOM_BEFORE = 64 << 10  # bytes before each block, for the end of what was read before it
HELPERS = max(1, len(os.sched_getaffinity(0)) // 2)  # the other half of the processors computes
LOOK = 64 << 10  # content bytes looked at in one go to find the first character

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of UTF-8
UTF_16 = "is text in UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# How files begin that are often given by mistake -> what to say instead of the first letters.
STRANGERS = {
    b"BZh": "is compressed with bzip2, which is not read: decompress it first",
    b"\xfd7zXZ\x00": "is compressed with xz, which is not read: decompress it first",
    b"PK\x03\x04": "is a zip archive, which is not read: unpack it first",
    b"BAM\x01": "is a BAM file: convert it with `samtools fastq`",
    b"CRAM": "is a CRAM file: convert it with `samtools fastq`",
    BYTE_ORDER_MARK: (
        "begins with a byte order mark (BOM) of UTF-8: remove it with"
        r" `sed -i '1s/^\xEF\xBB\xBF//' FILE`"
    ),
    **dict.fromkeys(UTF_16_MARKS, UTF_16),
    GZIP_MAGIC: "is compressed twice: decompress it once",
    ZSTD_MAGIC: "is compressed twice: decompress it once",
}


@dataclass(frozen=True)
class FileKind:
    """Kind of files that a job reads.

    name      what a message calls them: "sequence files"
    suffixes  of those that a directory stands for, without compression
    layout    from path and content, from its first character on, to the layout; "" for none
    unknown   what is wrong with a file that has no layout
    missing   from a path that is no file to what a user may have meant; "" for nothing
    """

    name: str
    suffixes: tuple[str, ...]
    layout: Callable[[str, bytes], str]
    unknown: str
    missing: Callable[[str], str] = lambda _: ""


ALIGNMENTS = FileKind("alignment", (".bam", ".cram"), lambda *_: "alignments", "no alignments")


@dataclass
class Source:
    """One input, which was looked at; `size` is its stored bytes, None where not known (pipes).

    in_blocks  whether it is to be read as blocks of whole records

    Other kinds of sources have other content, and go to other processes as a `Source` without it.
    """

    path: str
    size: int | None
    compression: Compression
    layout: str
    in_blocks: bool = False

    def __reduce__(self) -> Any:
        return Source, (*self.facts().values(), self.in_blocks)

    def facts(self) -> dict[str, Any]:
        """Return what a summary says of it."""
        return {name: getattr(self, name) for name in ("path", "size", "compression", "layout")}

    @property
    def files(self) -> "tuple[Source, ...]":
        """The files that it is read from, where a source may have several; else itself."""
        return (self,)

    @property
    def is_paired(self) -> bool:
        """Whether records 2i and 2i + 1 are the two reads of a pair, mates."""
        return False

    @property
    def has_mates(self) -> bool:
        """Whether its records are of pairs, by their places or by what they say."""
        return self.is_paired

    @property
    def is_file(self) -> bool:
        """Whether anyone who sees the path can read it, any number of times."""
        return self.path != STDIN and not is_remote(self.path) and self.size is not None

    @property
    def is_stored(self) -> bool:
        """Whether it is a file or a URL, which can be read again."""
        return self.is_file or is_remote(self.path)

    @property
    def has_ranges(self) -> bool:
        """Whether any worker can read a part of the content by itself."""
        return self.is_file and self.compression in ("none", "bgzf") and not self.in_blocks

    @property
    def cuttable(self) -> bool:
        """Whether any range of the content can be read alone."""
        return self.has_ranges and self.compression == "none"

    @property
    def place(self) -> tuple[int, int] | str:
        """A value that is equal for all paths of one file."""
        if self.is_file:
            with suppress(OSError):
                status = status_of(self.path)
                return status.st_dev, status.st_ino
        return self.path

    def with_absolute_path(self) -> "Source":
        """Return the source, with a path that means the same elsewhere if others may read it."""
        if not self.is_file:
            return self
        return replace(self, path=os.path.abspath(self.path))  # noqa: PTH100

    def blocks(self, size: int) -> Generator[Block]:
        """Yield the decompressed content in arrays of `size` bytes, the last one shorter.

        Raises InputError where the data are damaged, incomplete or followed by something else. That
        may show only at the end (checksums stand there), so no block is sure before the last.
        """
        yield from self.blocks_in(new_memory, size, HELPERS)

    def content(self) -> bytes:
        """Return all of the decompressed content; see `blocks`."""
        return b"".join(block.tobytes() for block in self.blocks(LARGEST_BLOCK))

    def blocks_in(
        self, allocate: Callable[[int], Block], size: int, helpers: int
    ) -> Generator[Block]:
        """Yield what `blocks` does, in memory of the caller's, with room before each block.

        helpers  threads that decompress BGZF; 0: none, as the others have work
        """
        if size < 1:
            raise ValueError(f"blocks of {size} bytes")
        if self.compression == "none" and self.size is not None:
            size = min(size, max(LOOK, self.size + 1))  # a byte more tells that there is none
        with open_stored(self.path) as stored:
            stored.expected = self.size
            content = _content(stored, self.compression, helpers)
            yield from blocks_of(content, repeat(size), allocate)

    def stream(self, size: int, ahead: bool = True) -> Content:
        """Return the content in blocks of `size` bytes, read ahead by a thread; to be closed.

        ahead  whether many are read ahead, with helpers; else one, as other threads have work
        """
        if not ahead:
            return ReadAhead(self.blocks_in(new_memory, size, helpers=0), 1)
        return ReadAhead(self.blocks(size), BLOCKS_AHEAD)


def first_files(sources: Sequence[Source]) -> list[int]:
    """Return the number of each source's first file, where the files of all are counted."""
    return [0, *accumulate(len(source.files) for source in sources)][: len(sources)]


# ---- what is in them --------------------------------------------------------------------------


class EmptyInput(InputError):
    """A file has no content, or only white space."""


def inspect_source(given: "str | Source", kind: FileKind) -> Source:
    """Return a source: compression by magic bytes, layout by the first character.

    Blank characters before it do not count. What is read of a pipe is kept for `blocks`. What is no
    path is a source already. Raises InputError where the file cannot be read, is empty, is visibly
    damaged or has no layout of this kind.
    """
    if isinstance(given, Source):
        return given
    path = given
    try:
        with open_stored(path, looking=True) as stored:
            compression, content = _glimpse(stored)
            local = stored.size is not None and not is_remote(path)
            # `blocks` gets to the end much later.
            if local and lacks_bgzf_end(read_ending(path, 2 * BGZF_LARGEST)):
                raise InputError(path, NO_BGZF_END)
            layout = _layout(path, content, kind)
            return Source(path, stored.size, compression, layout)
    except InputError:
        forget(path)
        raise


def read_beginning(path: str) -> bytes:
    """Return the first bytes of the content, whatever it is.

    They are kept for `open_content` where they are read of a pipe. Raises InputError where the file
    cannot be read or is visibly damaged.
    """
    with open_stored(path, looking=True) as stored:
        _, content = _glimpse(stored)
        start = bytearray(HEAD)
        return bytes(start[: fill(content, memoryview(start))])


def read_ending(path: str, count: int) -> bytes:
    """Return the last stored bytes of a local file, fewer where it is shorter."""
    with errors_named(path):
        size = status_of(path).st_size
    return read_part(path, max(0, size - count), count)


def _glimpse(stored: StoredStream) -> tuple[Compression, Stream]:
    """Return the compression and the content, of which only the beginning is wanted."""
    head = stored.head()
    kind = next((kind for kind, magics in MAGICS.items() if head.startswith(magics)), None)
    # A few blocks are not worth the threads of BGZF.
    content = stored if kind is None else Members(stored, kind)
    return "bgzf" if bgzf_size(head) is not None else kind or "none", content


def _layout(path: str, content: Stream, kind: FileKind) -> str:
    start = _first_letters(content)
    if not start:
        raise EmptyInput(path, "is empty")
    if layout := kind.layout(path, start):
        return layout
    for magic, problem in STRANGERS.items():
        if start.startswith(magic):
            raise InputError(path, problem)
    shown = quoted(start[:QUOTED].splitlines()[0])
    raise InputError(path, f"{kind.unknown}: begins with {shown}")


def refuse_utf_16(path: str, start: bytes) -> None:
    """Raise InputError for text in UTF-16: it has a mark, or every other of its bytes is 0."""
    are_even, are_odd = (not start[first:8:2].strip(b"\0") for first in (0, 1))
    if start.startswith(UTF_16_MARKS) or (len(start) > 3 and are_even != are_odd):
        raise InputError(path, UTF_16)


def _first_letters(content: Stream) -> bytes:
    """Return the content from the first character that is not blank; nothing if there is none."""
    piece = bytearray(LOOK)
    with memoryview(piece) as view:
        while count := fill(content, view):
            if letters := bytes(view[:count]).lstrip():
                return letters
    return b""


def is_repeatable(path: str) -> bool:
    """Whether a path can be read again: a file or a URL, no pipe."""
    # `Path` takes several times as long, and there may be a hundred thousand files.
    return path != STDIN and (is_remote(path) or os.path.isfile(path))  # noqa: PTH113


# ---- their bytes ------------------------------------------------------------------------------


def read_into(path: str, start: int, out: NDArray[np.uint8]) -> int:
    """Read bytes from `start` on into `out` (contiguous); return how many, fewer at the end."""
    with errors_named(path), io.FileIO(path) as file:
        file.seek(start)
        return fill(file, out.data)


@contextmanager
def open_content(path: str) -> Iterator[io.BufferedReader]:
    """Yield the decompressed content of a file, a pipe or a URL as a file object.

    Raises InputError, from its reads too, where the data cannot be read, are damaged or end early.
    """
    with open_stored(path, looking=True) as stored:
        compression, _ = _glimpse(stored)
    with open_stored(path) as stored:
        yield io.BufferedReader(FileOfStream(_content(stored, compression)), MIB)


def text_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield number (from 1) and text of every line, which a newline, a carriage return or both end.

    A byte order mark is left out. Bytes that are not UTF-8 become surrogates.
    """
    with open_content(path) as file:
        for number, line in enumerate(io.TextIOWrapper(file, "utf-8-sig", "surrogateescape"), 1):
            yield number, line.removesuffix("\n")


def _content(stored: StoredStream, compression: Compression, helpers: int = HELPERS) -> Stream:
    if compression == "none":
        return stored
    if compression == "bgzf" and helpers:
        return BgzfContent(stored, helpers)
    if compression != "zstd" and stored.may_restart:
        return GzipFile(stored)
    return Members(stored, "zstd" if compression == "zstd" else "gzip")


def blocks_of(
    stream: Stream, sizes: Iterable[int], allocate: Callable[[int], Block]
) -> Generator[Block]:
    """Yield what a stream has in arrays of these sizes, the last one shorter.

    They lie in memory of the caller's, with room before each.
    """
    for size in sizes:
        block = allocate(ROOM_BEFORE + size)[ROOM_BEFORE:]
        if count := fill(stream, block.data):
            yield block[:count]
        if count < size:
            return


def new_memory(size: int) -> Block:
    """Return an array of this many bytes."""
    return np.empty(size, np.uint8)


def join_blocks(left: Block, block: Block) -> Block:
    """Return the bytes of both as one array; of a source's block it is the memory that has it."""
    room = block.base
    if isinstance(room, np.ndarray) and len(left) <= ROOM_BEFORE:
        begin = block.ctypes.data - room.ctypes.data
        joined: Block = room[begin - len(left) : begin + len(block)]
        joined[: len(left)] = left
        return joined
    return np.concatenate([left, block])


def read_part(path: str, start: int, size: int) -> bytes:
    """Return `size` bytes from `start` on, fewer at the end of the file."""
    out = np.empty(size, np.uint8)
    return out[: read_into(path, start, out)].tobytes()


def raise_unreadable(file: int, path: str, position: int, size: int | None = None) -> NoReturn:
    """Raise what the system says of a position, or InputError where the file ends before it."""
    os.pread(file, 1, position)
    position = min(position, os.fstat(file).st_size)
    end = f": it ends at byte {position}, not at {size}" if size is not None else ""
    raise InputError(path, f"was cut while it was read{end}")
