"""The table of counts, against the rows of the same run."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from support.program import Run
from support.scan_cases import planted, random_letters
from support.scanned import fasta, fastq

from multigpu.errors import Failure
from multigpu.report.page import Page

pytestmark = pytest.mark.process  # runs whole jobs

KEYS = ["file", "signature"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return reads, plain and compressed, and a genome that lies in many chunks; signatures."""
    rng = np.random.default_rng(34)
    letters = [random_letters(rng, 12, 0.0) for _ in range(9)]
    unseen = random_letters(rng, 40, 0.0)
    names = ["a.fq", "b.fq.gz", "none.fq", "g.fa"]
    records = [
        (f"r{i}", planted(rng, 90, letters[: 1 + i % 9], 0.0, plants=i % 4).tobytes().decode())
        for i in range(60)
    ]
    reads = [(n, b, "".join(chr(40 + 7 * k % 31) for k in range(len(b)))) for n, b in records]
    contents = [
        fastq(reads[:31]), gzip.compress(fastq(reads[31:])), fastq([("r", "ACGT", "IIII")]),
        fasta([("chr", "\n".join(bases for _, bases in records)), ("other", "ACGT")]),
    ]  # fmt: skip
    for name, content in zip(names, contents, strict=True):
        (tmp_path / name).write_bytes(content)
    texts = [each.tobytes().decode() for each in [*letters, unseen]]
    (tmp_path / "s.fasta").write_bytes(fasta([(f"s{i}", text) for i, text in enumerate(texts)]))
    monkeypatch.chdir(tmp_path)
    return names


def expected(rows: pd.DataFrame, totals: dict[str, int], names: list[str]) -> pd.DataFrame:
    """Return the table that these rows make."""
    index = pd.MultiIndex.from_product([totals, names], names=KEYS)
    groups = rows.groupby(KEYS)
    table = pd.DataFrame({
        "reads": groups["sample"].nunique(), "matches": groups.size(),
        "mean_score": groups["score"].mean().round(4),
    }).reindex(index)  # fmt: skip
    table[["reads", "matches"]] = table[["reads", "matches"]].fillna(0).astype(int)
    table["share"] = table["reads"] / table.index.get_level_values("file").map(totals)
    table["covered"] = (table["matches"] > 0).astype(float)
    return table[["reads", "matches", "share", "mean_score", "covered"]]


@pytest.mark.parametrize(
    "options", ["", "--hits all --strand both", "--hits best --max-edits 2", "--max-mismatches 2"]
)
def test_counts__are_those_of_the_rows(main: Run, files: list[str], options: str) -> None:
    Path("empty.fq").touch()
    command = ["scan", *files, "empty.fq", "-s", "s.fasta", "--gpus", "none", *options.split()]
    ended = main(*command, "-o", "rows.tsv", "--counts", "counts.tsv")
    assert ended.status == 0, ended.err
    found = pd.read_csv("counts.tsv", sep="\t", index_col=KEYS)
    empty = found.loc["empty.fq", ["reads", "matches", "share", "covered"]]
    assert (len(empty), empty.to_numpy().max()) == (10, 0)
    found = found.drop(index="empty.fq", level="file")
    totals = dict(zip(files, [31, 29, 1, 2], strict=True))
    rows = pd.read_csv("rows.tsv", sep="\t")
    assert len(rows) > 25
    table = expected(rows, totals, [f"s{i}" for i in range(10)])
    pd.testing.assert_frame_equal(found, table, rtol=0, atol=1.01e-4)
    assert found["matches"].sum() == len(rows)
    assert main(*command, "--counts", "alone.tsv").status == 0
    assert Path("alone.tsv").read_bytes() == Path("counts.tsv").read_bytes()


def test_counts__are_the_same_bytes_however_the_run_is_cut(main: Run, files: list[str]) -> None:
    command = ["scan", *files, "-s", "s.fasta", "--gpus", "none", "--hits", "all"]
    contents = set()
    cuts = ("", "--max-chunk-bytes 50", "--max-chunk-bytes 333 --threads 3", "--workers 2")
    for number, more in enumerate(cuts):
        names = [f"{number}.{suffix}" for suffix in ("tsv", "tsv.gz", "parquet")]
        for name in names:
            ended = main(*command, "--counts", name, *more.split())
            assert (ended.status, ended.out) == (0, ""), ended.err
        contents.add(tuple(Path(name).read_bytes() for name in names))
    ((text, packed, _),) = contents
    assert gzip.decompress(packed) == text
    columns = pq.read_table("0.parquet").to_pandas()
    pd.testing.assert_frame_equal(columns, pd.read_csv("0.tsv", sep="\t"), check_dtype=False)


OUTPUTS = ("--counts", "c.parquet", "--multiqc", "x_mqc.json", "--report", "page.html")


def test_outputs__of_one_pass_get_their_names_together_and_are_resumed(
    main: Run, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["scan", *files, "-s", "s.fasta", "--gpus", "none", "--max-edits", "1"]
    command += ["--max-chunk-bytes", "200"]
    names = ["rows.paf", "c.parquet", "x_mqc.json", "x_general_mqc.json", "page.html"]
    for options in (("-o", "rows.paf", "--tags", "MD"), OUTPUTS[:2], OUTPUTS[2:4], OUTPUTS[4:]):
        assert main(*command, *options).status == 0
    alone = [Path(name).read_bytes() for name in names]
    for name in names:
        Path(name).unlink()
    command += ["-o", "rows.paf", "--tags", "MD", *OUTPUTS]

    def fail(*_: object) -> None:
        raise Failure("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Page, "html", fail)
        ended = main(*command)
    assert (ended.status, ended.out) == (1, "")
    assert not any(Path(name).exists() for name in names)
    summary = Path("summary.json")
    assert main(*command, "--resume", "--summary", str(summary)).status == 0
    assert json.loads(summary.read_text())["chunks"]["resumed"] > 10
    together = [Path(name).read_bytes() for name in names]
    assert together[:4] == alone[:4]
    # The page has its command and time.
    cut = [page[page.index(b"<main>") :] for page in (alone[4], together[4])]
    assert cut[0] == cut[1]


@pytest.mark.parametrize(("options", "problem"), [
    ("--counts x.h5ad", "x.h5ad: .h5ad files cannot be written: choose a name that ends in"),
    ("--multiqc x.json", "x.json: MultiQC finds files by their names: choose a name like"),
    ("--report x.tsv", "x.tsv: reports are HTML"),
    ("-o - --counts -", "standard output can have one output"),
    ("-o x.tsv --tags MD", "--tags is of alignments: choose --format sam or bam or paf"),
    ("--counts x.tsv --cigar M", "--cigar is of alignments: choose --format sam or bam or paf"),
    ("--format sam --tags NM", "'NM' is not one of 'MD'"),
    ("--multiqc x_mqc.json --counts x_general_mqc.json", "json files cannot be written"),
])  # fmt: skip
def test_wish__that_makes_no_sense_is_refused(
    main: Run, files: list[str], options: str, problem: str
) -> None:
    ended = main("scan", files[0], "-s", "s.fasta", "--gpus", "none", *options.split())
    assert (ended.status, ended.out) == (2, "")
    assert problem in ended.problem
    assert not list(Path().glob("x*"))
