"""Genomes by name and by the lengths of their chromosomes."""

import numpy as np
import pytest

from multigpu.errors import UsageError
from multigpu.formats.alignments.regions import windows
from multigpu.workloads.cnv.samples import genomes
from multigpu.workloads.cnv.samples.genomes import GENOMES, Genome, chromosome_lengths, find_genome


@pytest.mark.parametrize("genome", GENOMES, ids=lambda genome: genome.name)
@pytest.mark.parametrize("names", [("chr1", "chrX"), ("X", "1")])
def test_genome__is_known_by_its_lengths(genome: Genome, names: tuple[str, str]) -> None:
    ends = genome.lengths[0], genome.lengths[-2]
    first, x = ends if names[0] == "chr1" else ends[::-1]
    for chromosomes in ([(names[0], first)], [(names[1], x)], [(names[0], first), (names[1], x)]):
        regions = windows([("chr2", 1_000_000), *chromosomes], 500_000)
        assert genomes.genome_of_regions(regions) == genome


def test_genome__by_any_of_its_names() -> None:
    found = [genomes.genome_named(name) for name in ("HG38", "grch37", "b37", "hg3")]
    assert [each and each.name for each in found] == ["hg38", "hg19", "hg19", None]


@pytest.mark.parametrize("genome", GENOMES, ids=lambda genome: genome.name)
def test_genome__has_lengths_of_chromosomes_but_m_and_par_at_its_ends(genome: Genome) -> None:
    assert all(0 <= start < end <= genome.lengths[-2] for start, end in genome.par)
    assert all(start < 100_000 or end > genome.lengths[-2] - 200_000 for start, end in genome.par)
    assert sum(end - start for start, end in genome.par) < 3_200_000
    human, bases = genome.name.startswith("h"), sum(genome.lengths)
    assert list(genome.by_name()) == [*map(str, range(1, 23 if human else 20)), "X", "Y"]
    assert (3.05e9 < bases < 3.12e9) if human else (2.7e9 < bases < 2.75e9)


def test_genome__of_a_name_that_is_not_known_goes_by_the_lengths() -> None:
    regions = windows([("chr1", GENOMES[0].lengths[0])], 500_000)
    assert find_genome("hg38.p14", regions) == find_genome(None, regions) == GENOMES[0]
    assert find_genome("GRCh38", regions) == find_genome("canFam3", regions) == GENOMES[0]
    with pytest.raises(UsageError, match=r"^genome hg19: the .* lengths are those of hg38$"):
        find_genome("hg19", regions)
    assert find_genome("danRer11", windows([("chr1", 9)], 5)) is None
    for others in ([("chr1", 248_956_421), ("chrX", 5)], [("chr2", 248_956_422)]):
        assert genomes.genome_of_regions(windows(others, 500_000)) is None


def test_inside__goes_by_the_middle() -> None:
    start, end = np.array([0, 5, 8, 20]), np.array([10, 15, 18, 21])
    assert genomes.are_inside(((5, 12), (20, 21)), start, end).tolist() == [True, True, False, True]
    assert not genomes.are_inside((), start, end).any()


def test_lengths__are_not_those_of_another_genome() -> None:
    names = [("chr1", 100_000), ("2", 100_000), ("chr22", 60_000_000), ("chrM", 16_569)]
    regions = windows(names, 50_000)
    hg38 = genomes.genome_named("hg38")
    known = {"chr1": 248_956_422, "2": 242_193_529, "chrM": 16_569}
    assert chromosome_lengths(hg38, regions, {}) == known
    given = {"chrM": 16_569, "chr22": 10, "chr1": 300_000_000}  # of references: they come first
    found = {"chr1": 300_000_000, "2": 242_193_529, "chrM": 16_569}
    assert chromosome_lengths(hg38, regions, given) == found


def test_lengths__are_told_by_windows_without_gaps_alone() -> None:
    names = [("chr1", 100_000), ("2", 60_000)]
    regions = windows(names, 50_000)
    assert chromosome_lengths(None, regions, {}) == dict(names)
    for row, left in ((0, {"2": 60_000}), (3, {"chr1": 100_000, "2": 50_000})):
        some = regions.take(np.delete(np.arange(len(regions)), row))
        assert chromosome_lengths(None, some, {}) == left
