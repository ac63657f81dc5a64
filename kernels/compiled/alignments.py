"""Records of BAM files as arrays, by the SAM/BAM specification (samtools.github.io/hts-specs)."""

from enum import IntEnum
from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit

POSITION_BITS = 40  # a place is reference << POSITION_BITS | position


class Stop(IntEnum):
    """Reason why the walk over records stopped."""

    END_OF_BYTES = 0
    END_OF_STRETCH = 1  # no record of the stretch can follow
    DAMAGED = 2
    UNSORTED = 3


_REFERENCE, _POSITION, _NAME, _MAPQ, _CIGARS, _FLAG, _BASES, _FIXED = 4, 8, 12, 13, 16, 18, 20, 36
_MATE_REFERENCE, _MATE_POSITION = 24, 28
_PROPER, _UNMAPPED, _SECOND = 2, 4, 128
_ON_REFERENCE = 0b110001101  # CIGAR operations M D N = X
_ON_READ = 0b110010011  # M I S = X


@jit
def read_records(
    raw: Any, wanted: Any, references: Any, ordered: Any, last: Any, columns: Any
) -> Any:
    """Fill the columns with the mapped reads that begin in the places of `wanted`.

    wanted   (begin, end)
    ordered  whether records that are not sorted by position are refused
    last     int64[1]  the place of the record before `raw`; it is updated
    columns  as `READ_DTYPES` of the counting kernel

    Returns how many reads there are, where the next record begins, and a `Stop`.
    """
    begin, end = wanted
    chrom, start, stop, length, mapq, flags, is_right_mate = columns
    at, count = 0, 0
    while at + _FIXED <= len(raw):
        size, where, position, bases = _head(raw, at)
        if size < 0 or not -1 <= where < references or position < -1:
            return count, at, Stop.DAMAGED
        if at + size > len(raw):
            break
        # Records without a reference (-1) stand at the end of a sorted file.
        here = ((where if where >= 0 else references) << POSITION_BITS) + position
        if ordered and here < last[0]:
            # References may stand in another order than in the header: an earlier one may follow.
            ends = where < begin >> POSITION_BITS
            return count, at, Stop.END_OF_STRETCH if ends else Stop.UNSORTED
        last[0] = here
        if here >= end:
            return count, at, Stop.END_OF_STRETCH
        flag, cigars = _uint16(raw, at + _FLAG), _uint16(raw, at + _CIGARS)
        if here >= begin and where >= 0 and position >= 0 and not flag & _UNMAPPED:
            on_reference, on_read = _covered(raw, at + _FIXED + raw[at + _NAME], cigars)
            if not bases and cigars == 2 and not on_read:
                on_read = _long_read(raw, at, at + size, on_reference)
            chrom[count], start[count] = where, position
            stop[count] = position + max(1, on_reference)
            # Secondary records may have no sequence.
            length[count] = bases or on_read
            mapq[count], flags[count] = raw[at + _MAPQ], flag
            mate = _int32(raw, at + _MATE_POSITION)
            is_right = mate < position or (mate == position and flag & _SECOND != 0)
            is_pair = flag & _PROPER != 0 and _int32(raw, at + _MATE_REFERENCE) == where
            is_right_mate[count] = is_pair and is_right
            count += 1
        at += size
    return count, at, Stop.END_OF_BYTES


@jit
def _head(raw: Any, at: Any) -> Any:
    """Return all bytes of a record (-1: impossible), its reference, its position, its bases."""
    bases = _int32(raw, at + _BASES)
    size = 4 + _int32(raw, at)
    smallest = _FIXED + raw[at + _NAME] + 4 * _uint16(raw, at + _CIGARS) + (bases + 1) // 2 + bases
    if bases < 0 or size < smallest:
        size = -1
    return size, _int32(raw, at + _REFERENCE), _int32(raw, at + _POSITION), bases


@jit
def _covered(raw: Any, first: Any, count: Any) -> Any:
    """Return the bases of the reference and of the read in the CIGAR operations at `first`."""
    on_reference, on_read = 0, 0
    for i in range(count):
        operation = _int32(raw, first + 4 * i) & 0xFFFFFFFF
        bases, kind = operation >> 4, operation & 15
        on_reference += bases * (_ON_REFERENCE >> kind & 1)
        on_read += bases * (_ON_READ >> kind & 1)
    return on_reference, on_read


@jit
def _long_read(raw: Any, at: Any, end: Any, on_reference: Any) -> Any:
    """Return the bases of a read without sequence whose CIGAR may be in the tag CG; else 0.

    Such a record has the operations 0S and N in place of more than 65,535 others, and N has the
    bases of the reference, which tells the tag from text that looks like it.
    """
    for tag in range(at + _FIXED + raw[at + _NAME] + 8, end - 7):
        if raw[tag] == 67 and raw[tag + 1] == 71 and raw[tag + 2] == 66 and raw[tag + 3] & 95 == 73:
            count = _int32(raw, tag + 4)
            if 0 < count <= (end - tag - 8) // 4:
                covered, on_read = _covered(raw, tag + 8, count)
                if covered == on_reference:
                    return on_read
    return 0


@jit
def _int32(raw: Any, at: Any) -> Any:
    return np.int64(np.int32(_uint16(raw, at) | _uint16(raw, at + 2) << 16))


@jit
def _uint16(raw: Any, at: Any) -> Any:
    return np.int64(raw[at]) | np.int64(raw[at + 1]) << 8
