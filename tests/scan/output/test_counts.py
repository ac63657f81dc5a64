"""The table of counts, against the rows of the same run."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from support.program import Run
from support.scan_cases import planted, random_letters
from support.scanned import fasta, fastq

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
    command = ["scan", *files, "-s", "s.fasta", "--gpus", "none", *options.split()]
    ended = main(*command, "-o", "rows.tsv", "--counts", "counts.tsv")
    assert ended.status == 0, ended.err
    found = pd.read_csv("counts.tsv", sep="\t", index_col=KEYS)
    totals = dict(zip(files, [31, 29, 1, 2], strict=True))
    rows = pd.read_csv("rows.tsv", sep="\t")
    assert len(rows) > 25
    table = expected(rows, totals, [f"s{i}" for i in range(10)])
    pd.testing.assert_frame_equal(found, table, rtol=0, atol=1.01e-4)
    assert found["matches"].sum() == len(rows)


def test_counts__are_the_same_bytes_however_the_run_is_cut(main: Run, files: list[str]) -> None:
    command = ["scan", *files, "-s", "s.fasta", "--gpus", "none", "--hits", "all"]
    contents = set()
    for number, more in enumerate((
        "", "--max-chunk-bytes 50", "--max-chunk-bytes 333 --threads 3", "--workers 2",
    )):  # fmt: skip
        names = [f"{number}.{suffix}" for suffix in ("tsv", "tsv.gz", "parquet")]
        for name in names:
            ended = main(*command, "--counts", name, *more.split())
            assert (ended.status, ended.out) == (0, ""), ended.err
        contents.add(tuple(Path(name).read_bytes() for name in names))
    ((text, packed, _),) = contents
    assert gzip.decompress(packed) == text
    columns = pq.read_table("0.parquet").to_pandas()
    pd.testing.assert_frame_equal(columns, pd.read_csv("0.tsv", sep="\t"), check_dtype=False)
