"""BAM: its references and its records as columns.

The layout is that of the SAM/BAM specification (samtools.github.io/hts-specs/SAMv1.pdf). Only the
fixed fields of a record are looked at, so reading costs little more than decompression.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.storage.bgzf import BgzfContent
from multigpu.formats.storage.decompress import BGZF_END
from multigpu.formats.storage.sources import read_ending, read_into
from multigpu.formats.storage.stored_streams import fill
from multigpu.kernels.compiled.alignments import POSITION_BITS, Stop, read_records
from multigpu.kernels.counting.types import READ_DTYPES, Reads

MAGIC = b"BAM\x01"
BLOCK = 4 << 20  # decompressed bytes at a time
LONGEST_NAME = 1 << 16  # bytes of a reference's name
SMALLEST = 36  # bytes of a record: the fixed fields
NOWHERE, ANYWHERE = -2, 1 << 62  # before and after every place
NO_END = "ends early: the file is truncated (its end marker is missing)"
DAMAGED = "is damaged, or its index belongs to another file"
NOT_SORTED = "is not sorted by position: run `samtools sort` on it first"


def place(reference: int, position: int) -> int:
    """Return a position in the order of a sorted file."""
    return reference << POSITION_BITS | position


@dataclass(frozen=True)
class Stretch:
    """Consecutive records that begin in the places [begin, end).

    offset  where to read from: compressed byte << 16 | byte in the block that begins there
    """

    begin: int
    end: int
    offset: int


WHOLE = Stretch(0, ANYWHERE, 0)


class _StoredBytes:
    """Stored bytes of a file, from the offset `start`."""

    def __init__(self, path: str, start: int) -> None:
        self.path, self._at = path, start

    def readinto(self, out: memoryview) -> int:
        count = read_into(self.path, self._at, np.frombuffer(out, np.uint8))
        self._at += count
        return count


class _Content:
    """Decompressed bytes of a file, from a virtual offset."""

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self.stream = BgzfContent(_StoredBytes(path, offset >> 16), threads=1)
        self.take(offset & 0xFFFF)

    def take(self, count: int) -> bytes:
        """Return the next bytes. Raises InputError where there are fewer."""
        taken = bytearray()
        # In pieces, because a damaged header may name more bytes than fit into memory.
        piece = memoryview(bytearray(min(max(0, count), BLOCK)))
        while held := fill(self.stream, piece[: max(0, count - len(taken))]):
            taken += piece[:held]
        if len(taken) != count:
            raise InputError(self.path, "ends early: the file is truncated")
        return bytes(taken)

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little", signed=True)


def check_end(path: str) -> None:
    """Raise InputError where the block is missing that ends every whole file."""
    if read_ending(path, len(BGZF_END)) != BGZF_END:
        raise InputError(path, NO_END)


def references(path: str) -> list[tuple[str, int]]:
    """Return name and length of every reference."""
    return _read_header(_Content(path))[1]


def header(path: str) -> str:
    """Return the text of the header, as in SAM."""
    return _read_header(_Content(path))[0].decode("utf-8", "replace").rstrip("\0")


def has_more(path: str, offset: int) -> bool:
    """Return whether a record with a place begins at the offset; 0: the first record."""
    content = _Content(path, offset)
    if not offset:
        _read_header(content)
    start = bytearray(8)
    return fill(content.stream, memoryview(start)) == 8 and start[4:] != b"\xff\xff\xff\xff"


def _read_header(content: _Content) -> tuple[bytes, list[tuple[str, int]]]:
    """Return the text, and name and length of every reference."""
    if content.take(4) != MAGIC:
        raise InputError(content.path, "is no BAM file")
    text = content.take(content.number())
    found = []
    for _ in range(content.number()):
        size = content.number()
        if not 1 <= size <= LONGEST_NAME:
            raise InputError(content.path, f"is damaged: the name of a reference has {size} bytes")
        name = content.take(size)[:-1].decode("utf-8", "replace")
        length = content.number()
        if length < 0:
            raise InputError(content.path, f"is damaged: {quoted(name)} has {length} bases")
        found.append((name, length))
    return text, found


def reads(path: str, references: int, stretch: Stretch, ordered: bool) -> Iterator[Reads]:
    """Yield the mapped reads of a stretch, block by block.

    references  how many there are
    ordered     raise InputError where the records are not sorted by position
    """
    content = _Content(path, stretch.offset)
    if not stretch.offset:
        _read_header(content)
    # Place of the record before. Where an index leads to, no earlier reference may begin.
    before = stretch.begin >> POSITION_BITS << POSITION_BITS if stretch.offset else NOWHERE
    last = np.full(1, before - 1, np.int64)
    raw, kept, done = np.empty(BLOCK, np.uint8), 0, False
    while not done and (count := fill(content.stream, raw[kept:].data)):
        found, stop, done = _parse(path, raw[: kept + count], references, stretch, ordered, last)
        yield found
        kept += count - stop
        if not stop:  # not one whole record
            raw = np.concatenate([raw, np.empty_like(raw)])
        else:
            raw[:kept] = raw[stop : stop + kept].copy()
    if stretch.offset and last[0] == before - 1:
        raise InputError(path, DAMAGED)  # an index names places where there are records
    if kept and not done:
        raise InputError(path, "ends within a record: the file is truncated")


def _parse(
    path: str,
    raw: NDArray[np.uint8],
    references: int,
    stretch: Stretch,
    ordered: bool,
    last: NDArray[np.int64],
) -> tuple[Reads, int, bool]:
    """Return the complete reads in `raw`, the offset of the first incomplete one, and a flag.

    The flag says whether the stretch ends here.

    last  int64[1]: place of the record before, or NOWHERE; set to that of the last record in `raw`
    """
    room = len(raw) // SMALLEST
    columns = tuple(np.empty(room, dtype) for dtype in READ_DTYPES.values())
    count, stop, why = read_records(
        raw, (stretch.begin, stretch.end), references, ordered, last, columns
    )
    if why == Stop.DAMAGED:
        raise InputError(path, DAMAGED)
    if why == Stop.UNSORTED:
        raise InputError(path, NOT_SORTED)
    return Reads(*(column[:count] for column in columns)), stop, why == Stop.END_OF_STRETCH
