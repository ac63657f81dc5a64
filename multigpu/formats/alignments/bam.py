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
from multigpu.kernels.compiled.alignments import POSITION_BITS, Stop, read_records
from multigpu.kernels.counting.types import READ_DTYPES, Reads

MAGIC = b"BAM\x01"
BLOCK = 4 << 20  # decompressed bytes at a time
LONGEST_NAME = 1 << 16  # bytes of a reference's name
SMALLEST = 36  # bytes of a record: the fixed fields
ANYWHERE = 1 << 62  # after every place
NO_END = "ends early: the file is truncated (its end marker is missing)"
NOT_SORTED = "is not sorted by position: run `samtools sort` on it first"


class Unsorted(InputError):
    """Error of records that are not sorted by position; its problem is `NOT_SORTED`."""


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


class _Inlet:
    """Stored bytes of a file, from one of them on."""

    def __init__(self, path: str, start: int) -> None:
        self.path, self._at = path, start

    def readinto(self, out: memoryview) -> int:
        count = read_into(self.path, self._at, np.frombuffer(out, np.uint8))
        self._at += count
        return count


class _Content:
    """Decompressed bytes of a file, from a virtual offset on."""

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self._stream = BgzfContent(_Inlet(path, offset >> 16), threads=1)
        self.take(offset & 0xFFFF)

    def fill(self, out: NDArray[np.uint8]) -> int:
        """Read bytes into the front of `out`; return how many, fewer only at the end."""
        done = 0
        while done < len(out) and (count := self._stream.readinto(out.data[done:])):
            done += count
        return done

    def take(self, count: int) -> bytes:
        """Return the next bytes. Raises InputError where there are fewer."""
        out = np.empty(max(0, count), np.uint8)
        if self.fill(out) != count:
            raise InputError(self.path, "ends early: the file is truncated")
        return out.tobytes()

    def skip(self, count: int) -> None:
        """Skip bytes. A damaged header may name more than fit into memory."""
        for at in range(0, max(1, count), BLOCK):
            self.take(min(BLOCK, count - at))

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little", signed=True)


def check_end(path: str) -> None:
    """Raise InputError where the block is missing that ends every whole file."""
    if read_ending(path, len(BGZF_END)) != BGZF_END:
        raise InputError(path, NO_END)


def references(path: str) -> list[tuple[str, int]]:
    """Return name and length of every reference."""
    return _header(_Content(path))


def header(path: str) -> str:
    """Return the text of the header, as in SAM."""
    content = _Content(path)
    if content.take(4) != MAGIC:
        raise InputError(path, "is no BAM file")
    return content.take(content.number()).decode("utf-8", "replace").rstrip("\0")


def _header(content: _Content) -> list[tuple[str, int]]:
    if content.take(4) != MAGIC:
        raise InputError(content.path, "is no BAM file")
    content.skip(content.number())  # as text
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
    return found


def reads(path: str, references: int, stretch: Stretch, ordered: bool) -> Iterator[Reads]:
    """Yield the mapped reads of a stretch, block by block.

    references  how many there are
    ordered     raise InputError where the records are not sorted by position
    """
    content = _Content(path, stretch.offset)
    if not stretch.offset:
        _header(content)
    walk = _Walk(path, references, stretch, ordered)
    raw, kept = np.empty(BLOCK, np.uint8), 0
    while not walk.done and (count := content.fill(raw[kept:])):
        found, stop = walk.over(raw[: kept + count])
        yield found
        kept += count - stop
        if not stop:  # not one whole record
            raw = np.concatenate([raw, np.empty_like(raw)])
        else:
            raw[:kept] = raw[stop : stop + kept].copy()
    if stretch.offset and not walk.begun:
        raise InputError(path, _DAMAGED)  # an index names places where there are records
    if kept and not walk.done:
        raise InputError(path, "ends within a record: the file is truncated")


_DAMAGED = "is damaged, or its index belongs to another file"
_NONE = -2  # before every place


class _Walk:
    """Walk from record to record, which remembers where it is between blocks."""

    def __init__(self, path: str, references: int, stretch: Stretch, ordered: bool) -> None:
        self._path, self._references, self._ordered = path, references, ordered
        self._wanted = (stretch.begin, stretch.end)
        self._last = np.full(1, _NONE, np.int64)  # where the record before stands, as one number
        self.done = False

    @property
    def begun(self) -> bool:
        """Whether there was a record."""
        return bool(self._last[0] != _NONE)

    def over(self, raw: NDArray[np.uint8]) -> tuple[Reads, int]:
        """Return the reads that lie whole in `raw`, and where the first other one begins."""
        room = len(raw) // SMALLEST
        columns = tuple(np.empty(room, dtype) for dtype in READ_DTYPES.values())
        count, stop, why = read_records(
            raw, self._wanted, self._references, self._ordered, self._last, columns
        )
        if why == Stop.DAMAGED:
            raise InputError(self._path, _DAMAGED)
        if why == Stop.UNSORTED:
            raise Unsorted(self._path, NOT_SORTED)
        self.done = why == Stop.END_OF_STRETCH
        return Reads(*(column[:count] for column in columns)), stop
