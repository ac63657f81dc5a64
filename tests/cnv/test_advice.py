"""Advice where no CNVs were found: options that would show those that are there."""

from typing import Any

import numpy as np
import pytest

import multigpu
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts

GENE = 12  # targets of each gene, which is all there is of its chromosome
LOST = [("chr4", "s2"), ("chr8", "s5")]


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


def advice(counts: Counts, **options: Any) -> str:
    found = multigpu.cnv(counts, gpus="none", keep_matrices=False, **options)
    assert not len(found.called)
    (note,) = (note for note in found.notes if note.startswith("no CNVs were found"))
    return note


def test_advice__genes_that_are_a_chromosome_are_shown_genome_wide() -> None:
    said = advice(panel())
    assert said.startswith("no CNVs were found; what may show some: --genome-wide (every chrom")
    assert "has 12 regions in the median" in said
    assert calls(panel(), genome_wide=True) == LOST


def test_advice__a_width_that_shows_them() -> None:
    said = advice(panel(), genome_wide=True, min_width=20)
    assert "; what may show some: --min-width 12 (2 segments are beyond the thresholds" in said
    assert calls(panel(), genome_wide=True, min_width=12) == LOST


@pytest.mark.parametrize("use_median", [False, True])
def test_advice__a_threshold_that_shows_them(use_median: bool) -> None:
    options = {"genome_wide": True, "use_median": use_median}
    said = advice(panel(), lower=-1.5, **options)
    threshold = said.partition("--lower ")[2].partition(" ")[0]
    assert "the threshold is -1.5" in said
    assert set(calls(panel(), lower=float(threshold), **options)) & set(LOST)


def test_advice__few_reads_need_larger_regions() -> None:
    said = advice(panel(depth=8.0, lost=1.0), genome_wide=True)
    assert "larger windows or regions (they have 7.65 reads in the mean)" in said
    assert "larger windows" not in advice(panel(lost=1.0), genome_wide=True)


def test_advice__where_nothing_comes_near() -> None:
    said = advice(panel(depth=2000, lost=1.0), genome_wide=True)
    assert said.startswith("no CNVs were found: no segment comes near the thresholds; ")
