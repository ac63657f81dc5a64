"""Indexes of BAM files, BAI and CSI: where the records of a position begin in the file.

Both layouts are those of the SAM/BAM and CSI specifications (samtools.github.io/hts-specs).
"""

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.storage.sources import open_content

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

    position: NDArray[np.int64]
    offset: NDArray[np.int64]
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
