"""The plain count: every read against every region. The oracle of the tests."""

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.counting.types import Counting, Reads


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
    columns = (reads.chrom, reads.start, reads.end, reads.length, reads.mapq, reads.reverse)
    rows = zip(*(each.tolist() for each in columns), strict=True)
    for chromosome, position, stop, length, mapq, reverse in rows:
        here = chrom == chromosome
        if not here.any() or stop <= start[here].min() or position >= end[here].max():
            continue  # R asks the file for what lies from the first to the last region
        place = (chromosome, position, reverse, length if options.get_width else 0)
        duplicate = options.remove_duplicates and place in seen
        seen.add(place)
        if duplicate or mapq < options.min_mapq:
            continue
        first = position
        if options.stranded_start and reverse:
            first += length - options.read_width
        whole = options.get_width and not options.stranded_start
        last = first + (length if whole else options.read_width)
        counts += here & (start < last) & (end > first)
    return counts
