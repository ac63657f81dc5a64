"""Files for MultiQC: by its documented form, and shown by the program where it is installed."""

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support.program import Run
from support.scanned import READS, SIGNATURES, answer, fasta, fastq

from multigpu.workloads.scan.output.multiqc import sample_names

MULTIQC = shutil.which("multiqc")


@pytest.mark.parametrize(("paths", "names"), [
    (["x/a_R1.fastq.gz", "b_R1_001.fq", "c.R2.fa.zst", "s3://b/d.fa"], ["a", "b", "c", "d"]),
    (["a_R1.fq", "a_R2.fq", "b_R1.fq"], ["a_R1", "a_R2", "b"]),
    (["x/a.fq", "y/a.fq", "-"], ["x/a.fq", "y/a.fq", "-"]),
    (["https://x.org/a/e_R1.fq.gz?key=f.fa"], ["e"]),
    (["sample_1.fq", ".fq", "_R1.fq"], ["sample_1", ".fq", "_R1"]),
])  # fmt: skip
def test_names__are_short_and_different(paths: list[str], names: list[str]) -> None:
    assert sample_names(paths) == names


def write(main: Run, folder: Path) -> None:
    (folder / "s.fa").write_bytes(fasta(SIGNATURES))
    for name in ("one_R1.fastq", "two_R1.fastq"):
        (folder / name).write_bytes(fastq(READS))
    samples = [str(folder / name) for name in ("one_R1.fastq", "two_R1.fastq")]
    command = ["scan", *samples, "-s", str(folder / "s.fa"), "--gpus", "none"]
    ended = main(*command, "--multiqc", str(folder / "scan_mqc.json"))
    assert (ended.status, ended.out) == (0, "")


def test_files__are_a_heat_map_and_columns(main: Run, tmp_path: Path) -> None:
    write(main, tmp_path)
    paths = (tmp_path / "scan_mqc.json", tmp_path / "scan_general_mqc.json")
    heat, columns = (json.loads(path.read_text()) for path in paths)
    assert (heat["plot_type"], columns["plot_type"]) == ("heatmap", "generalstats")
    reads = Counter(row[1] for row in answer() if row[1] != "sig1")
    shares = {name: round(100 * count / len(READS), 4) for name, count in reads.items()}
    del heat["data"]["one"]["sig1"]  # the name of two signatures
    assert heat["data"]["one"] == shares
    assert columns["data"]["two"]["reads"] == len(READS)
    assert columns["headers"].keys() == columns["data"]["two"].keys()


@pytest.mark.slow
@pytest.mark.skipif(MULTIQC is None, reason="no multiqc on PATH (pipx install multiqc)")
def test_files__are_shown_by_multiqc(main: Run, tmp_path: Path) -> None:
    write(main, tmp_path)
    assert MULTIQC is not None
    command = [MULTIQC, "--strict", "--no-version-check", "-o", "shown", "."]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    table = (tmp_path / "shown/multiqc_data/multiqc_general_stats.txt").read_text().splitlines()
    assert [line.split("\t")[:2] for line in table[1:]] == [["one", "7"], ["two", "7"]]
    page = (tmp_path / "shown/multiqc_report.html").read_text()
    assert "multigpu_scan_heatmap" in page
