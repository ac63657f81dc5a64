"""Spans of alignment files."""

from collections.abc import Sequence
from dataclasses import dataclass

from multigpu.formats.alignments.bam import Stretch
from multigpu.formats.alignments.regions import Regions


@dataclass(frozen=True)
class CountSpan:
    """A piece of an alignment file.

    file     number of the file
    stretch  records of it
    """

    file: int
    stretch: Stretch


def counted_ranges(regions: Regions, references: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return where the first region of each reference begins and its last one ends, in bases.

    references  numbers of the references that the chromosomes of the regions stand for
    """
    return {
        references[regions.chrom[rows.start]]: (
            int(regions.start[rows].min()),
            int(regions.end[rows].max()),
        )
        for rows in regions.blocks
    }
