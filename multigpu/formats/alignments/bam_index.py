"""Indexes of BAM files, BAI and CSI: where the records of a position begin in the file.

Both layouts are those of the SAM/BAM and CSI specifications (samtools.github.io/hts-specs).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.storage.sources import open_content
from multigpu.kernels.compiled.alignments import read_bins

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
    with open_content(path) as file:
        raw = np.frombuffer(file.read(), np.uint8)
    magic = raw[:4].tobytes()
    if magic not in (BAI, CSI):
        raise InputError(path, "is no index of a BAM file (BAI or CSI)")
    try:
        return _bai(_Cursor(raw, 4)) if magic == BAI else _csi(_Cursor(raw, 4))
    except ValueError as error:
        raise InputError(path, "the index is damaged or ends early: make a new one") from error


class _Cursor:
    """Little-endian numbers in order. Raises ValueError where there are fewer."""

    def __init__(self, raw: NDArray[np.uint8], at: int) -> None:
        self._raw, self._at = raw, at

    def take(self, dtype: str, count: int) -> NDArray[np.int64]:
        if count < 0:
            raise ValueError("less than no numbers")
        numbers = np.frombuffer(self._raw.data, dtype, count, self._at) if count else np.empty(0)
        self._at += count * np.dtype(dtype).itemsize
        return numbers.astype(np.int64)

    def one(self) -> int:
        return int(self.take("<i4", 1)[0])

    def skip(self, size: int) -> None:
        self._at += size

    def bins(self, with_offset: bool) -> NDArray[np.int64]:
        """Return int64[bins, 3]: number, offset (CSI only) and where the first records begin."""
        count = self.one()
        if not 0 <= count <= len(self._raw):
            raise ValueError("more bins than bytes")
        table = np.empty((count, 3), np.int64)
        self._at = read_bins(self._raw, self._at, with_offset, table)
        if self._at < 0:
            raise ValueError("the bins end early")
        return table


def _bai(cursor: _Cursor) -> list[Entries]:
    return [_linear(cursor) for _ in range(cursor.one())]


def _linear(cursor: _Cursor) -> Entries:
    bins = cursor.bins(with_offset=False)
    offset = cursor.take("<u8", cursor.one())
    return _entries(bins, np.arange(len(offset), dtype=np.int64) << BAI_WINDOW, offset)


def _csi(cursor: _Cursor) -> list[Entries]:
    window, depth, more = cursor.take("<i4", 3).tolist()
    if not (0 <= window <= MOST_BITS and 0 <= window + 3 * depth <= MOST_BITS):
        raise ValueError("no such windows")
    cursor.skip(more)
    return [_binned(cursor, window, depth) for _ in range(cursor.one())]


def _binned(cursor: _Cursor, window: int, depth: int) -> Entries:
    """Return the entries of bins: each has where to read from for its first window."""
    bins = cursor.bins(with_offset=True)
    number, offset = bins[:, 0], bins[:, 1]
    level_first = ((1 << 3 * np.arange(depth + 2)) - 1) // 7  # and what is no bin of a level
    level = np.searchsorted(level_first, number, "right") - 1
    real = level <= depth  # not the bin with the statistics
    level, number, offset = level[real], number[real], offset[real]
    position = (number - level_first[level]) << (window + 3 * (depth - level))
    unique, rows = np.unique(position, return_index=True)
    return _entries(bins, unique, offset[rows])


def _entries(
    bins: NDArray[np.int64], position: NDArray[np.int64], offset: NDArray[np.int64]
) -> Entries:
    """Return entries. Windows before the first record have no offset, or that of the record."""
    if not len(bins):
        return Entries(np.empty(0, np.int64), np.empty(0, np.int64))
    later = (position > 0) & (offset > 0)
    first = bins[:, 2].min()
    if min(first, offset.min(initial=0)) < 0:
        raise ValueError("an offset beyond every file")
    return Entries(np.r_[0, position[later]], np.r_[first, offset[later]])
