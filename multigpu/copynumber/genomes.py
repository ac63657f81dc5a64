"""Genomes that are known: by what they are recognized, and where X and Y are alike.

Lengths and places: assembly reports of NCBI, for hs1 those of T2T-CHM13v2.0; from 0, half open.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError
from multigpu.io.regions import Regions

FIRST_NAMES, X_NAMES, Y_NAMES = ("chr1", "1"), ("chrX", "X"), ("chrY", "Y")

Places = tuple[tuple[int, int], ...]  # (start, end) on a chromosome


@dataclass(frozen=True)
class Genome:
    """A genome by IGV's name.

    others    names that it goes by elsewhere
    first, x  lengths of its chromosomes 1 and X, bases
    par       the pseudoautosomal regions of X, of which everybody has two copies
    """

    name: str
    others: tuple[str, ...]
    first: int
    x: int
    par: Places


GENOMES = (
    Genome("hg38", ("GRCh38",), 248_956_422, 156_040_895,
           ((10_000, 2_781_479), (155_701_382, 156_030_895))),
    Genome("hg19", ("GRCh37", "b37", "hs37d5"), 249_250_621, 155_270_560,
           ((60_000, 2_699_520), (154_931_043, 155_260_560))),
    Genome("hs1", ("T2T-CHM13v2.0", "chm13v2.0"), 248_387_328, 154_259_566,
           ((0, 2_394_410), (153_925_834, 154_259_566))),
    Genome("mm39", ("GRCm39",), 195_154_279, 169_476_592, ((168_752_754, 169_376_592),)),
    Genome("mm10", ("GRCm38",), 195_471_971, 171_031_299, ((169_969_758, 170_931_299),)),
)  # fmt: skip


def named(name: str) -> Genome | None:
    """The genome of this name, whatever case it is in."""
    wanted = name.lower()
    names = {each.lower(): genome for genome in GENOMES for each in (genome.name, *genome.others)}
    return names.get(wanted)


def known(name: str | None, regions: Regions) -> Genome | None:
    """The genome of this name or, where there is none, that of these regions, if any.

    Raises UsageError where these two are not the same.
    """
    said, found = named(name) if name else None, of_regions(regions)
    if said and found and said != found:
        raise UsageError(f"--genome {name}: but chromosomes are as long as those of {found.name}")
    return said or found


def of_regions(regions: Regions) -> Genome | None:
    """The genome whose chromosome 1 or X ends where the regions on it do, if any."""
    first, x = _end(regions, FIRST_NAMES), _end(regions, X_NAMES)
    return next((each for each in GENOMES if first == each.first or x == each.x), None)


def number(regions: Regions, names: Sequence[str]) -> int:
    """Of the first chromosome that has one of these names; -1 where there is none."""
    return next((k for k, name in enumerate(regions.names) if name in names), -1)


def _end(regions: Regions, names: Sequence[str]) -> int:
    """Of the last region on a chromosome of these names; 0 where there is none."""
    wanted = number(regions, names)
    own = [block for block in regions.blocks if regions.chrom[block.start] == wanted]
    return max((int(regions.end[block].max()) for block in own), default=0)


def inside(places: Places, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[n]: whether the middle of each stretch lies in one of these places."""
    found = np.zeros(len(start), np.bool_)
    if not places:
        return found
    middle = start + (end - start) // 2
    for first, stop in places:
        found |= (middle >= first) & (middle < stop)
    return found
