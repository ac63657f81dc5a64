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
BAI_WINDOW = 14  # log2 of the bases of a window of the linear index


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries of an index for one reference.

    position  int64[n]  ascending
    offset    int64[n]  from where on to read for records that reach or follow the position:
                        compressed byte << 16 | byte in the block that begins there
    """

    position: NDArray[np.int64]
    offset: NDArray[np.int64]


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
    window, depth = 0, 0
    if csi:
        window, depth, more = _unpack(file, "<3i")
        if not (0 <= window <= MOST_BITS and 0 <= window + 3 * depth <= MOST_BITS and more >= 0):
            raise ValueError("no such windows")
        file.seek(more, io.SEEK_CUR)
    (references,) = _unpack(file, "<i")
    for _ in range(references):
        bins = _read_bins(file, csi)
        if csi:
            position, offset = _place_bins(bins, window, depth)
        else:
            (count,) = _unpack(file, "<i")
            offset = _int64(_unpack(file, f"<{count}Q"))
            position = np.arange(count, dtype=np.int64) << BAI_WINDOW
        yield _entries(bins, position, offset)


def _read_bins(file: io.BytesIO, csi: bool) -> NDArray[np.int64]:
    """Return number, offset (CSI only) and first record of each bin."""
    (count,) = _unpack(file, "<i")
    rows = []
    for _ in range(count):
        *numbers, chunks, first = _unpack(file, "<IQiQ" if csi else "<IiQ")
        if chunks < 1:
            raise ValueError("there is a bin without records")
        # The bin with the statistics has here where all records begin.
        rows.append((*numbers, first))
        file.seek(16 * chunks - 8, io.SEEK_CUR)
    return _int64(rows).reshape(-1, 3 if csi else 2)


def _unpack(file: io.BytesIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def _int64(numbers: Sequence[Any]) -> NDArray[np.int64]:
    """Return unsigned numbers; those beyond int64 become negative."""
    return np.array(numbers, np.uint64).astype(np.int64)


def _place_bins(
    bins: NDArray[np.int64], window: int, depth: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return positions of bins, and from where on to read for the first window of each."""
    number, offset = bins[:, 0], bins[:, 1]
    level_first = ((1 << 3 * np.arange(depth + 2)) - 1) // 7  # and what is no bin of a level
    level = np.searchsorted(level_first, number, "right") - 1
    real = level <= depth  # not the bin with the statistics
    level, number, offset = level[real], number[real], offset[real]
    position = (number - level_first[level]) << (window + 3 * (depth - level))
    unique, rows = np.unique(position, return_index=True)
    return unique, offset[rows]


def _entries(
    bins: NDArray[np.int64], position: NDArray[np.int64], offset: NDArray[np.int64]
) -> Entries:
    """Return entries. Windows before the first record have no offset, or that of the record."""
    if not len(bins):
        return Entries(np.empty(0, np.int64), np.empty(0, np.int64))
    later = (position > 0) & (offset > 0)
    first = bins[:, -1].min()
    if min(first, offset.min(initial=0)) < 0:
        raise ValueError("an offset beyond every file")
    return Entries(np.r_[0, position[later]], np.r_[first, offset[later]])
