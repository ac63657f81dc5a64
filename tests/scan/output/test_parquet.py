"""Rows as tables of Arrow and Parquet files."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.scan_rows import NAMES, ROWS, batch, random_rows, written

from multigpu.formats.tables import parquet as row_groups
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.output import parquet
from multigpu.workloads.scan.output.parquet import to_arrow
from multigpu.workloads.scan.output.row_lines import ScanRows

AMBIGUOUS = ("ambiguous",)


def test_arrow__has_the_documented_columns() -> None:
    table = to_arrow(ScanRows(ROWS, NAMES, AMBIGUOUS))
    assert {field.name: str(field.type) for field in table.schema} == {
        "sample": "string", "sample_index": "int64", "signature": "string",
        "signature_index": "int32", "start": "int64", "end": "int64", "strand": "string",
        "score": "double", "ambiguous": "int32",
    }  # fmt: skip
    assert [field.name for field in table.schema if field.nullable] == ["score"]
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("read1", 0, "adapter", 0, 0, 12, "+", 21.85, 0),
        ("read2", 1, "café", 1, 3, 15, "-", 10.0, 1),
        ("read2", 2, "adapter", 0, 2**40, 2**40 + 12, "+", None, 2),
    ]
    more = to_arrow(ScanRows(ROWS, NAMES, ("edits", "cigar", *AMBIGUOUS)))
    assert more.column_names[-3:] == ["edits", "cigar", "ambiguous"]
    assert more["edits"].to_pylist() == [3, 4, 5]
    assert more["cigar"].to_pylist() == ["0=1X", "1=1X", "2=1X"]
    table = to_arrow(ScanRows(batch((b"\xff", 2, 0, 1, False, 1.0)), NAMES, ()))
    assert table["sample"].to_pylist() == table["signature"].to_pylist() == ["\ufffd"]  # no UTF-8


def test_file__has_full_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (row_groups, parquet):
        monkeypatch.setattr(module, "ROW_GROUP", 50)
    rows, path = random_rows(330), tmp_path / "hits.parquet"
    table = to_arrow(ScanRows(rows, NAMES, ()))
    assert table["sample_index"].to_pylist() == [number // 3 for number in range(330)]
    assert to_arrow(ScanRows(Batch.empty(), NAMES, ())).schema == table.schema
    divided = written([rows[:3], rows[3:171], rows[171:]], path, "parquet")
    file = pq.ParquetFile(path)
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [50] * 6 + [30]
    assert "RLE_DICTIONARY" in groups[0].column(2).encodings
    assert groups[0].column(0).compression == "ZSTD"
    scanned = ScanRows(rows, NAMES, ("file", *AMBIGUOUS), ("samples",))
    assert pq.read_table(path).equals(to_arrow(scanned))
    assert written([rows], path, "parquet") == divided
    written([], path, "parquet")
    assert pq.read_table(path).num_rows == 0


def test_file__has_the_same_pages_however_rows_are_divided(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pages are filled by bytes, so it takes many rows to see where chunks end."""
    monkeypatch.setattr(row_groups, "ROW_GROUP", 200_000)
    rows, path = random_rows(300_000), tmp_path / "hits.parquet"
    whole = written([rows], path, "parquet")
    for size in (5001, 129_999):
        parts = [rows[at : at + size] for at in range(0, len(rows), size)]
        assert written(parts, path, "parquet") == whole
