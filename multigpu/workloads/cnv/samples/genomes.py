"""Known genomes: how they are recognized, and where X and Y are alike.

Lengths and places: assembly reports of NCBI, for hs1 those of T2T-CHM13v2.0; from 0, half open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError, option
from multigpu.formats.alignments.files import without_chr
from multigpu.formats.alignments.regions import Regions

FIRST_NAMES, X_NAMES, Y_NAMES = ("chr1", "1"), ("chrX", "X"), ("chrY", "Y")

Intervals = tuple[tuple[int, int], ...]  # (start, end) in bases


@dataclass(frozen=True)
class Genome:
    """A genome, with IGV's name for it."""

    name: str
    others: tuple[str, ...]  # its other names
    par: Intervals  # pseudoautosomal regions of X, of which everybody has two copies
    lengths: tuple[int, ...]  # bases of 1, 2, …, X and Y; M has two lengths in hg19

    def by_name(self) -> dict[str, int]:
        """Return the length of every chromosome, by its name without `chr`."""
        autosomes = map(str, range(1, len(self.lengths) - 1))
        return dict(zip((*autosomes, "X", "Y"), self.lengths, strict=True))


GENOMES = (
    Genome("hg38", ("GRCh38",), ((10_000, 2_781_479), (155_701_382, 156_030_895)), (
        248_956_422, 242_193_529, 198_295_559, 190_214_555, 181_538_259, 170_805_979, 159_345_973,
        145_138_636, 138_394_717, 133_797_422, 135_086_622, 133_275_309, 114_364_328, 107_043_718,
        101_991_189, 90_338_345, 83_257_441, 80_373_285, 58_617_616, 64_444_167, 46_709_983,
        50_818_468, 156_040_895, 57_227_415,
    )),
    Genome("hg19", ("GRCh37", "b37", "hs37d5"), ((60_000, 2_699_520), (154_931_043, 155_260_560)), (
        249_250_621, 243_199_373, 198_022_430, 191_154_276, 180_915_260, 171_115_067, 159_138_663,
        146_364_022, 141_213_431, 135_534_747, 135_006_516, 133_851_895, 115_169_878, 107_349_540,
        102_531_392, 90_354_753, 81_195_210, 78_077_248, 59_128_983, 63_025_520, 48_129_895,
        51_304_566, 155_270_560, 59_373_566,
    )),
    Genome("hs1", ("T2T-CHM13v2.0", "chm13v2.0"), ((0, 2_394_410), (153_925_834, 154_259_566)), (
        248_387_328, 242_696_752, 201_105_948, 193_574_945, 182_045_439, 172_126_628, 160_567_428,
        146_259_331, 150_617_247, 134_758_134, 135_127_769, 133_324_548, 113_566_686, 101_161_492,
        99_753_195, 96_330_374, 84_276_897, 80_542_538, 61_707_364, 66_210_255, 45_090_682,
        51_324_926, 154_259_566, 62_460_029,
    )),
    Genome("mm39", ("GRCm39",), ((168_752_754, 169_376_592),), (
        195_154_279, 181_755_017, 159_745_316, 156_860_686, 151_758_149, 149_588_044, 144_995_196,
        130_127_694, 124_359_700, 130_530_862, 121_973_369, 120_092_757, 120_883_175, 125_139_656,
        104_073_951, 98_008_968, 95_294_699, 90_720_763, 61_420_004, 169_476_592, 91_455_967,
    )),
    Genome("mm10", ("GRCm38",), ((169_969_758, 170_931_299),), (
        195_471_971, 182_113_224, 160_039_680, 156_508_116, 151_834_684, 149_736_546, 145_441_459,
        129_401_213, 124_595_110, 130_694_993, 122_082_543, 120_129_022, 120_421_639, 124_902_244,
        104_043_685, 98_207_768, 94_987_271, 90_702_639, 61_431_566, 171_031_299, 91_744_698,
    )),
)  # fmt: skip


def genome_named(name: str) -> Genome | None:
    """Return the genome of this name in any case, or None."""
    names = {each.lower(): genome for genome in GENOMES for each in (genome.name, *genome.others)}
    return names.get(name.lower())


def find_genome(name: str | None, regions: Regions) -> Genome | None:
    """Return the genome of this name, else that of these regions, or None.

    Raises UsageError where the name and the regions are of different genomes.
    """
    asked, found = genome_named(name) if name else None, genome_of_regions(regions)
    if asked and found and asked != found:
        raise UsageError(
            f"{option('genome')} {name}: the chromosome lengths are those of {found.name}"
        )
    return asked or found


def genome_of_regions(regions: Regions) -> Genome | None:
    """Return the genome whose chromosome 1 or X ends where the regions on it do, or None."""
    first, x = _last_end(regions, FIRST_NAMES), _last_end(regions, X_NAMES)
    return next((g for g in GENOMES if first == g.lengths[0] or x == g.lengths[-2]), None)


def chromosome_lengths(
    genome: Genome | None,
    regions: Regions,
    references: Mapping[str, int],
    by_windows: bool = True,
) -> dict[str, int]:
    """Return lengths in bases by name: those of the references, else those of the genome.

    Of other chromosomes windows without gaps tell the length, from 0 to the end of the last one. A
    chromosome whose regions end after its length is left out: it is of another genome.

    by_windows  whether windows tell lengths: those that leave out the last bases tell less
    """
    known = genome.by_name() if genome else {}
    found = {}
    for name, block in regions.by_name().items():
        start, end = regions.start[block], regions.end[block]
        last = int(end.max())
        length = references.get(name, known.get(without_chr(name), 0))
        if by_windows and not length and start[0] == 0 and (start[1:] == end[:-1]).all():
            length = last
        if last <= length:
            found[name] = length
    return found


def chromosome_number(regions: Regions, names: Sequence[str]) -> int:
    """Return the number of the first chromosome with one of these names; -1 if there is none."""
    return next((k for k, name in enumerate(regions.names) if name in names), -1)


def _last_end(regions: Regions, names: Sequence[str]) -> int:
    """Return the end of the last region on a chromosome of these names; 0 if there is none."""
    wanted = chromosome_number(regions, names)
    blocks = [block for block in regions.blocks if regions.chrom[block.start] == wanted]
    return max((int(regions.end[block].max()) for block in blocks), default=0)


def are_inside(
    intervals: Intervals, start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return bool[n]: whether the middle of each region lies in one of the intervals."""
    found = np.zeros(len(start), np.bool_)
    for first, stop in intervals:
        middle = start + (end - start) // 2
        found |= (middle >= first) & (middle < stop)
    return found
