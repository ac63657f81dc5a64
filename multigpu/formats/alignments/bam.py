"""BAM: its records as columns.

The layout is that of the SAM/BAM specification (samtools.github.io/hts-specs/SAMv1.pdf). Only the
fixed fields of a record are looked at, so reading costs little more than decompression. The header
is read by htslib, as that of CRAM files.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.optional import import_pysam
from multigpu.formats.storage.bgzf import BgzfContent
from multigpu.formats.storage.decompress import BGZF_END
from multigpu.formats.storage.inlets import Inlet, fill
from multigpu.formats.storage.sources import read_ending
from multigpu.kernels.compiled.alignments import POSITION_BITS, Stop, read_records
from multigpu.kernels.counting.types import READ_DTYPES, Reads

MAGIC = b"BAM\x01"
BLOCK = 4 << 20  # decompressed bytes at a time
SMALLEST = 36  # bytes of a record: the fixed fields
ANYWHERE = 1 << 62  # after every place
NO_END = "ends early: the file is truncated (its end marker is missing)"
NOT_SORTED = "is not sorted by position: run `samtools sort` on it first"
FIELDS = 0x2 | 0x4 | 0x8 | 0x10 | 0x20  # flag, reference, position, mapping quality, CIGAR


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


def absolute(path: str) -> str:
    """Return a path for htslib, which takes "s3:x" for an address and "-x" for an option."""
    return str(Path(path).absolute())


@contextmanager
def open_file(path: str) -> Iterator[Any]:
    """Yield pysam's object for a BAM or CRAM file. Bases of CRAM are not decoded."""
    options = {"format_options": [f"required_fields={FIELDS}".encode()], "check_sq": False}
    try:
        with import_pysam("BAM and CRAM files").AlignmentFile(absolute(path), **options) as file:
            yield file
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be decoded: {error}") from error


def check_end(path: str) -> None:
    """Raise InputError where the block is missing that ends every whole file."""
    if read_ending(path, len(BGZF_END)) != BGZF_END:
        raise InputError(path, NO_END)


def reads(path: str, references: int, stretch: Stretch, ordered: bool) -> Iterator[Reads]:
    """Yield the mapped reads of a stretch, block by block.

    references  how many there are
    ordered     raise InputError where the records are not sorted by position
    """
    offset = stretch.offset or _first_record(path)
    last = np.full(1, _NONE, np.int64)  # where the record before stands, as one number
    raw, kept, done = np.empty(BLOCK, np.uint8), 0, False
    with Inlet(path, looking=False) as inlet:
        inlet.skip(offset >> 16)
        content = BgzfContent(inlet, threads=1)
        fill(content, memoryview(bytearray(offset & 0xFFFF)))
        while not done and (count := fill(content, raw[kept:].data)):
            held = raw[: kept + count]
            found, stop, done = _walk(path, held, references, stretch, ordered, last)
            yield found
            kept += count - stop
            if not stop:  # not one whole record
                raw = np.concatenate([raw, np.empty_like(raw)])
            else:
                raw[:kept] = raw[stop : stop + kept].copy()
    if stretch.offset and last[0] == _NONE:
        raise InputError(path, _DAMAGED)  # an index names places where there are records
    if kept and not done:
        raise InputError(path, "ends within a record: the file is truncated")


def _first_record(path: str) -> int:
    """Return the offset of the record after the header."""
    with open_file(path) as file:
        return int(file.tell())


_DAMAGED = "is damaged, or its index belongs to another file"
_NONE = -2  # before every place


def _walk(
    path: str,
    raw: NDArray[np.uint8],
    references: int,
    stretch: Stretch,
    ordered: bool,
    last: NDArray[np.int64],
) -> tuple[Reads, int, bool]:
    """Return the reads that lie whole in `raw`, where the first other one begins, and if it ends.

    last  see `read_records`; it is updated
    """
    room = len(raw) // SMALLEST
    columns = tuple(np.empty(room, dtype) for dtype in READ_DTYPES.values())
    count, stop, why = read_records(
        raw, (stretch.begin, stretch.end), references, ordered, last, columns
    )
    if why == Stop.DAMAGED:
        raise InputError(path, _DAMAGED)
    if why == Stop.UNSORTED:
        raise Unsorted(path, NOT_SORTED)
    return Reads(*(column[:count] for column in columns)), stop, why == Stop.END_OF_STRETCH
