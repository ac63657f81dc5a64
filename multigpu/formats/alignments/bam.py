"""BAM: its references and its records as columns.

The layout is that of the SAM/BAM specification (samtools.github.io/hts-specs/SAMv1.pdf). Only the
fixed fields of a record are looked at, so reading costs little more than decompression, which
several threads do.
"""

from collections.abc import Iterator
from io import BufferedReader

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.storage.decompress import BGZF_END
from multigpu.formats.storage.sources import open_content, read_ending
from multigpu.kernels.compiled.alignments import Stop, read_records
from multigpu.kernels.counting.types import READ_DTYPES, Reads

MAGIC = b"BAM\x01"
BLOCK = 4 << 20  # decompressed bytes at a time
LONGEST_NAME = 1 << 16  # bytes of a reference's name
SMALLEST = 36  # bytes of a record: the fixed fields
NOWHERE = -2  # before every place
NO_END = "ends early: the file is truncated (its end marker is missing)"
NOT_SORTED = "is not sorted by position: run `samtools sort` on it first"


def check_end(path: str) -> None:
    """Raise InputError where the block is missing that ends every whole file."""
    if read_ending(path, len(BGZF_END)) != BGZF_END:
        raise InputError(path, NO_END)


def references(path: str) -> list[tuple[str, int]]:
    """Return name and length of every reference."""
    with open_content(path) as file:
        return _read_header(path, file)[1]


def header(path: str) -> str:
    """Return the text of the header, as in SAM."""
    with open_content(path) as file:
        return _read_header(path, file)[0].decode("utf-8", "replace").rstrip("\0")


def _read_header(path: str, file: BufferedReader) -> tuple[bytes, list[tuple[str, int]]]:
    """Return the text, and name and length of every reference."""

    def take(count: int) -> bytes:
        """Return the next bytes. Raises InputError where there are fewer."""
        taken = bytearray()
        # In pieces, because a damaged header may name more bytes than fit into memory.
        while len(taken) < count and (piece := file.read(min(count - len(taken), BLOCK))):
            taken += piece
        if len(taken) != count:
            raise InputError(path, "ends early: the file is truncated")
        return bytes(taken)

    def number() -> int:
        return int.from_bytes(take(4), "little", signed=True)

    if take(4) != MAGIC:
        raise InputError(path, "is no BAM file")
    text = take(number())
    found = []
    for _ in range(number()):
        size = number()
        if not 1 <= size <= LONGEST_NAME:
            raise InputError(path, f"is damaged: the name of a reference has {size} bytes")
        name = take(size)[:-1].decode("utf-8", "replace")
        length = number()
        if length < 0:
            raise InputError(path, f"is damaged: {quoted(name)} has {length} bases")
        found.append((name, length))
    return text, found


def reads(path: str, references: int, ordered: bool) -> Iterator[Reads]:
    """Yield the mapped reads of a file, block by block.

    references  how many there are
    ordered     raise InputError where the records are not sorted by position
    """
    raw, kept = np.empty(BLOCK, np.uint8), 0
    last = np.full(1, NOWHERE, np.int64)
    with open_content(path) as file:
        _read_header(path, file)
        while count := file.readinto(raw[kept:].data):
            found, stop = _parse(path, raw[: kept + count], references, ordered, last)
            yield found
            kept += count - stop
            if not stop:  # not one whole record
                raw = np.concatenate([raw, np.empty_like(raw)])
            else:
                raw[:kept] = raw[stop : stop + kept].copy()
    if kept:
        raise InputError(path, "ends within a record: the file is truncated")


def _parse(
    path: str, raw: NDArray[np.uint8], references: int, ordered: bool, last: NDArray[np.int64]
) -> tuple[Reads, int]:
    """Return the complete reads in `raw`, and the offset of the first incomplete one.

    last  int64[1]: place of the record before, or NOWHERE; set to that of the last record in `raw`
    """
    room = len(raw) // SMALLEST
    columns = tuple(np.empty(room, dtype) for dtype in READ_DTYPES.values())
    count, stop, why = read_records(raw, references, ordered, last, columns)
    if why == Stop.DAMAGED:
        raise InputError(path, "is damaged: it has a record that none can be")
    if why == Stop.UNSORTED:
        raise InputError(path, NOT_SORTED)
    return Reads(*(column[:count] for column in columns)), stop
