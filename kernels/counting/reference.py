"""The plain count: every read against every region. The oracle of the tests."""

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.counting.types import NO_FRAGMENT, READ_DTYPES, REVERSE, Counting, Reads


def count(
    reads: Reads,
    chrom: NDArray[np.int32],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    options: Counting,
) -> NDArray[np.int64]:
    """Return int64[regions]: how many reads cover a base of each region.

    chrom, start, end  [regions], numbers of references as the reads have them, 0-based half-open
    """
    counts = np.zeros(len(chrom), np.int64)
    seen = set()
    columns = (getattr(reads, name).tolist() for name in READ_DTYPES)
    is_fragment = options.count == "fragments"
    for chromosome, position, stop, length, mapq, flag, is_right in zip(*columns, strict=True):
        if flag & options.exclude_flags or flag & options.include_flags != options.include_flags:
            continue
        if is_fragment and (is_right or flag & NO_FRAGMENT):
            continue
        reverse = bool(flag & REVERSE)
        here = chrom == chromosome
        if not here.any() or stop <= start[here].min() or position >= end[here].max():
            continue  # R asks the file for what lies from the first to the last region
        place = (chromosome, position, reverse, length if options.get_width else 0)
        duplicate = options.remove_duplicates and place in seen
        seen.add(place)
        if duplicate or mapq < options.min_mapq:
            continue
        first = position
        if options.stranded_start and reverse and not options.aligned_width:
            first += length - options.read_width
        whole = options.get_width and not options.stranded_start
        last = first + (length if whole else options.read_width)
        last = stop if options.aligned_width else last
        counts += here & (start < last) & (end > first)
    return counts
