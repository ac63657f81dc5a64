"""Files of each sample: its own CNVs, and no others."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.called import bcftools, with_cnvs

from multigpu.workloads.cnv.output.files import write_by_sample
from multigpu.workloads.cnv.output.vcf import VcfSource
from multigpu.workloads.cnv.results.result import CnvResult

TRUVARI = shutil.which("truvari")
ROWS = (100, 300, "a", 1), (100, 300, "b", 1), (320, 350, "a", 3), (400, 500, "b", 0)


def found() -> CnvResult:
    result = with_cnvs(*ROWS)
    genes = tuple(f"g{row // 10}" for row in range(len(result.regions)))
    return replace(result, samples=("a/1", ".b", "c"), regions=replace(result.regions, genes=genes))


def test_vcf__has_the_records_of_one_sample(tmp_path: Path) -> None:
    write_by_sample(found(), tmp_path, VcfSource())
    of = {}
    for name, sample in (("a%2F1", "a/1"), ("%2Eb", ".b"), ("c", "c")):
        path = str(tmp_path / f"{name}.vcf.gz")
        assert bcftools("view", "-h", path).endswith(f"\tFORMAT\t{sample}\n")
        of[sample] = bcftools("query", "-f", "%ID[ %GT]\n", path).splitlines()
        assert bcftools("view", "-H", "-r", "chr1:1-1000", path).count("\n") == len(of[sample])
    assert of == {
        "a/1": ["DEL:chr1:101-300 0/1", "DUP:chr1:321-350 0/1"],
        ".b": ["DEL:chr1:101-300 0/1", "DEL:chr1:401-500 1/1"],
        "c": [],
    }


@pytest.mark.skipif(not TRUVARI, reason="no truvari on PATH (pipx install truvari)")
def test_vcf__is_all_of_itself_for_truvari(tmp_path: Path) -> None:
    write_by_sample(replace(found(), lengths={"chr1": 1000}), tmp_path, VcfSource())
    path, out = str(tmp_path / "a%2F1.vcf.gz"), tmp_path / "bench"
    files = ("-b", path, "-c", path, "-o", str(out))
    words = (str(TRUVARI), "bench", *files, "--pctseq", "0", "--sizemin", "0")
    subprocess.run((*words, "--sizefilt", "0"), check=True, capture_output=True)
    facts = json.loads((out / "summary.json").read_text())
    assert (facts["TP-base"], facts["precision"], facts["recall"]) == (2, 1, 1)


def test_bed__has_losses_and_gains_with_genes(tmp_path: Path) -> None:
    result = found()
    quality = result.segments.quality.copy()
    quality[[2, 3]] = 12.6, 5_000
    segments = replace(result.segments, quality=quality)
    write_by_sample(replace(result, segments=segments), tmp_path, None)
    head = "#chrom\tstart\tend\tcopy_number\tquality\tregions\tgenes\n"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a%2F1.del.bed": f"{head}chr1\t100\t300\tCN1\t.\t20\tg0,g1\n",
        "a%2F1.dup.bed": f"{head}chr1\t320\t350\tCN3\t13\t3\tg2\n",
        "%2Eb.del.bed": f"{head}chr1\t100\t300\tCN1\t.\t20\tg0,g1\n"
        "chr1\t400\t500\tCN0\t1000\t10\tg3\n",
        "%2Eb.dup.bed": head, "c.del.bed": head, "c.dup.bed": head,
    }  # fmt: skip
