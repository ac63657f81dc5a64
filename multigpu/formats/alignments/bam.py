"""BAM: its references, its records as columns, and its indexes, BAI and CSI.

The layouts are those of the specifications (samtools.github.io/hts-specs). Only the fixed fields of
a record are looked at, so reading costs little more than decompression.
"""

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.storage.bgzf import BgzfContent
from multigpu.formats.storage.decompress import BGZF_END
from multigpu.formats.storage.sources import open_content, read_ending, read_into
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
PROBLEMS = {Stop.DAMAGED: DAMAGED, Stop.UNSORTED: NOT_SORTED}
Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
BAI, CSI = b"BAI\x01", b"CSI\x01"
MOST_BITS = 40  # log2 of the bases that an index may cover
BAI_WINDOW, BAI_DEPTH = 14, 5  # log2 of the bases of a window of the linear index; levels of bins


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries of an index for one reference.

    position  int64[n]  ascending
    offset    int64[n]  from where on to read for records that reach or follow the position:
                        compressed byte << 16 | byte in the block that begins there
    end       offset after the last record; 0 without records
    mapped    number of mapped records; None where the index does not tell it
    """

    position: Places
    offset: Places
    end: int
    mapped: int | None


def read_index(path: str) -> list[Entries]:
    """Return the entries of every reference. Raises InputError for no index, or one that is cut."""
    with open_content(path) as content:
        file = io.BytesIO(content.read())
    magic = file.read(4)
    if magic not in (BAI, CSI):
        raise InputError(path, "is no index of a BAM file (BAI or CSI)")
    try:
        return list(_read_references(file, magic == CSI))
    except (ValueError, struct.error) as error:
        raise InputError(path, "the index is damaged or ends early: make a new one") from error


def _read_references(file: io.BytesIO, csi: bool) -> Iterator[Entries]:
    """Yield the entries of every reference. Raises ValueError or struct.error for a damaged one."""
    window, depth = BAI_WINDOW, BAI_DEPTH
    if csi:
        window, depth, more = _unpack(file, "<3i")
        if not (0 <= window <= MOST_BITS and 0 <= window + 3 * depth <= MOST_BITS and more >= 0):
            raise ValueError("no such windows")
        file.seek(more, io.SEEK_CUR)
    (references,) = _unpack(file, "<i")
    for _ in range(references):
        bins, mapped = _read_bins(file, csi, ((1 << 3 * depth + 3) - 1) // 7 + 1)
        position = _positions(bins[:, 0], window, depth)
        if csi:
            begin, rows = np.unique(position, return_index=True)
            offset = bins[rows, 1]
        else:
            (count,) = _unpack(file, "<i")
            offset = _int64(_unpack(file, f"<{count}Q"))  # first, as a damaged count is large
            begin = np.arange(count, dtype=np.int64) << BAI_WINDOW
        if not len(bins):
            yield Entries(np.empty(0, np.int64), np.empty(0, np.int64), 0, mapped)
            continue
        first = bins[:, 2].min()
        if min(first, offset.min(initial=0)) < 0:
            raise ValueError("an offset beyond every file")
        # Windows before the first record have no offset, or that of the record.
        later = (begin > 0) & (offset > 0)
        begin, offset = np.r_[0, begin[later]], np.r_[first, offset[later]]
        # Of damage to offsets most is seen by their order, which is that of the records.
        before = np.searchsorted(begin, position, "right") - 1
        if (offset[before] > bins[:, 2]).any() or (np.diff(offset) < 0).any():
            raise ValueError("offsets are not in order")
        yield Entries(begin, offset, int(bins[:, 3].max()), mapped)


def _read_bins(
    file: io.BytesIO, csi: bool, statistics: int
) -> tuple[NDArray[np.int64], int | None]:
    """Return number, offset (CSI only, else 0), first record and end of each bin: int64[n, 4].

    With them goes the number of mapped records, which the bin of the number `statistics` tells.
    """
    (count,) = _unpack(file, "<i")
    rows, mapped = [], None
    for _ in range(count):
        number, *offset, chunks = _unpack(file, "<IQi" if csi else "<Ii")
        if chunks < 1:
            raise ValueError("there is a bin without records")
        places = _unpack(file, f"<{2 * chunks}Q")
        if number == statistics:
            mapped = places[2] if chunks > 1 else None
        else:
            rows.append((number, sum(offset), min(places[::2]), max(places[1::2])))
    return _int64(rows).reshape(-1, 4), mapped


def _unpack(file: io.BytesIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def _int64(numbers: Sequence[Any]) -> NDArray[np.int64]:
    """Return unsigned numbers; those beyond int64 become negative."""
    return np.array(numbers, np.uint64).astype(np.int64)


def _positions(number: NDArray[np.int64], window: int, depth: int) -> NDArray[np.int64]:
    """Return where bins begin. Raises ValueError for a number that no bin has."""
    level_first = ((1 << 3 * np.arange(depth + 2)) - 1) // 7  # and what is no bin of a level
    level = np.searchsorted(level_first, number, "right") - 1
    if (level > depth).any():
        raise ValueError("no such bin")
    return (number - level_first[level]) << (window + 3 * (depth - level))


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
    path: str, raw: Bytes, references: int, stretch: Stretch, ordered: bool, last: Places
) -> tuple[Reads, int, bool]:
    """Return the complete reads, where the next record begins, and whether the stretch ends here.

    last  int64[1]: place of the record before, or NOWHERE; set to that of the last record in `raw`
    """
    columns = tuple(np.empty(len(raw) // SMALLEST, kind) for kind in READ_DTYPES.values())
    wanted = stretch.begin, stretch.end
    count, stop, why = read_records(raw, wanted, references, ordered, last, columns)
    if why in PROBLEMS:
        raise InputError(path, PROBLEMS[why])
    return Reads(*(column[:count] for column in columns)), stop, why == Stop.END_OF_STRETCH
