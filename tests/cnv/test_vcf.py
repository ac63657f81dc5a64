"""VCF from genotypes: qualities, filters, borders, genes, bases of the reference."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from support.called import bcftools, with_cnvs

from multigpu.formats.sequences.indexed_fasta import IndexedFasta
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.output.vcf import VcfSource, write_vcf
from multigpu.workloads.cnv.records import Genotypes, SampleFacts
from multigpu.workloads.cnv.results.result import CnvResult

SOURCE = VcfSource("multigpu cnv 'a b.tsv' --preset panel")


def genotyped(*cnvs: tuple[int, int, str, int], **changes: Any) -> CnvResult:
    """A result of `--segmentation hmm`; of the samples without a CNV c is not compared."""
    found = with_cnvs(*cnvs, options=CnvOptions(segmentation="hmm"), **changes)
    called, rows = found.called, np.arange(len(cnvs))
    copies = np.full((len(cnvs), 3), 2, np.int8)
    copies[:, 2] = -1
    copies[rows, called.sample] = called.shown
    quality = np.where(copies < 0, np.nan, 40.4 + np.arange(3)).astype(np.float32)
    segments = replace(found.segments, quality=30.0 - 15 * rows)
    common = np.array([start == 500 for start, *_ in cnvs])
    genotypes = Genotypes(copies=copies, quality=quality, is_common=common)
    return replace(found, segments=segments, genotypes=genotypes, classes=copies)


def records(found: CnvResult, folder: Path, source: VcfSource = SOURCE) -> list[list[str]]:
    """Return the fields of the records as bcftools reads them."""
    write_vcf(found, folder / "x.vcf.gz", source)
    text = bcftools("view", str(folder / "x.vcf.gz"))
    assert f"##multigpuCommand={SOURCE.command}\n" in text
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]


def test_genotypes__are_those_of_every_sample_with_their_qualities(tmp_path: Path) -> None:
    found = genotyped((100, 300, "a", 1), (100, 300, "b", 0), (500, 900, "a", 3))
    loss, gain = records(found, tmp_path)
    assert loss[5:7] == ["30", "PASS"]  # the best of both
    assert loss[8:] == [
        "GT:CN:CNQ:MD:MN", "0/1:1:40:-0.25:-0.5", "1/1:0:41:-0.75:-1", "./.:.:.:.:.",
    ]  # fmt: skip
    assert gain[5:7] == ["0", "LowQual;COMMON"]
    assert gain[9:] == ["0/1:3:40:0.75:0.5", "0/0:2:41:.:.", "./.:.:.:.:."]
    # Also where a sample has another CNV.
    found = genotyped((100, 300, "a", 1), (200, 400, "b", 3), names=("chrX",), usual=(1, 2, 2))
    found.classes[:, :2] = [[1, 3], [2, 3]]  # of two usual copies
    cells = [fields[9:11] for fields in records(found, tmp_path)]
    assert cells == [["1:0:40:-0.25:-0.5", "./.:3:41:.:."], ["0:1:40:.:.", "0/1:3:41:0.75:0.5"]]


def test_filter__says_that_all_carriers_are_outliers(tmp_path: Path) -> None:
    facts = SampleFacts.uncompared(np.full(3, 1e6), np.array([0.5, 0.1, 0.1]))
    rows = (100, 300, "a", 1), (100, 300, "b", 1), (500, 600, "a", 1)
    found = with_cnvs(*rows, facts=facts)
    assert [fields[6] for fields in records(found, tmp_path)] == ["PASS", "OUTLIER"]


def test_borders__lie_between_the_middles_of_neighbouring_regions(tmp_path: Path) -> None:
    # Regions of 10 bases from 0 to 400 on each chromosome, but for a gap from 200 to 300.
    rows = (0, 100, "a", 1), (100, 200, "a", 1), (300, 310, "b", 3), (390, 400, "c", 3)
    found = with_cnvs(*rows)
    regions = found.regions
    kept = (regions.start < 200) | (regions.start >= 300)
    segments = found.segments
    shift = np.where(segments.start >= 300, 10, 0)
    found = replace(
        found,
        regions=regions.take(np.flatnonzero(kept)),
        segments=replace(segments, first=segments.first - shift, stop=segments.stop - shift),
        lengths={"chr1": 450},
    )
    borders = [tuple(fields[7].split(";")[4:6]) for fields in records(found, tmp_path)]
    assert borders == [
        ("CIPOS=0,4", "CIEND=-5,5"),  # begins at POS 1, before which there is nothing
        ("CIPOS=-5,5", "CIEND=-5,105"),
        ("CIPOS=-105,5", "CIEND=-5,5"),
        ("CIPOS=-5,5", "CIEND=-5,50"),
    ]
    bounded = replace(found, options=replace(found.options, max_gap=40))
    borders = [tuple(fields[7].split(";")[4:6]) for fields in records(bounded, tmp_path)]
    assert borders[1:] == [
        ("CIPOS=-5,5", "CIEND=-5,40"), ("CIPOS=-40,5", "CIEND=-5,5"), ("CIPOS=-5,5", "CIEND=-5,40"),
    ]  # fmt: skip


def test_genes__are_escaped(tmp_path: Path) -> None:
    found = with_cnvs((100, 140, "a", 1))
    genes = ("B;R=1", "B;R=1", "", "α,50% x")
    (fields,) = records(replace(found, regions=replace(found.regions, genes=genes)), tmp_path)
    assert fields[7].split(";")[-1] == "GENES=B%3BR%3D1,α%2C50%25%20x"


def test_reference__gives_bases_and_lengths(tmp_path: Path) -> None:
    path = tmp_path / "genome.fa"
    path.write_text(">chr1\n" + "acGTN" * 100 + "\n>chr2\nAC\n")
    found = genotyped((0, 100, "a", 1), (101, 200, "b", 3), (104, 150, "a", 1))
    write_vcf(found, tmp_path / "x.vcf.gz", SOURCE._replace(genome=IndexedFasta(str(path))))
    with pysam.VariantFile(str(tmp_path / "x.vcf.gz")) as file:
        assert file.header.contigs["chr1"].length == 500
        assert [(each.pos, each.ref) for each in file] == [(1, "A"), (101, "A"), (104, "T")]
    # What programs do with it first.
    normalized = pysam.bcftools.norm("-f", str(path), "-c", "e", str(tmp_path / "x.vcf.gz"))
    assert len([line for line in normalized.splitlines() if not line.startswith("#")]) == 3
    assert "WARN" not in pysam.bcftools.norm.get_messages().upper()


@pytest.mark.parametrize("mode", ["none", "both", "id"])
def test_files_of_several_runs__are_merged_without_a_word(mode: str, tmp_path: Path) -> None:
    paths = [tmp_path / "x.vcf.gz", tmp_path / "y.vcf.gz"]
    for path, start in zip(paths, (100, 200), strict=True):
        write_vcf(genotyped((start, 300, "a", 1), (400, 500, "b", 3)), path, SOURCE)
    text = bcftools("merge", "--force-samples", "-m", mode, *map(str, paths))
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    assert {row[2] for row in rows} >= {"DEL:chr1:101-300", "DEL:chr1:201-300"}
    assert len(rows[0]) == 9 + 6
