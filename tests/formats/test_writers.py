"""Rows to tables: what each format says, and the same bytes however the rows arrive."""

import csv
import gzip
import io
import json
import math
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import examples
from support.scanned import signatures_named

from multigpu.errors import UsageError
from multigpu.formats.storage import compressed
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.storage.zstandard import zstd
from multigpu.formats.tables import columns, parquet
from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.writers import (
    FORMATS,
    format_of,
    header,
    open_table,
    render,
    to_arrow,
    with_columns,
)

TABLES = [fmt for fmt in FORMATS if fmt not in ("sam", "bam")]  # those that `open_table` writes
TEXT_FORMATS = [fmt for fmt in TABLES if fmt != "parquet"]
TEXT_FORMATS += [with_columns(fmt, ("ambiguous",)) for fmt in ("tsv", "csv", "bed")]
TEXT_FORMATS += [with_columns(fmt, ("edits", "cigar")) for fmt in ("tsv", "bed", "jsonl")]
RENDERED = [*TEXT_FORMATS, "sam", with_columns("sam", ("ambiguous",))]
NAMES = signatures_named([b"adapter", b"caf\xc3\xa9", b"\xff"])


def batch(*rows: tuple[bytes, int, int, int, bool, float], first: int = 0) -> Batch:
    """Rows of these columns; row i has i ambiguous bases and 3 + i errors."""
    samples, signatures, starts, ends, reverses, scores = zip(*rows, strict=True)
    return Batch(
        sample_index=np.arange(first, first + len(rows)),
        sample=list(samples),
        signature=np.array(signatures, np.int32),
        start=np.array(starts, np.int64),
        end=np.array(ends, np.int64),
        reverse=np.array(reverses, np.bool_),
        score=np.array(scores, np.float64),
        ambiguous=np.arange(len(rows), dtype=np.int32),
        errors=np.arange(len(rows), dtype=np.int32) + 3,
        sample_length=np.array(ends, np.int64) + 5,
        cigar=[b"%d=1X" % length for length in range(len(rows))],
    )


ROWS = batch(
    (b"read1", 0, 0, 12, False, 21.85),
    (b"read2", 1, 3, 15, True, 10.0),
    (b"read2", 0, 2**40, 2**40 + 12, False, math.nan),
)


def random_rows(count: int, seed: int = 1) -> Batch:
    draw = np.random.default_rng(seed)
    scores = np.round(draw.random(count) * 40, 2)
    scores[draw.random(count) < 0.2] = np.nan
    starts = draw.integers(0, 1000, count)
    return Batch(
        sample_index=np.arange(count),
        sample=[b"read%d" % number for number in range(count)],
        signature=draw.integers(0, len(NAMES), count).astype(np.int32),
        start=starts,
        end=starts + 12,
        reverse=draw.random(count) < 0.5,
        score=scores,
        ambiguous=draw.integers(0, 13, count).astype(np.int32),
        errors=draw.integers(0, 4, count).astype(np.int32),
        sample_length=starts + 20,
        cigar=[b"12="] * count,
    )


def written(rows: list[Batch], fmt: str, compression: Any) -> bytes:
    file = io.BytesIO()
    with open_table(file, fmt, compression, NAMES) as write:
        for part in rows:
            write(part)
    assert not file.closed
    return file.getvalue()


# ---- batches ----------------------------------------------------------------------------------


def test_batch__concatenates_in_order_and_slices() -> None:
    both = Batch.concatenate([ROWS, ROWS[1:], ROWS[:0]])
    assert len(both) == 5
    assert both.sample == [b"read1", b"read2", b"read2", b"read2", b"read2"]
    assert both.start.tolist() == [0, 3, 2**40, 3, 2**40]
    assert both.signature.dtype == np.int32


def test_batch__of_no_batches_is_empty() -> None:
    assert len(Batch.concatenate([])) == len(Batch.empty()) == 0


def test_batch__refuses_columns_of_another_length_or_type() -> None:
    columns = {name: getattr(ROWS, name) for name in Batch.__dataclass_fields__}
    with pytest.raises(ValueError, match=r"start: int64\[2\] instead of int64\[3\]"):
        Batch(**{**columns, "start": ROWS.start[1:]})
    with pytest.raises(ValueError, match=r"signature: int64\[3\] instead of int32\[3\]"):
        Batch(**{**columns, "signature": ROWS.signature.astype(np.int64)})


# ---- formats ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "fmt", "compression"),
    [
        (None, "tsv", "none"),
        ("-", "tsv", "none"),
        ("hits", "tsv", "none"),
        ("hits.tsv", "tsv", "none"),
        ("hits.csv", "csv", "none"),
        ("hits.tab", "tsv", "none"),
        ("run.2026-11-23", "tsv", "none"),
        ("a.bed/hits", "tsv", "none"),
        ("hits.txt", "text", "none"),
        ("hits.BED.GZ", "bed", "gzip"),
        ("hits.json", "jsonl", "none"),
        ("run.1.jsonl.zst", "jsonl", "zstd"),
        ("hits.gz", "tsv", "gzip"),
        ("hits.pq", "parquet", "none"),
        ("hits.parquet", "parquet", "none"),
        ("hits.sam", "sam", "none"),
        ("hits.SAM.gz", "sam", "gzip"),
        ("hits.bam", "bam", "none"),
        ("hits.paf.zst", "paf", "zstd"),
    ],
)
def test_format_of__goes_by_the_suffix(path: str | None, fmt: str, compression: str) -> None:
    assert format_of(path, None) == fmt
    assert compression_of(path) == compression


def test_format_of__prefers_what_was_chosen() -> None:
    assert format_of("hits.tsv", "bed") == "bed"
    with pytest.raises(UsageError, match=r"unknown format 'vcf': choose from tsv, csv, text, bed"):
        format_of("hits.tsv", "vcf")


@pytest.mark.parametrize(
    "name", ["hits.xlsx", "hits.PDF", "hits.tsv.bz2", "hits.vcf.gz", "hits.tsv.bgz", "a.b.html"]
)
def test_format_of__refuses_a_suffix_that_promises_something_else(name: str) -> None:
    suffix = {"hits.vcf.gz": ".vcf"}.get(name, Path(name.lower()).suffix)
    with pytest.raises(UsageError, match=rf"^{name}: {suffix} files cannot be written: choose"):
        format_of(name, None)
    assert format_of(name, "tsv") == "tsv"


def test_header__stands_above_tsv_and_csv_only() -> None:
    assert header("tsv") == b"sample\tsignature\tstart\tend\tstrand\tscore\n"
    assert header("csv") == b"sample,signature,start,end,strand,score\n"
    assert header(with_columns("csv", ("ambiguous", "mismatches"))) == (
        b"sample,signature,start,end,strand,score,mismatches,ambiguous\n"
    )
    assert {header(fmt) for fmt in FORMATS if fmt not in ("tsv", "csv")} == {b""}


def test_csv__is_what_a_reader_of_csv_takes_it_for() -> None:
    names = signatures_named([b"a,b", b'say "x"', b"plain"])
    rows = batch((b"s,1", 0, 0, 1, False, 1.5), (b's"2', 1, 0, 1, True, math.nan))
    text = (header("csv") + render(rows, names, "csv")).decode()
    assert list(csv.reader(io.StringIO(text)))[1:] == [
        ["s,1", "a,b", "0", "1", "+", "1.5"], ['s"2', 'say "x"', "0", "1", "-", ""]
    ]  # fmt: skip
    plain = render(batch((b"s", 2, 3, 4, False, 2.0)), names, "csv")
    assert plain == b"s,plain,3,4,+,2.0\n"


def test_columns__on_request_are_the_last_ones() -> None:
    for fmt, cut in (("tsv", "\t"), ("bed", "\t"), ("csv", ",")):
        asked = with_columns(fmt, ("cigar", "ambiguous", "edits"))
        plain, more = (render(ROWS[1:2], NAMES, kind) for kind in (fmt, asked))
        assert more == plain.removesuffix(b"\n") + f"{cut}4{cut}1=1X{cut}1\n".encode()
    assert [with_columns(fmt, ("ambiguous",)) for fmt in ("text", "jsonl", "parquet")] == [
        "text", "jsonl", "parquet"
    ]  # fmt: skip
    line = render(ROWS[1:2], NAMES, with_columns("jsonl", ("edits", "cigar")))
    assert line.endswith(b',"score":10.0,"edits":4,"cigar":"1=1X","ambiguous":1}\n')


def test_tsv__has_the_shortest_decimal_that_reads_back_equal() -> None:
    assert render(ROWS, NAMES, "tsv") == (
        b"read1\tadapter\t0\t12\t+\t21.85\n"
        b"read2\tcaf\xc3\xa9\t3\t15\t-\t10.0\n"
        b"read2\tadapter\t1099511627776\t1099511627788\t+\t\n"
    )


def test_text__has_three_decimals_and_a_dash_without_quality() -> None:
    assert render(ROWS, NAMES, "text") == (
        b"read1: adapter (21.850)\nread2: caf\xc3\xa9 (10.000)\nread2: adapter (-)\n"
    )


def test_bed__has_ten_times_the_score_within_0_and_1000() -> None:
    assert render(ROWS, NAMES, "bed") == (
        b"read1\t0\t12\tadapter\t218\t+\n"
        b"read2\t3\t15\tcaf\xc3\xa9\t100\t-\n"
        b"read2\t1099511627776\t1099511627788\tadapter\t0\t+\n"
    )
    extremes = batch(*((b"r", 0, 0, 1, False, score) for score in (-5.0, 0.04, 99.96, 1e300)))
    scores = [line.split(b"\t")[4] for line in render(extremes, NAMES, "bed").splitlines()]
    assert scores == [b"0", b"0", b"1000", b"1000"]


def test_jsonl__has_an_object_on_each_line() -> None:
    lines = render(ROWS, NAMES, "jsonl").decode().splitlines()
    columns = ["sample", "signature", "start", "end", "strand", "score", "ambiguous"]
    values = [
        ["read1", "adapter", 0, 12, "+", 21.85, 0],
        ["read2", "café", 3, 15, "-", 10.0, 1],
        ["read2", "adapter", 2**40, 2**40 + 12, "+", None, 2],
    ]
    assert [json.loads(line) for line in lines] == [
        dict(zip(columns, row, strict=True)) for row in values
    ]


def test_jsonl__survives_any_name() -> None:
    names = [b'quote"back\\slash', b"\x01\x7f", b"\xff\xc3", b"\xe2\x80\xa8", b""]
    rows = batch(*((name, 2, 0, 1, False, 1.0) for name in names))
    objects = [json.loads(line) for line in render(rows, NAMES, "jsonl").split(b"\n")[:-1]]
    assert [entry["sample"] for entry in objects] == [
        name.decode("utf8", "replace") for name in names
    ]
    assert objects[0]["signature"] == "\ufffd"


@given(st.lists(st.binary().filter(lambda name: b"\n" not in name)))
def test_names__decoded_together_are_as_decoded_one_by_one(names: list[bytes]) -> None:
    assert columns.decoded(names, "utf-8") == [name.decode("utf-8", "replace") for name in names]


@example([-0.0, 0.0])
@example([0.0, -0.0])
@given(st.lists(st.floats(allow_infinity=False), min_size=1))
def test_tsv__scores_read_back_equal(scores: list[float]) -> None:
    rows = batch(*((b"r", 0, 0, 1, False, score) for score in scores))
    texts = [line.split("\t")[5] for line in render(rows, NAMES, "tsv").decode().splitlines()]
    read = [float(text) if text else math.nan for text in texts]
    np.testing.assert_array_equal(read, scores)
    assert "-0.0" not in texts


@pytest.mark.parametrize("fmt", RENDERED)
def test_render__is_the_same_for_any_division(fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(1000)
    whole = render(rows, NAMES, fmt)
    assert whole.count(b"\n") == 1000
    assert whole == b"".join(render(rows[at : at + 7], NAMES, fmt) for at in range(0, 1000, 7))
    monkeypatch.setattr(columns, "PIECE", 13)
    assert whole == render(rows, NAMES, fmt)


@pytest.mark.parametrize("fmt", RENDERED)
def test_render__of_no_rows_is_nothing(fmt: str) -> None:
    assert render(Batch.empty(), NAMES, fmt) == b""
    assert render(Batch.empty(), signatures_named([]), fmt) == b""


@examples(200)
@given(st.lists(st.tuples(st.integers(-(2**63) + 1, 2**63 - 1), st.binary(), st.integers(0, 2))))
def test_lines__have_the_columns_from_left_to_right(rows: list[tuple[int, bytes, int]]) -> None:
    kinds = [b"", b"one", b"another"]
    numbers = np.array([number for number, _, _ in rows], np.int64)
    texts = columns.Texts.of([text for _, text, _ in rows])
    repeated = columns.Texts(kinds, np.array([kind for _, _, kind in rows], np.intp))
    found = columns.lines_of(len(rows), numbers, b"\t", texts, b"", repeated, b"\n")
    assert found == b"".join(b"%d\t%s%s\n" % (n, text, kinds[kind]) for n, text, kind in rows)


# ---- files ------------------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "BLOCK", 1000)
    monkeypatch.setattr(parquet, "ROW_GROUP", 50)


@pytest.mark.parametrize(
    ("fmt", "compression"),
    [
        *((fmt, compression) for fmt in TEXT_FORMATS for compression in ("none", "gzip", "zstd")),
        ("parquet", "none"),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_table__writes_the_same_bytes_however_rows_are_divided(fmt: str, compression: str) -> None:
    rows = random_rows(330)
    whole = written([rows], fmt, compression)

    @examples(20)
    @given(st.lists(st.integers(0, 330)))
    def check(cuts: list[int]) -> None:
        borders = [0, *sorted(cuts), 330]
        parts = [rows[start:stop] for start, stop in pairwise(borders)]
        assert written(parts, fmt, compression) == whole

    check()


@pytest.mark.parametrize("fmt", TEXT_FORMATS)
@pytest.mark.usefixtures("small_blocks")
def test_table__compresses_header_and_rows(fmt: str) -> None:
    rows = random_rows(330)
    text = header(fmt) + render(rows, NAMES, fmt)
    assert written([rows], fmt, "none") == text
    assert gzip.decompress(written([rows], fmt, "gzip")) == text
    assert zstd.decompress(written([rows], fmt, "zstd")) == text


@pytest.mark.usefixtures("small_blocks")
def test_table__takes_text_rendered_elsewhere() -> None:
    rows = random_rows(330)
    file = io.BytesIO()
    with open_table(file, "bed", "gzip", NAMES) as write:
        for at in range(0, 330, 100):
            write(render(rows[at : at + 100], NAMES, "bed"))
    assert file.getvalue() == written([rows], "bed", "gzip")


def test_gzip__has_no_time_and_no_name() -> None:
    stored = written([ROWS], "tsv", "gzip")
    assert stored[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
    assert zlib.decompressobj(31).decompress(stored).endswith(b"+\t\n")


def test_zstd__has_a_checksum() -> None:
    stored = bytearray(written([ROWS], "tsv", "zstd"))
    stored[-1] ^= 1
    with pytest.raises(zstd.ZstdError, match=r"checksum"):
        zstd.decompress(bytes(stored))


@pytest.mark.parametrize("fmt", TABLES)
def test_table__without_rows_makes_a_valid_file(fmt: str) -> None:
    if fmt == "parquet":
        assert pq.read_table(io.BytesIO(written([], fmt, "none"))).num_rows == 0
        return
    assert written([], fmt, "none") == header(fmt)
    assert gzip.decompress(written([], fmt, "gzip")) == header(fmt)
    assert zstd.decompress(written([Batch.empty()], fmt, "zstd")) == header(fmt)


# ---- Parquet and Arrow ------------------------------------------------------------------------


def test_arrow__has_the_documented_columns() -> None:
    table = to_arrow(ROWS, NAMES.names)
    assert {field.name: str(field.type) for field in table.schema} == {
        "sample": "string",
        "sample_index": "int64",
        "signature": "string",
        "signature_index": "int32",
        "start": "int64",
        "end": "int64",
        "strand": "string",
        "score": "double",
        "ambiguous": "int32",
    }
    assert [field.name for field in table.schema if field.nullable] == ["score"]
    assert table.to_pydict() == {
        "sample": ["read1", "read2", "read2"],
        "sample_index": [0, 1, 2],
        "signature": ["adapter", "café", "adapter"],
        "signature_index": [0, 1, 0],
        "start": [0, 3, 2**40],
        "end": [12, 15, 2**40 + 12],
        "strand": ["+", "-", "+"],
        "score": [21.85, 10.0, None],
        "ambiguous": [0, 1, 2],
    }


def test_arrow__has_columns_on_request() -> None:
    table = to_arrow(ROWS, NAMES.names, with_columns("parquet", ("edits", "cigar")))
    assert table.column_names[-3:] == ["edits", "cigar", "ambiguous"]
    assert table["edits"].to_pylist() == [3, 4, 5]
    assert table["cigar"].to_pylist() == ["0=1X", "1=1X", "2=1X"]


def test_arrow__replaces_what_is_no_utf8() -> None:
    table = to_arrow(batch((b"\xff", 2, 0, 1, False, 1.0)), NAMES.names)
    assert table["sample"].to_pylist() == table["signature"].to_pylist() == ["\ufffd"]


@pytest.mark.usefixtures("small_blocks")
def test_arrow__of_many_pieces_and_of_none() -> None:
    assert to_arrow(random_rows(330), NAMES.names)["sample_index"].to_pylist() == list(range(330))
    assert to_arrow(Batch.empty(), []).schema == to_arrow(ROWS, NAMES.names).schema


@pytest.mark.usefixtures("small_blocks")
def test_parquet__has_full_row_groups_and_dictionaries() -> None:
    rows = random_rows(330)
    file = io.BytesIO(written([rows[:3], rows[3:170], rows[170:]], "parquet", "none"))
    metadata = pq.ParquetFile(file).metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [50] * 6 + [30]
    assert "RLE_DICTIONARY" in groups[0].column(2).encodings
    assert groups[0].column(0).compression == "ZSTD"
    assert pq.read_table(file).equals(to_arrow(rows, NAMES.names))


def test_parquet__has_the_same_pages_however_rows_are_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pages are filled by bytes, so it takes many rows to see where chunks end."""
    monkeypatch.setattr(parquet, "ROW_GROUP", 200_000)
    rows = random_rows(300_000)
    whole = written([rows], "parquet", "none")
    for size in (5000, 130_000):
        parts = [rows[at : at + size] for at in range(0, len(rows), size)]
        assert written(parts, "parquet", "none") == whole


def test_parquet__refuses_a_second_compression_and_text() -> None:
    with pytest.raises(UsageError, match=r"Parquet files are compressed inside"):
        written([], "parquet", "gzip")
    with (
        pytest.raises(TypeError, match=r"is written from batches"),
        open_table(io.BytesIO(), "parquet", "none", NAMES) as write,
    ):
        write(b"text")


def test_parquet__can_be_written_to_a_file(tmp_path: Path) -> None:
    with (
        (tmp_path / "hits.parquet").open("wb") as file,
        open_table(file, "parquet", "none", NAMES) as write,
    ):
        write(ROWS)
    assert pq.read_table(tmp_path / "hits.parquet").num_rows == 3
