"""One answer from files of every form, from streams and from several files."""

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from support import scanned
from support.scan_rows import without_files
from support.scanned import ALL, LAYOUTS, STORED, Row, Scan
from support.web import served

from multigpu.errors import InputError
from multigpu.formats.storage import input_paths

EVERY = scanned.tsv(scanned.answer(every=True, both=True))


@pytest.mark.parametrize("size", ["11", "100000"])
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("layout", ["fastq", "fasta"])
def test_input__is_told_by_content_in_every_compression(
    scan: Scan, store: Any, layout: str, stored: str, size: str
) -> None:
    path = store(
        "reads.dat", STORED[stored](scanned.fastq() if layout == "fastq" else scanned.fasta_of())
    )
    expected = scanned.tsv(scanned.answer(every=True, both=True, scored=layout == "fastq"))
    assert scan(path, options=(*ALL, "--max-chunk-bytes", size)) == expected
    if size == "100000":
        assert scan(f"file://{path}", options=ALL) == expected  # through fsspec


@pytest.mark.parametrize("size", ["1", "13", "100000"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_input__in_every_layout_is_the_same(scan: Scan, store: Any, layout: str, size: str) -> None:
    got = scan(store("r.fq", LAYOUTS[layout]), options=(*ALL, "--max-chunk-bytes", size))
    assert got == EVERY


@pytest.mark.parametrize("size", ["17", "100000"])
def test_input__of_several_is_in_order(scan: Scan, store: Any, tmp_path: Path, size: str) -> None:
    first, second = (
        store("z.fq", scanned.HALVES[0]),
        store("a.fq.gz", gzip.compress(scanned.HALVES[1])),
    )
    options = (*ALL, "--max-chunk-bytes", size)
    table = scan(first, second, options=options)
    assert without_files(table) == EVERY
    scan(first, second, first, options=options, name="hits.parquet")
    table = pq.read_table(tmp_path / "out" / "hits.parquet")
    indices = scanned.expected_indices(scanned.READS + scanned.READS[:3])
    assert table.column("sample_index").to_pylist() == indices


def test_input__expands_patterns(scan: Scan, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that appear during a run are no part of it."""
    patterns, glob = [], input_paths.glob.glob

    def counted(pattern: str, **options: Any) -> list[str]:
        patterns.append(pattern)
        return glob(pattern, **options)

    monkeypatch.setattr(input_paths.glob, "glob", counted)
    folder = Path(store("lane1.fq", scanned.fastq())).parent
    store("wanted.fa", scanned.fasta(scanned.SIGNATURES))
    samples, signatures = str(folder / "lane*.fq"), str(folder / "wanted*")
    assert scan(samples, options=(*ALL, "-s", signatures)) == EVERY
    assert patterns == [samples, signatures]


def test_input__of_urls_is_read_by_threads_each_to_its_end(scan: Scan, store: Any) -> None:
    with served() as web:
        web.files = {f"{n}.fq": pack(scanned.fastq()) for n, pack in enumerate(STORED.values())}
        web.faults.extend([None] * 4 + ["slow"])
        urls = [f"{web.url}/{name}" for name in web.files]
        got = scan(*urls, options=(*ALL, "--threads", "3"))
    paths = [store(f"{number}.fq", scanned.fastq()) for number in range(len(urls))]
    wanted = scan(*paths, options=ALL)
    for path, url in zip(paths, urls, strict=True):
        wanted = wanted.replace(path.encode(), url.encode())
    assert got == wanted


def test_input__of_which_one_of_thousands_is_missing_is_one_line(scan: Scan, store: Any) -> None:
    paths = [store(f"{number}.fq", scanned.fastq()) for number in range(2000)]
    Path(paths[1500]).unlink()
    with pytest.raises(InputError, match=r"1500\.fq: cannot be read: there is no such file"):
        scan(*paths)


@pytest.mark.parametrize("stored", STORED)
def test_input__of_stdin_is_same(scan: Scan, monkeypatch: pytest.MonkeyPatch, stored: str) -> None:
    content = io.BytesIO(STORED[stored](scanned.fastq()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=content))
    options = (*ALL, "--max-chunk-bytes", "30")
    assert scan("-", options=options) == EVERY


def test_signatures__in_several_files_are_in_order(scan: Scan, store: Any, reads: str) -> None:
    first = store("z.fa", scanned.fasta(scanned.SIGNATURES[:2]).replace(b"\n", b"\r\n"))
    second = store("a.fa.gz", gzip.compress(scanned.fasta(scanned.SIGNATURES[2:])))
    got = scan(reads, options=(*ALL, "-s", first, "-s", second))
    assert got == EVERY


def test_names__repeated_are_told_apart_by_order(scan: Scan, store: Any, tmp_path: Path) -> None:
    path = store(
        "same.fq", scanned.fastq([("x", "AC", "I5"), ("x", "AC", "55"), ("x", "CA", "+5")])
    )
    same = store("same.fa", scanned.fasta([("s", "AC"), ("s", "A")]))
    places = [(0, 2, 30.0), (0, 1, 40.0), (0, 2, 20.0), (0, 1, 20.0), (1, 2, 20.0)]
    rows: list[Row] = [("x", "s", start, end, "+", score, 0) for start, end, score in places]
    assert scan(path, options=("-s", same)) == scanned.tsv(rows)
    scan(path, options=("-s", same), name="hits.parquet")
    table = pq.read_table(tmp_path / "out" / "hits.parquet")
    assert table.column("sample_index").to_pylist() == [0, 0, 1, 1, 2]
    assert table.column("signature_index").to_pylist() == [0, 1, 0, 1, 1]
