"""One answer from files of every form, from streams and from several files."""

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.scan_rows import without_files
from support.scanned import (
    ALL,
    HALVES,
    LAYOUTS,
    READS,
    SIGNATURES,
    STORED,
    Row,
    Scan,
    answer,
    expected_indices,
    fasta,
    fasta_of,
    fastq,
    tsv,
)
from support.web import served

from multigpu.errors import InputError
from multigpu.formats.storage import input_paths


@pytest.mark.parametrize("size", ["11", "100000"])
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("layout", ["fastq", "fasta"])
def test_input__is_told_by_content_in_every_compression(
    scan: Scan, store: Any, layout: str, stored: str, size: str
) -> None:
    content = fastq() if layout == "fastq" else fasta_of()
    path = store("reads.dat", STORED[stored](content))
    got = scan(path, options=(*ALL, "--max-chunk-bytes", size))
    assert got == tsv(answer(every=True, both=True, scored=layout == "fastq"))


@pytest.mark.parametrize("size", ["1", "13", "100000"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_input__in_every_layout_gives_the_same(
    scan: Scan, store: Any, layout: str, size: str
) -> None:
    path = store("reads.fq", LAYOUTS[layout])
    got = scan(path, options=(*ALL, "--max-chunk-bytes", size))
    assert got == tsv(answer(every=True, both=True))


@pytest.mark.parametrize("size", ["17", "100000"])
def test_input__of_several_files_is_read_in_the_order_given(
    scan: Scan, store: Any, tmp_path: Path, size: str
) -> None:
    first, second = store("z.fq", HALVES[0]), store("a.fq.gz", gzip.compress(HALVES[1]))
    options = (*ALL, "--max-chunk-bytes", size)
    table = scan(first, second, options=options)
    assert without_files(table) == tsv(answer(every=True, both=True))
    scan(first, second, first, options=options, name="hits.parquet")
    table = pq.read_table(tmp_path / "out" / "hits.parquet")
    indices = expected_indices(READS + READS[:3])
    assert table.column("sample_index").to_pylist() == indices


def test_input__of_a_pattern_is_expanded_once(
    scan: Scan, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that appear during a run are no part of it."""
    patterns, glob = [], input_paths.glob.glob

    def counted(pattern: str, **options: Any) -> list[str]:
        patterns.append(pattern)
        return glob(pattern, **options)

    monkeypatch.setattr(input_paths.glob, "glob", counted)
    folder = Path(store("lane1.fq", fastq())).parent
    store("wanted.fa", fasta(SIGNATURES))
    samples, signatures = str(folder / "lane*.fq"), str(folder / "wanted*")
    assert scan(samples, options=(*ALL, "-s", signatures)) == tsv(answer(every=True, both=True))
    assert patterns == [samples, signatures]


def test_input__of_a_url_is_read_through_fsspec(scan: Scan, reads: str) -> None:
    assert scan(f"file://{reads}", options=ALL) == tsv(answer(every=True, both=True))


def test_input__of_urls_is_read_by_threads_each_to_its_end(scan: Scan, store: Any) -> None:
    with served() as web:
        web.files = {f"{n}.fq": pack(fastq()) for n, pack in enumerate(STORED.values())}
        web.faults.extend([None] * 4 + ["slow"])
        urls = [f"{web.url}/{name}" for name in web.files]
        got = scan(*urls, options=(*ALL, "--threads", "3"))
    paths = [store(f"{number}.fq", fastq()) for number in range(len(urls))]
    wanted = scan(*paths, options=ALL)
    for path, url in zip(paths, urls, strict=True):
        wanted = wanted.replace(path.encode(), url.encode())
    assert got == wanted


def test_input__of_which_one_of_thousands_is_missing_is_one_line(scan: Scan, store: Any) -> None:
    paths = [store(f"{number}.fq", fastq()) for number in range(2000)]
    Path(paths[1500]).unlink()
    with pytest.raises(InputError, match=r"1500\.fq: cannot be read: there is no such file"):
        scan(*paths)


@pytest.mark.parametrize("stored", STORED)
def test_input__from_standard_input_is_the_same(
    scan: Scan, monkeypatch: pytest.MonkeyPatch, stored: str
) -> None:
    content = io.BytesIO(STORED[stored](fastq()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=content))
    options = (*ALL, "--max-chunk-bytes", "30")
    assert scan("-", options=options) == tsv(answer(every=True, both=True))


def test_signatures__in_several_files_are_taken_in_the_order_given(
    scan: Scan, store: Any, reads: str
) -> None:
    first = store("z.fa", fasta(SIGNATURES[:2]).replace(b"\n", b"\r\n"))
    second = store("a.fa.gz", gzip.compress(fasta(SIGNATURES[2:])))
    got = scan(reads, options=(*ALL, "-s", first, "-s", second))
    assert got == tsv(answer(every=True, both=True))


def test_names__repeated_are_told_apart_by_order(scan: Scan, store: Any, tmp_path: Path) -> None:
    path = store("same.fq", fastq([("x", "AC", "I5"), ("x", "AC", "55"), ("x", "CA", "+5")]))
    same = store("same.fa", fasta([("s", "AC"), ("s", "A")]))
    rows: list[Row] = [
        ("x", "s", 0, 2, "+", 30.0, 0), ("x", "s", 0, 1, "+", 40.0, 0),
        ("x", "s", 0, 2, "+", 20.0, 0),
        ("x", "s", 0, 1, "+", 20.0, 0), ("x", "s", 1, 2, "+", 20.0, 0),
    ]  # fmt: skip
    assert scan(path, options=("-s", same)) == tsv(rows)
    scan(path, options=("-s", same), name="hits.parquet")
    table = pq.read_table(tmp_path / "out" / "hits.parquet")
    assert table.column("sample_index").to_pylist() == [0, 0, 1, 1, 2]
    assert table.column("signature_index").to_pylist() == [0, 1, 0, 1, 1]
