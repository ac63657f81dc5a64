"""The report of a scan, opened in a browser without a network."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.browser import browse
from support.markup import NAMES
from support.program import Run
from support.scanned import READS, SIGNATURES, fasta, fastq, signatures_named

from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.report import page_of
from multigpu.workloads.scan.tally import Sums, Tallies, Tally

MOST_BYTES = 7_000_000


@pytest.mark.slow
def test_report__draws_all_figures_and_says_nothing_on_a_console(main: Run, tmp_path: Path) -> None:
    (tmp_path / "r.fq").write_bytes(fastq(READS))
    (tmp_path / "s.fa").write_bytes(fasta(SIGNATURES))
    genome = "ACGTTTGCA" * 20_000
    (tmp_path / "g.fa").write_bytes(fasta([("<b>chr</b>", genome), ("short", "ACGT")]))
    files = [str(tmp_path / name) for name in ("r.fq", "g.fa", "s.fa", "page.html")]
    command = ["scan", *files[:2], "-s", files[2], "--report", files[3], "--gpus", "none"]
    ended = main(*command, "--hits", "all", "--max-mismatches", "1", "--max-chunk-bytes", "50k")
    assert (ended.status, ended.out) == (0, "")
    document, said = browse(Path(files[3]).read_bytes(), tmp_path)
    assert said == []
    drawn = re.findall(r'class="figure js-plotly-plot".*?main-svg', document, re.DOTALL)
    titles = re.findall("<h2>(.*?)</h2>", document)
    figures = ["Files and signatures", "Places in samples", "Places in long samples"]
    assert titles == [*figures, "Errors by position", "Scores", "Files", "Signatures"]
    assert len(drawn) == 5
    assert "<dd>--hits all, --max-mismatches 1</dd>" in document


def records_of(file: int, records: int, matched: int) -> Sums:
    return Sums.of(np.array([file]), records=np.array([records]), matched=np.array([matched]))


def tallies(files: int, signatures: int) -> Tallies:
    """Return numbers with matches of 50 signatures in each file."""
    rng = np.random.default_rng(7)
    names = signatures_named([b"marker%d" % i for i in range(signatures)])
    made = Tallies([f"run/{NAMES[0]}{i}_R1.fastq.gz" for i in range(files)], names)
    for unit in range(files):
        keys = unit * signatures + rng.integers(0, signatures, 50)
        ones = np.ones(50)
        sums = Sums.of(keys, reads=ones, scored=ones, score=ones * 2**24, seen=ones * 2**20)
        made.add(Tally(sums={"files": records_of(unit, 100, 50), "matches": sums}))
    return made


@pytest.mark.parametrize(("files", "signatures"), [(1, 1), (1000, 1000)])
def test_report__is_small_with_one_file_and_with_a_thousand(files: int, signatures: int) -> None:
    made = tallies(files, signatures)
    page = page_of(made, ScanOptions()).html()
    assert page == page_of(made, ScanOptions()).html()
    assert len(page) < MOST_BYTES
    text = page.decode()
    assert text.count("<option ") == (10 if files == 1000 else 0)
    assert f"<dt>Files</dt><dd>{files:,}</dd>" in text
    assert NAMES[0] not in text
    made = Tallies(["a.fq"], signatures_named([b"x"]))
    made.add(Tally(sums={"files": records_of(0, 3, 0)}))
    page = page_of(made, ScanOptions()).html()
    assert b"<td>a</td><td>3</td><td>0</td><td>0</td>" in page


@pytest.mark.parametrize("where", ["reads", "headers"])
def test_report__of_a_sheet_has_unknown_barcodes(main: Run, tmp_path: Path, where: str) -> None:
    barcodes = ["ACGT+TTTTT", "GGCC+AAAAA", "cccc+CCCCC", "CCCC+CCCCC", "ACGT+AAAAA", "GGCC+AAAAT"]
    for mate in (0, 1):
        reads = [
            (f"r{i} {mate + 1}:N:0:{text}", f"{text.split('+')[mate]}GATTACA" * (where == "reads"))
            for i, text in enumerate(barcodes)
        ]
        lines = fastq([(name, bases, "I" * len(bases)) for name, bases in reads])
        (tmp_path / f"x_R{mate + 1}.fq").write_bytes(lines)
    sheet = "sample\tbarcode1\tbarcode2\nA\tACGT\tTTTTT\nB\tGGCC\tAAAAA\n"
    (tmp_path / "sheet.tsv").write_text(sheet)
    files = [str(tmp_path / name) for name in ("x_R1.fq", "x_R2.fq")]
    command = ["scan", *files, "--sample-sheet", str(tmp_path / "sheet.tsv"), "--gpus", "none"]
    command += ["--max-mismatches", "1", *(["--index-reads", "headers"] * (where == "headers"))]
    for number, size in enumerate(("30", "1M")):
        page = tmp_path / f"{number}.html"
        ended = main(*command, "--report", str(page), "--max-chunk-bytes", size)
        assert (ended.status, ended.out) == (0, ""), ended.err
        text = page.read_text()
        assert '<p class="soft">3 of 6 reads (50 %) are of no sample.' in text
        table = text[text.index("unknown barcode") :]
        cells = re.findall("<td>(.*?)</td>", table[: table.index("</table>")])
        assert cells == ["CCCC+CCCCC", "2", "33.33", "ACGT+AAAAA", "1", "16.67"]
