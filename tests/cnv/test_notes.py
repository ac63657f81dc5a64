"""Notes on what the calls may be wrong about, or may have missed, whatever was found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import multigpu
from multigpu import Counts, UsageError
from multigpu.formats.alignments.regions import Regions, windows

GENE = 12  # targets of each gene, which is all there is of its chromosome
LOST = [("chr4", "s2"), ("chr8", "s5")]
NONE = "no CNVs were found"
SMALL = (("chr1", 300), ("chr2", 300), ("chr21", 40))
CONTIGS = (("chr1", 300), ("chr2", 300), ("decoy1", 8), ("decoy2", 8), ("equal", 2))
OPTIONS: list[dict[str, Any]] = [{}, {"norm": 2}, {"norm_type": "median"}, {"ploidy": 2}]


def panel(depth: float = 200.0, lost: float = 0.5) -> Counts:
    """Twenty genes on a chromosome each, in ten samples of which two have lost one copy of one."""
    random = np.random.default_rng(1)
    places = [(f"chr{c}", 3000 * k, 3000 * k + 200) for c in range(1, 21) for k in range(GENE)]
    regions = Regions.of(places)
    effects = random.lognormal(0, 0.3, len(regions)) * depth
    mean = np.outer(effects, random.uniform(0.7, 1.4, 10))
    for chrom, sample in LOST:
        mean[regions.chrom == regions.names.index(chrom), int(sample[1:])] *= lost
    names = tuple(f"s{k}" for k in range(10))
    return Counts(regions, names, random.poisson(mean).astype(np.int32))


def calls(counts: Counts, **options: Any) -> list[tuple[str, str]]:
    rows = multigpu.cnv(counts, gpus="none", keep_matrices=False, **options).cnvs.to_pylist()
    return [(row["chrom"], row["sample"]) for row in rows]


def cohort(
    change: dict[tuple[str, int], float], *, depth: float = 200.0, samples: int = 10,
    sizes: tuple[tuple[str, int], ...] = (("chr1", 300), ("chr2", 300)),
) -> Counts:  # fmt: skip
    """Return counts in which (chromosome, sample) have other means, by these factors."""
    random = np.random.default_rng(2)
    regions = windows([(name, 1000 * size) for name, size in sizes], 1000)
    mean = np.outer(random.lognormal(0, 0.2, len(regions)), random.uniform(0.8, 1.2, samples))
    for (name, sample), times in change.items():
        mean[regions.chrom == regions.names.index(name), sample] *= times
    names = tuple(f"s{k}" for k in range(samples))
    return Counts(regions, names, random.poisson(mean * depth).astype(np.int32))


def test_notes__of_cases_and_controls_are_there_once() -> None:
    counts, said = cohort({}), "t.bed: names are used"
    cases = replace(counts, samples=tuple("abcdefghij"), notes=(said,))
    controls = replace(counts, notes=(said, "of the controls"))
    found = multigpu.cnv(cases, controls=controls, model="reference", gpus="none").notes
    assert found[:2] == (said, "of the controls")
    assert found.count(said) == 1


def notes(counts: Counts, said: str, **options: Any) -> list[str]:
    """Return the notes that have this text."""
    found = multigpu.cnv(counts, gpus="none", keep_matrices=False, **options)
    return [note for note in found.notes if said in note]


def test_advice__genes_that_are_a_chromosome_are_shown_genome_wide() -> None:
    (said,) = notes(panel(), NONE)
    assert said.startswith("no CNVs were found; what may show some: genome_wide (every chrom")
    assert "has few regions, 12 in the median" in said
    assert calls(panel(), genome_wide=True) == LOST
    (said,) = notes(panel(depth=2000, lost=1.0), NONE, genome_wide=True)
    assert said.startswith("no CNVs were found: no segment comes near the thresholds; ")


@pytest.mark.parametrize(("name", "limit"), [("min_width", 20), ("min_length", 1_000_000)])
def test_advice__a_width_or_length_that_shows_them(name: str, limit: int) -> None:
    (said,) = notes(panel(), NONE, **{"genome_wide": True, name: limit})
    shown = said.partition(f"; what may show some: {name} ")[2].partition(" ")[0]
    assert f"{name} {shown} (2 segments are beyond the thresholds, with fewer than" in said
    assert calls(panel(), **{"genome_wide": True, name: int(shown)}) == LOST


@pytest.mark.parametrize("use_median", [False, True])
def test_advice__a_threshold_that_shows_them(use_median: bool) -> None:
    options = {"genome_wide": True, "use_median": use_median}
    (said,) = notes(panel(), NONE, lower=-1.5, **options)
    threshold = said.partition("lower ")[2].partition(" ")[0]
    assert "the threshold is -1.5" in said
    assert set(calls(panel(), lower=float(threshold), **options)) & set(LOST)


def test_advice__a_whole_chromosome_that_its_own_size_factors_hide() -> None:
    counts = cohort({("chr21", 3): 1.5}, sizes=SMALL)
    (note,) = notes(counts, NONE)
    assert "genome_wide (s3 has 1.50 times the usual reads on chr21: " in note
    assert set(calls(counts, genome_wide=True)) == {("chr21", "s3")}
    assert not notes(counts, "on chr21", genome_wide=True)
    # Advised once, also where chromosomes have few regions.
    few = cohort({("chr21", 3): 1.5}, sizes=(("chr1", 40), ("chr2", 40), ("chr21", 40)))
    (note,) = notes(few, NONE)
    assert note.count("genome_wide (") == note.count("usual reads on chr21") == 1
    # Beside a CNV that was found, too.
    counts.values[100:130, 1] //= 2
    assert notes(counts, "what may show CNVs that were not found: genome_wide (s3 has 1.50 times")
    assert not notes(cohort({}, sizes=SMALL), "usual reads")


def test_advice__a_contig_of_many_reads_does_not_change_what_is_usual() -> None:
    """Mitochondria have thousands of copies, in some samples several times those of others."""
    counts = cohort({("MT", 3): 4}, sizes=(*SMALL, ("MT", 16)))
    counts.values[-16:] *= 100
    assert not notes(counts, "usual reads on chr")
    counts.values[600:640, 5] //= 2
    assert notes(counts, "genome_wide (s5 has 0.50 times the usual reads on chr21: ")


def test_advice__few_reads_and_near_misses_beside_a_cnv() -> None:
    counts = cohort({}, depth=30)
    counts.values[100:130, 1] = 0
    (note,) = notes(counts, "what may show CNVs that were not found: ")
    assert "larger windows or regions (they have 32.9 reads in the mean), as noise hides" in note
    counts = cohort({})
    counts.values[100:110, 1] //= 2
    counts.values[108, 1] *= 2  # within the loss: its mean comes near the threshold only
    (note,) = notes(counts, "use_median (the median is beyond a threshold, the mean not: s1 chr1:")
    assert calls(counts) == []
    assert calls(counts, use_median=True) == [("chr1", "s1")]


def test_depth__a_sample_with_few_reads_is_named() -> None:
    counts = cohort({(name, 3): 0.004 for name in ("chr1", "chr2")}, depth=150)
    (note,) = notes(counts, "too few reads a region to be called")
    assert "where the median sample has 15" in note
    assert ": s3 (0.69); " in note
    # All of little depth, and one of less that is enough.
    assert not notes(cohort({}, depth=5), "too few reads a region")
    assert not notes(cohort({("chr1", 3): 0.2}, depth=150), "too few reads a region")


def test_samples__that_are_few_or_the_same_are_noted() -> None:
    assert notes(cohort({}, samples=3), "only 3 samples: with fewer than 6 ")
    assert not notes(cohort({}, samples=6), "samples: with fewer")
    control = replace(cohort({}, samples=1), samples=("c",))
    found = [
        notes(cohort({}, samples=2), "with fewer", model="reference", controls=control, **options)
        for options in ({"segmentation": "hmm"}, {})
    ]
    assert [len(each) for each in found] == [1, 0]
    assert found[0][0].startswith("only 1 control: with fewer than 6 ")
    counts = cohort({})
    values = counts.values.copy()
    values[:, 4] = values[:, 1]
    values[:, 2] = values[::-1, 0]  # as many reads, in other places
    (note,) = notes(replace(counts, values=values), "the same counts have ")
    assert note.startswith("the same counts have s1 and s4: leave one of them out")
    assert not notes(counts, "the same counts have ")


@pytest.mark.parametrize(("change", "said"), [(7.3, "normalized"), (None, "logarithms or ratios")])
def test_fractions__of_no_reads_are_said(change: float | None, said: str) -> None:
    counts = cohort({})
    values = counts.values / change if change else np.log2(counts.values + 1)
    found = notes(replace(counts, values=values), "")
    assert any(n.startswith(f"the counts have fractions, as if they were {said}:") for n in found)
    assert not any("larger windows" in note for note in found)
    assert not notes(replace(counts, values=counts.values * 1.0), "fractions")


def test_hmm__tells_that_ploidies_play_no_part() -> None:
    said = "copies are counted as if 2 were usual in every sample"
    assert notes(cohort({}), said, segmentation="hmm", ploidy={"s1": 3})
    assert not notes(cohort({}), said, segmentation="hmm", ploidy=2)


@pytest.mark.parametrize(("options", "said"), [
    ({}, ": all samples have the usual copies"),
    ({"min_quality": 2e3}, " that pass min_quality 2,000"),
    ({"min_quality": 30, "min_length": 10**6}, " that pass min_length 1e+06 and min_quality 30"),
])  # fmt: skip
def test_hmm__tells_by_which_limits_nothing_is_found(options: dict[str, Any], said: str) -> None:
    (note,) = notes(cohort({}), NONE, segmentation="hmm", **options)
    assert said in note


@pytest.mark.parametrize("options", OPTIONS)
def test_contigs__without_reads_in_a_sample_are_left_out(options: dict[str, Any]) -> None:
    counts = cohort({("decoy1", 3): 0.0, ("decoy2", 3): 0.0}, sizes=CONTIGS)
    counts.values[counts.regions.chrom == 4] = 7
    counts.values[100:130, 1] //= 2
    found = multigpu.cnv(counts, gpus="none", **options)
    assert set(found.called.chrom.tolist()) == {0}
    decoys = counts.regions.chrom > 1
    assert np.isnan(found.matrices["sini"].values[decoys & (counts.regions.chrom < 4)]).all()
    assert set(found.segmentation["chrom"].to_pylist()) <= {"chr1", "chr2", "equal"}
    (note,) = (note for note in found.notes if note.startswith("decoy1, decoy2"))
    assert ": not called, " in note
    rows = ~decoys
    alone = counts.regions.take(np.flatnonzero(rows))
    other = multigpu.cnv(Counts(alone, counts.samples, counts.values[rows]), gpus="none", **options)
    if "norm" not in options:  # coverages are those of all chromosomes
        assert other.cnvs == found.cnvs
    with pytest.raises(UsageError, match="decoy1: the size factor of sample s3 is 0"):
        multigpu.cnv(counts, gpus="none", compat_r=True, **options)


def test_contigs__without_reads_of_a_single_sample_are_left_out() -> None:
    counts = cohort({("decoy1", 0): 0.0}, sizes=CONTIGS[:3], samples=1)
    assert notes(counts, "decoy1: not called, a chromosome without any read", model="single")
    # With signs in their names, too, as in HLA-DRB1*15:01 and others that SAM allows.
    counts = cohort({("HLA;A*01:01", 3): 0.0}, sizes=(*CONTIGS[:2], ("HLA;A*01:01", 30)))
    (note,) = notes(counts, "not called, the size factor")
    assert note == "HLA;A*01:01: not called, the size factor of sample s3 is 0"


def test_contigs__none_of_which_can_be_called_are_an_error() -> None:
    counts = cohort({("decoy1", 3): 0.0}, sizes=(("decoy1", 300), ("chrY", 50)))
    counts.values[counts.regions.chrom == 1, 2] = 0
    with pytest.raises(UsageError, match="decoy1: the size factor of sample s3 is 0"):
        multigpu.cnv(counts, gpus="none")


def test_x__without_y_in_anybody_is_noted() -> None:
    counts = cohort({("chrX", 3): 0.5}, sizes=(("chr1", 300), ("chrX", 200), ("chrY", 40)))
    counts.values[counts.regions.chrom == 2] = 0
    (note,) = notes(counts, "hardly any Y is read in any sample")
    assert "to tell the sex of s3 (X 0." in note
    assert "s2" not in note


def test_genome__that_may_be_another_is_noted() -> None:
    counts = cohort({})
    assert not notes(counts, "is it another?", genome="GRCh38")
    regions = replace(counts.regions, start=counts.regions.start + 249_000_000)
    regions = replace(regions, end=regions.start + 1000)
    (note,) = notes(replace(counts, regions=regions), "genome hg19", genome="hg19")
    assert "regions end after the end of its chr1, chr2: is it another?" in note
