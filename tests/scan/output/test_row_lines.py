"""Rows as lines: what each text format says, and the same bytes however the rows arrive."""

import csv
import gzip
import io
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.scan_rows import ROWS, batch, random_rows, render, written
from support.scanned import HEADER, signatures_named

from multigpu.formats.storage import compressed
from multigpu.formats.storage.zstandard import zstd
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.output import row_lines
from multigpu.workloads.scan.output.parquet import to_arrow
from multigpu.workloads.scan.output.registry import FORMATS

PLAIN = [fmt for fmt in FORMATS if fmt not in ("sam", "bam", "parquet", "cas-offinder")]
TEXTS = [
    *((fmt,) for fmt in PLAIN),
    *((fmt, "ambiguous") for fmt in ("tsv", "csv", "bed")),
    *((fmt, "edits", "cigar") for fmt in ("tsv", "bed")),
]
RENDERED = [*TEXTS, ("sam",), ("sam", "ambiguous")]
DECOMPRESS: dict[str, Any] = {"": bytes, ".gz": gzip.decompress, ".zst": zstd.decompress}


def header(fmt: str, *more: str) -> bytes:
    """Return the line above the rows."""
    separator = {"tsv": "\t", "csv": ","}.get(fmt)
    return f"{separator.join([*HEADER.split(), *more])}\n".encode() if separator else b""


def test_tsv__has_the_shortest_decimal_that_reads_back_equal() -> None:
    assert render(ROWS, "tsv") == (
        b"read1\tadapter\t0\t12\t+\t21.85\n"
        b"read2\tcaf\xc3\xa9\t3\t15\t-\t10.0\n"
        b"read2\tadapter\t1099511627776\t1099511627788\t+\t\n"
    )


@example([-0.0, 0.0])
@example([0.0, -0.0])
@given(st.lists(st.floats(allow_infinity=False), min_size=1))
def test_tsv__scores_read_back_equal(scores: list[float]) -> None:
    rows = batch(*((b"r", 0, 0, 1, False, score) for score in scores))
    texts = [line.split("\t")[5] for line in render(rows, "tsv").decode().splitlines()]
    read = [float(text) if text else math.nan for text in texts]
    np.testing.assert_array_equal(read, scores)
    assert "-0.0" not in texts


def test_csv__is_what_a_reader_of_csv_takes_it_for() -> None:
    names = signatures_named([b"a,b", b'say "x"', b"plain"])
    rows = batch((b"s,1", 0, 0, 1, False, 1.5), (b's"2', 1, 0, 1, True, math.nan))
    text = render(rows, "csv", signatures=names).decode()
    assert list(csv.reader(io.StringIO(text))) == [
        ["s,1", "a,b", "0", "1", "+", "1.5"], ['s"2', 'say "x"', "0", "1", "-", ""]
    ]  # fmt: skip
    plain = render(batch((b"s", 2, 3, 4, False, 2.0)), "csv", signatures=names)
    assert plain == b"s,plain,3,4,+,2.0\n"


def test_bed__has_ten_times_the_score_within_0_and_1000() -> None:
    assert render(ROWS, "bed") == (
        b"read1\t0\t12\tadapter\t218\t+\n"
        b"read2\t3\t15\tcaf\xc3\xa9\t100\t-\n"
        b"read2\t1099511627776\t1099511627788\tadapter\t0\t+\n"
    )
    extremes = batch(*((b"r", 0, 0, 1, False, score) for score in (-5.0, 0.04, 99.96, 1e300)))
    scores = [line.split(b"\t")[4] for line in render(extremes, "bed").splitlines()]
    assert scores == [b"0", b"0", b"1000", b"1000"]


def test_columns__on_request_are_the_last_ones() -> None:
    for fmt, cut in (("tsv", "\t"), ("bed", "\t"), ("csv", ",")):
        more = render(ROWS[1:2], fmt, "cigar", "ambiguous", "edits")
        plain = render(ROWS[1:2], fmt).removesuffix(b"\n")
        assert more == plain + f"{cut}4{cut}1=1X{cut}1\n".encode()


class Counted(list[bytes]):
    """Names, and how many of them were taken."""

    taken = 0

    def __getitem__(self, i: Any) -> Any:
        self.taken += 1
        return super().__getitem__(i)

    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError("all names are taken")


@pytest.mark.parametrize("fmt", [*PLAIN, "arrow"])
def test_rows__take_the_names_that_occur_and_no_others(fmt: str) -> None:
    """Decoding all of a million took far longer than the rows."""
    names = Counted(b"k%d" % i for i in range(1000))
    rows = batch(*((b"s", which, 0, 4, False, 30.0) for which in (7, 500, 7)))
    signatures = replace(signatures_named([b""] * 1000), names=names)
    if fmt == "arrow":
        table = to_arrow(row_lines.ScanRows(rows, signatures, ()))
        assert table["signature"].to_pylist() == ["k7", "k500", "k7"]
    else:
        lines = render(rows, fmt, signatures=signatures).splitlines()
        assert [line.count(b"k7") for line in lines] == [1, 0, 1]
    assert names.taken == 3


@pytest.mark.parametrize("asked", RENDERED, ids="+".join)
def test_lines__are_the_same_for_any_division(asked: tuple[str, ...]) -> None:
    rows = random_rows(999)
    whole = render(rows, *asked)
    assert whole.count(b"\n") == 999
    assert whole == b"".join(render(rows[at : at + 6], *asked) for at in range(0, 999, 6))
    assert render(Batch.empty(), *asked, signatures=signatures_named([])) == b""


@pytest.mark.parametrize("suffix", DECOMPRESS)
@pytest.mark.parametrize("asked", TEXTS, ids="+".join)
def test_file__is_header_and_lines_however_rows_are_divided(
    asked: tuple[str, ...], suffix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compressed, "BLOCK", 1000)
    rows, path = random_rows(330), tmp_path / f"hits{suffix}"
    whole = written([rows[at : at + 33] for at in range(0, 330, 33)], path, *asked)
    first = header(asked[0], *FORMATS[asked[0]].columns(asked[1:]))
    assert DECOMPRESS[suffix](whole) == first + render(rows, *asked)
    assert DECOMPRESS[suffix](written([], path, *asked)) == first
    for cuts in ([0, 330], [0, 3, 3, 120, 330]):
        parts = [rows[start:stop] for start, stop in pairwise(cuts)]
        assert written(parts, path, *asked) == whole


def test_gzip__has_no_time_and_no_name_and_zstd_a_checksum(tmp_path: Path) -> None:
    stored = written([ROWS], tmp_path / "hits.gz", "tsv")
    assert stored[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
    assert gzip.decompress(stored).endswith(b"+\t\n")
    damaged = bytearray(written([ROWS], tmp_path / "hits.zst", "tsv"))
    damaged[-1] ^= 1
    with pytest.raises(zstd.ZstdError, match=r"checksum"):
        zstd.decompress(bytes(damaged))
