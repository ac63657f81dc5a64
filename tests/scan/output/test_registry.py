"""Formats of rows by name and by suffix."""

from pathlib import Path

import pytest

from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import compression_of
from multigpu.workloads.scan.output.registry import FORMATS, format_of


@pytest.mark.parametrize(("path", "fmt", "compression"), [
    (None, "tsv", "none"), ("-", "tsv", "none"), ("hits", "tsv", "none"),
    ("hits.tsv", "tsv", "none"), ("hits.csv", "csv", "none"), ("hits.tab", "tsv", "none"),
    ("run.2026-11-23", "tsv", "none"), ("a.bed/hits", "tsv", "none"),
    ("hits.txt", "tsv", "none"), ("hits.BED.GZ", "bed", "gzip"),
    ("hits.gz", "tsv", "gzip"), ("hits.pq", "parquet", "none"),
    ("hits.parquet", "parquet", "none"), ("hits.sam", "sam", "none"),
    ("hits.SAM.gz", "sam", "gzip"), ("hits.bam", "bam", "none"),
    ("hits.paf.zst", "paf", "zstd"),
])  # fmt: skip
def test_format_of__goes_by_the_suffix(path: str | None, fmt: str, compression: str) -> None:
    assert (format_of(path, None).name, compression_of(path)) == (fmt, compression)
    assert format_of(path, "bed") is FORMATS["bed"]


@pytest.mark.parametrize("name", [
    "hits.xlsx",
    "a.1.jsonl.zst",
    "hits.PDF",
    "hits.tsv.bz2",
    "hits.vcf.gz",
    "hits.tsv.bgz",
    "a.b.html",
])  # fmt: skip
def test_format_of__refuses_a_suffix_that_promises_something_else(name: str) -> None:
    suffixes = {"hits.vcf.gz": ".vcf", "a.1.jsonl.zst": ".jsonl"}
    suffix = suffixes.get(name, Path(name.lower()).suffix)
    with pytest.raises(UsageError, match=rf"^{name}: {suffix} files cannot be written: choose"):
        format_of(name, None)
    assert format_of(name, "tsv").name == "tsv"


def test_columns__are_those_that_a_format_has_and_can_have() -> None:
    asked = ("ambiguous", "cigar", "edits", "file")
    assert FORMATS["tsv"].columns(asked) == ("file", "edits", "cigar", "ambiguous")
    assert FORMATS["parquet"].columns(("ambiguous",)) == ("file", "ambiguous")
    assert FORMATS["sam"].columns(("ambiguous",)) == ("mismatches", "edits", "cigar", "ambiguous")
