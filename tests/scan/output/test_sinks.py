"""One answer in every format and compression, and which rows are in it."""

import gc
import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support import scanned
from support.program import remarks
from support.scanned import ALL, Row, Scan

from multigpu import InputError
from multigpu.cli import cli


def test_answer__has_what_the_formats_must_show() -> None:
    """Ambiguous letters, both strands, several hits, repeated names, scores with many digits."""
    rows = scanned.answer(every=True, both=True)
    assert {row[4] for row in rows} == {"+", "-"}
    assert {row[0] for row in rows} == {"read1", "read2", "café", "last"}
    assert any(row[5] is not None and len(repr(row[5])) > 10 for row in rows)
    assert len(scanned.answer(every=True, both=True, strict=True)) < len(rows)
    assert len(scanned.answer()) < len(scanned.answer(both=True)) < len(rows)


@pytest.mark.parametrize(("flags", "every", "both"), [
    ((), False, False),
    (("--hits", "all"), True, False),
    (("--strand", "both"), False, True),
    (ALL, True, True),
], ids=["first", "all", "both", "all, both"])  # fmt: skip
def test_tsv__is_the_answer_with_a_header_and_round_trip_scores(
    scan: Scan, reads: str, flags: tuple[str, ...], every: bool, both: bool
) -> None:
    assert scan(reads, options=flags) == scanned.tsv(scanned.answer(every=every, both=both))


@pytest.mark.parametrize(
    ("name", "fmt", "shown"), [("hits.bed", "bed", scanned.bed), ("hits.TSV", "tsv", scanned.tsv)]
)
@pytest.mark.parametrize("size", ["3", "100000"])
def test_lines__are_the_answer_in_every_format(
    scan: Scan, reads: str, name: str, fmt: str, shown: Callable[[list[Row]], bytes], size: str
) -> None:
    options = (*ALL, "--max-chunk-bytes", size)
    expected = shown(scanned.answer(every=True, both=True))
    assert scan(reads, options=options, name=name) == expected
    assert scan(reads, options=(*options, "--format", fmt), name="hits") == expected
    assert gzip.decompress(scan(reads, options=options, name=f"{name}.gz")) == expected


def test_parquet__has_rows_and_numbers_of_samples(scan: Scan, reads: str, tmp_path: Path) -> None:
    stored = {
        scan(reads, options=(*ALL, "--max-chunk-bytes", size), name=name)
        for size, name in (("3", "hits.pq"), ("20", "hits.parquet"), ("1000", "hits.parquet"))
    }
    assert len(stored) == 1
    table = pq.read_table(tmp_path / "out" / "hits.pq")
    assert table.column_names == [
        "sample", "sample_index", "signature", "signature_index", "start", "end", "strand", "score",
        "file", "ambiguous",
    ]  # fmt: skip
    indices = table.column("sample_index").to_pylist()
    rows = table.drop_columns(["sample_index", "signature_index", "file"]).to_pylist()
    assert rows == scanned.dicts(scanned.answer(every=True, both=True))
    assert indices == scanned.expected_indices(scanned.READS)


def test_parquet__of_a_run_that_fails_leaves_nothing_to_fail_later(
    scan: Scan, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failed: unraisable.append(failed.object))
    bad = store("bad.fq", scanned.fastq() + b"@bad\nACXT\n+\nIIII\n")
    with pytest.raises(InputError, match="record 'bad'") as caught:
        scan(bad, options=("--max-chunk-bytes", "20"), name="hits.parquet")
    del caught
    gc.collect()
    assert unraisable == []


def test_output__without_a_hit_has_only_the_header(scan: Scan, store: Any, tmp_path: Path) -> None:
    path = store("none.fq", scanned.fastq([("a", "TTTTTTT", "IIIIIII")]))
    assert scan(path) == scanned.HEADER.encode()
    assert scan(path, name="hits.bed") == b""
    scan(path, name="hits.parquet")
    assert pq.read_table(tmp_path / "out" / "hits.parquet").num_rows == 0


@pytest.mark.parametrize("output", [(), ("-o", "-")], ids=["no -o", "-o -"])
@pytest.mark.parametrize("layout", ["fastq", "fasta"])
@pytest.mark.parametrize("fmt", ["tsv", "bed", "parquet", "sam", "bam", "paf"])
def test_standard_output__has_the_results_and_nothing_else(
    scan: Scan, store: Any, capfdbinary: pytest.CaptureFixture[bytes], output: tuple[str, ...],
    layout: str, fmt: str,
) -> None:  # fmt: skip
    named = [(f"r{number}", *read[1:]) for number, read in enumerate(scanned.READS)]
    sample = store("named", scanned.fastq(named) if layout == "fastq" else scanned.fasta_of(named))
    signatures = [(f"s{number}", bases) for number, (_, bases) in enumerate(scanned.SIGNATURES)]
    given = ("-s", store("s.fa", scanned.fasta(signatures)))
    expected = scan(sample, options=(*ALL, *given), name=f"hits.{fmt}")
    capfdbinary.readouterr()
    command = ["scan", sample, *given, *output, *ALL, "--format", fmt, "--gpus", "none"]
    cli.main(command, standalone_mode=False)
    out, err = capfdbinary.readouterr()
    assert (out, remarks(err)) == (expected, "")


def test_min_score__drops_weaker_rows_after_the_first_is_found(scan: Scan, store: Any) -> None:
    path = store("two.fq", scanned.fastq([("a", "ACGTACGT", "!!!!IIII"), ("b", "ACGT", "5555")]))
    only = store("one.fa", scanned.fasta([("s", "ACGT")]))
    first = scan(path, options=("-s", only, "--min-score", "20"))
    assert first == scanned.tsv([("b", "s", 0, 4, "+", 20.0, 0)])
    every = scan(path, options=("-s", only, "--min-score", "20", "--hits", "all"))
    assert every == scanned.tsv([("a", "s", 4, 8, "+", 40.0, 0), ("b", "s", 0, 4, "+", 20.0, 0)])
    assert scan(path, options=("-s", only, "--min-score", "40.1")) == scanned.HEADER.encode()


@pytest.mark.parametrize("score", [0.0, 10.0, 25.5])
def test_min_score__keeps_exactly_the_rows_that_reach_it_or_have_none(
    scan: Scan, reads: str, store: Any, score: float
) -> None:
    kept = [row for row in scanned.answer(every=True, both=True) if (row[5] or 0.0) >= score]
    for size in ("5", "100000"):
        options = (*ALL, "--min-score", str(score), "--max-chunk-bytes", size)
        assert scan(reads, options=options) == scanned.tsv(kept)
    without = scan(store("reads.fa", scanned.fasta_of()), options=("--min-score", "90"))
    assert without == scanned.tsv(scanned.answer(scored=False))


@pytest.mark.parametrize("sample", scanned.MEANING)
def test_sample_n_mismatch__for_every_pair_of_letters(scan: Scan, store: Any, sample: str) -> None:
    path = store("one.fa", scanned.fasta([("a", sample)]))
    wanted = [(letter, letter) for letter in scanned.MEANING]
    letters = store("letters.fa", scanned.fasta(wanted))
    for options, strict in (((), False), (("--sample-n", "mismatch"), True)):
        expected = scanned.answer([("a", sample, "")], wanted, strict=strict, scored=False)
        assert scan(path, options=("-s", letters, *options)) == scanned.tsv(expected)


def test_fasta_samples__have_no_score(scan: Scan, store: Any, tmp_path: Path) -> None:
    path = store("reads.fa", scanned.fasta_of())
    rows = scanned.answer(every=True, both=True, scored=False)
    assert scan(path, options=ALL, name="hits.bed") == scanned.bed(rows)
    scan(path, options=ALL, name="hits.parquet")
    table = pq.read_table(tmp_path / "out" / "hits.parquet")
    assert table.column("score").null_count == len(rows) == table.num_rows
    assert table.column("sample_index").to_pylist() == scanned.expected_indices(scanned.READS)
