"""Names of regions, genes for instance, from a BED file that goes with a table of counts."""

from dataclasses import replace

from multigpu.errors import InputError
from multigpu.formats.alignments.files import renamed_as
from multigpu.formats.alignments.regions import Regions, read_bed
from multigpu.workloads.cnv.results.intervals import overlaps


def name_regions(regions: Regions, path: str, rename: bool) -> Regions:
    """Return the regions with the names that a BED file or an interval list has for them.

    A region has the names of all regions of the file that share a base with it, with commas between
    them; only its own where the file has the very same regions.

    rename  whether names of chromosomes that differ by `chr` are the same

    Raises InputError where the file has no names for other regions, or shares no base with them.
    """
    named, _ = read_bed(path)
    named = renamed_as(named, regions) if rename else named
    if regions.first_difference(named) is None:
        return replace(regions, genes=named.genes or regions.genes)
    if not named.genes:
        raise InputError(path, "its regions have no names: column 4 of a BED file is for these")
    found: list[dict[str, None]] = [{} for _ in range(len(regions))]
    blocks = regions.by_name()
    for name, theirs in named.by_name().items():
        ours = blocks.get(name, slice(0, 0))
        here = (named.start[theirs], named.end[theirs], regions.start[ours], regions.end[ours])
        for region, other in overlaps(*here):
            for row, gene in sorted(zip(region.tolist(), other.tolist(), strict=True)):
                found[ours.start + row][named.genes[theirs.start + gene]] = None
    genes = tuple(",".join(filter(None, each)) for each in found)
    if not any(genes):
        raise InputError(path, "none of its names are of regions that the counts have")
    return replace(regions, genes=genes)
