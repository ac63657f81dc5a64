"""Counts tables: what is written is read back, and what is wrong is named."""

import errno
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.stored import Store

from multigpu.errors import Failure, InputError, UsageError
from multigpu.formats.alignments.regions import Regions, windows
from multigpu.formats.tables import counts_arrow, counts_tsv
from multigpu.formats.tables.counts import CountRows, Counts, place_batches
from multigpu.formats.tables.counts_files import read_counts, write_counts

NAMES = ("a.tsv", "a.tsv.gz", "a.tsv.zst", "a.parquet", "a.pq", "a")


def table(rows: int = 7, samples: int = 3, dtype: type = np.int32) -> Counts:
    regions = windows([("chr2", 5 * rows), ("chr10", 5 * rows)], 10)
    values = np.random.default_rng(1).integers(0, 90, (len(regions), samples)).astype(dtype)
    if dtype is np.float64:
        values[-1, -1] = 1 / 3
    return Counts(regions, tuple(f"s {i}" for i in range(samples)), values)


def same(a: Counts, b: Counts) -> bool:
    ours, theirs = a.regions, b.regions
    return (
        (a.samples, ours.names, a.values.dtype) == (b.samples, theirs.names, b.values.dtype)
        and (a.values == b.values).all()
        and all((getattr(ours, c) == getattr(theirs, c)).all() for c in ("chrom", "start", "end"))
    )


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_tables__come_back_as_they_were(tmp_path: Path, name: str, dtype: type) -> None:
    path, written = str(tmp_path / name), table(dtype=dtype)
    write_counts(path, written)
    found = read_counts(path)
    assert same(found, written)
    assert found.notes == ()


@pytest.mark.parametrize("name", NAMES[:4])
def test_tables__have_no_pieces(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = table(rows=100)
    write_counts(str(tmp_path / name), written)
    whole = (tmp_path / name).read_bytes()
    for module in (counts_arrow, counts_tsv):
        monkeypatch.setattr(module, "ROWS", 7)
    assert same(read_counts(str(tmp_path / name)), written)
    write_counts(str(tmp_path / name), written)
    assert (tmp_path / name).read_bytes() == whole


def test_parquet__keeps_the_names_of_regions(tmp_path: Path) -> None:
    path, genes, written = str(tmp_path / "a.parquet"), ("A", "", "B,C", *["D"] * 5), table()
    write_counts(path, written)
    plain = Path(path).read_bytes()
    write_counts(path, replace(written, regions=replace(written.regions, genes=genes)))
    assert read_counts(path).regions.genes == genes
    assert same(read_counts(path), written)
    write_counts(path, written)
    assert Path(path).read_bytes() == plain
    schema = pq.read_schema(path).with_metadata({"genes": "A"})
    pq.write_table(pq.read_table(path).cast(schema), path)
    with pytest.raises(InputError, match="is damaged: 8 regions have 1 names"):
        read_counts(path)


def test_text__is_what_the_document_says(tmp_path: Path) -> None:
    regions, values = Regions.of([("c", 0, 5), ("d", 2, 4)]), np.array([[1, 2], [0, 7]], np.int32)
    write_counts(str(tmp_path / "a.tsv"), Counts(regions, ("x", "y z"), values))
    expected = "chrom\tstart\tend\tx\ty z\nc\t0\t5\t1\t2\nd\t2\t4\t0\t7\n"
    assert (tmp_path / "a.tsv").read_text() == expected


@pytest.mark.parametrize(("text", "value", "kind"), [
    (b"#chrom\tstart\tend\ta\nc\t0\t5\t1e2\n", 100, np.int32),
    ("\ufeffchrom\tstart\tend\ta\r\nc\t0\t5\t100\r\n\r\n".encode(), 100, np.int32),
    (b"chrom\tstart\tend\ta\nc\t0\t5\t5000000000\n", 5e9, np.float64),  # too large for int32
])  # fmt: skip
def test_text__of_other_programs(store: Store, text: bytes, value: float, kind: type) -> None:
    found = read_counts(store(text))
    assert (found.samples, found.values.tolist()) == (("a",), [[value]])
    assert found.values.dtype == kind


def test_counts__whole_ones_of_any_type_become_int32(tmp_path: Path) -> None:
    path, kinds = str(tmp_path / "a.parquet"), {"a": pa.int64(), "b": pa.float64(), "c": pa.uint8()}
    columns = {"chrom": ["c"], "start": [0], "end": [9]}
    counts = {name: pa.array([5], kind) for name, kind in kinds.items()}
    pq.write_table(pa.table(columns | counts), path)
    assert read_counts(path).values.dtype == np.int32
    assert read_counts(path).values.tolist() == [[5, 5, 5]]


@pytest.mark.parametrize("rows_at_a_time", [1, 1 << 16])
def test_rows__are_sorted_within_chromosomes_as_they_appear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_a_time: int
) -> None:
    columns = {"chrom": list("ccdcc"), "start": [10, 0, 0, 5, 0], "end": [20, 10, 10, 15, 10]}
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table(columns | {"a": [1, 2, 3, 4, 5]}), path)
    for module in (counts_arrow, counts_tsv):
        monkeypatch.setattr(module, "ROWS", rows_at_a_time)
    found = read_counts(path)
    assert found.regions.names == ("c", "d")
    assert found.values[:, 0].tolist() == [2, 5, 4, 1, 3]
    assert found.regions.start.tolist() == [0, 0, 5, 10, 0]
    assert found.notes == (
        f"{path}: the regions are not in order: they are sorted",
        f"{path}: 1 region is given more than once",
        f"{path}: 2 regions are overlapping an earlier one",
    )


OTHERS = {  # files that are given instead of a table, and what is said of them
    "chromosome\tstart\tend\tgene\tlog2\n": "is a file of CNVkit, .* give the BAM",
    "chromosome\tstart\tend\tgene\tdepth\tlog2\tweight\n": "is a file of CNVkit, .* give the BAM",
    "@SQ\tSN:chr1\tLN:1000\n": r"is a SAM file, .*: samtools sort -o .*x\.bam .*x\.sam$",
}


@pytest.mark.parametrize("text", OTHERS)
def test_read__other_files_are_called_by_their_name(store: Store, text: str) -> None:
    with pytest.raises(InputError, match=OTHERS[text]):
        read_counts(store(text.encode(), "x.sam"))


HEADER = "chrom\tstart\tend\ta\tb\n"
NO_TABLE = "is no counts table: its columns are chrom, start, end and samples"


@pytest.mark.parametrize(("text", "message"), [
    ("", f"{NO_TABLE}, and it begins"),
    ("x\ty\n1\t2\n", "is no counts table"),
    (
        "chrom,start,end,a\n",
        f"{NO_TABLE}, not 'chrom,start,end,a'; `tr ',' '\\t' < FILE` separates them by tabs",
    ),
    ("chrom\tstart\tend\nc\t0\t5\n", "there are no samples"),
    ("chrom\tstart\tend\ta\ta\nc\t0\t5\t1\t1\n", "column 5: the sample 'a' is listed twice"),
    ("chrom\tstart\tend\ta\t\nc\t0\t5\t1\t1\n", "column 5: has no name"),
    (HEADER, "there are no regions"),
    (HEADER + "c\t0\t5\t1\t2\nc\t5\t9\t1\t-2\n", "row 2, column b: -2 is no count"),
    (HEADER + "c\t0\t5\t1\t2\nc\t5\t9\tNaN\t2\n", "row 2, column a: nan is no count"),
    (HEADER + "c\t0\t5\tinf\t2\n", "row 1, column a: inf is no count"),
    (HEADER + "c\t0\t5\t1\t2\nc\t5\t9\t1\tmany\n", "row 2, column b: 'many' is no number"),
    (HEADER + "c\t0\t5\t1\t\n", "row 1, column b: '' is no number"),
    (HEADER + "c\t0\t5\tNA\t1\n", "row 1, column a: 'NA' is no number"),
    (HEADER + "c\t0\t5.5\t1\t1\n", "row 1, column end: '5.5' is no whole number"),
    (HEADER + "c\t0\t5\t1\t1\n\nc\t5\t9\t1\n", "row 2: 4 columns instead of 5"),
    (HEADER + "c\t0\t5\t1\t1\nc\t9\t9\t1\t1\n", "row 2: 9 to 9 is no region"),
    (HEADER + "c\t-1\t9\t1\t1\n", "row 1: -1 to 9 is no region"),
    (HEADER + "c\t0\t1099511627776\t1\t1\n", "row 1: 0 to 1099511627776 is no region"),
    (HEADER + "c\t0\t5\t1\t1_0\n", "row 1, column b: '1_0' is no number"),
    (HEADER + "c\t+1\t5\t1\t1\n", "row 1, column start: '+1' is no whole number"),
    (HEADER + "c\t0\t5\t1\t5\nc\t1_0\t50\t1\t1\n", "row 2, column start: '1_0' is no whole"),
    (HEADER + "c\t9223372036854775808\t5\t1\t1\n", "row 1, column start: '9223372036854775808'"),
    (HEADER + "c\t0\t5\t1\t1\n\t\t\t\t\n", "row 2, column start: '' is no whole number"),
    (HEADER + "c\t0\t5\t1\t1\n\t5\t9\t1\t1\n", "row 2, column chrom: the chromosome has no name"),
    (HEADER + "c\t0\t5\t1\t1\nc\0\t5\t9\t1\t1\n", "row 2, column chrom: 'c\\x00' is no"),
    ("chrom\tstart\tend\ta\0\nc\t0\t5\t1\n", "column 4: 'a\\x00' is no name of a sample"),
    (HEADER + "c\t0\t5\t1\t1e308\n", "row 1, column b: 1e+308 is no count: counts are below"),
    (HEADER + "c\t0\t5\t1\t1\n\xe9\t0\t5\t1\t1\n", "row 2, column chrom: is not UTF-8"),
])  # fmt: skip
def test_text__what_is_wrong_is_named(store: Store, text: str, message: str) -> None:
    path = store(text.encode("latin-1"))
    assert problem(path).startswith(f"{path}: {message}")


VALUES = [
    "5", " 5 ", "-5", "+5", "", " ", "1_0", "1,0", "0x10", "007", "1.0", "1.", ".5", "1e3", "1e",
    "nan", "inf", "infinity", "NA", "\u0665", "\uff15", "5\v", "\xa05", "1d",
    "9" * 19, "9" * 400, "1e999",
]  # fmt: skip


@pytest.mark.parametrize("column", ["start", "a"])
@pytest.mark.parametrize("value", VALUES)
def test_text__is_refused_in_words_of_our_own(store: Store, value: str, column: str) -> None:
    fields = ["c", "0", "5", "1", "1"]
    fields[{"start": 1, "a": 3}[column]] = value
    said = problem(store((HEADER + "c\t0\t5\t1\t1\n" + "\t".join(fields) + "\n").encode()))
    assert "CSV" not in said
    assert not said or ": row 2" in said


def test_text__rows_are_counted_through_all_batches(store: Store) -> None:
    rows = "".join(f"c\t{i}\t{i + 1}\t{-1 if i == 200_000 else 1}\n" for i in range(200_001))
    path = store(f"chrom\tstart\tend\ta\n{rows}".encode())
    assert "row 200001, column a: -1 is no count" in problem(path)


@pytest.mark.parametrize(("changes", "message"), [
    ({"a": pa.array([1, None])}, "row 2, column a: nan is no count"),
    ({"a": pa.array([1, -3], pa.int32())}, "row 2, column a: -3 is no count"),
    ({"a": ["1", "2"]}, "column a: it cannot hold string"),
    ({"start": [0.5, 9.0]}, "column start: it cannot hold double"),
    ({"chrom": [1, 2]}, "column chrom: it cannot hold int64"),
    ({"chrom": ["c", None]}, "row 2, column chrom: is missing"),
    ({"start": [None, 5], "chrom": ["c", None]}, "row 1, column start: is missing"),
    ({"end": pa.array([5, None], pa.int32())}, "row 2, column end: is missing"),
    ({"chrom": ["c", ""]}, "row 2, column chrom: the chromosome has no name"),
    ({"chrom": ["c", "d\0"]}, r"row 2, column chrom: 'd\\x00' is no chromosome"),
])  # fmt: skip
def test_parquet__what_is_wrong(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = str(tmp_path / "a.parquet")
    columns = {"chrom": ["c", "c"], "start": [0, 5], "end": [5, 9], "a": [1, 2]}
    pq.write_table(pa.table(columns | changes), path)
    with pytest.raises(InputError, match=message):
        read_counts(path)


COUNTS_OF_SIX = {
    "whole": ([1, 2, 3, 4, 5, 6], np.int32),
    "too large": ([1, 2, 3, 4, 5, 5_000_000_000], np.float64),
    "fractional": ([1.0, 2.0, 3.0, 4.0, 5.5, 6.0], np.float64),
}


def six_rows(folder: Path, counts: Any, group: int) -> str:
    """A table in row groups of so many rows."""
    columns = {"chrom": list("bbbaac"), "start": [0, 5, 9, 0, 5, 0], "end": [5, 9, 12, 5, 9, 3]}
    pq.write_table(pa.table(columns | {"x": counts}), folder / "a.parquet", group)
    return str(folder / "a.parquet")


@pytest.mark.parametrize("group", [1, 2, 4, 6])
@pytest.mark.parametrize("case", COUNTS_OF_SIX)
def test_parquet__row_groups_of_any_size(tmp_path: Path, case: str, group: int) -> None:
    counts, kind = COUNTS_OF_SIX[case]
    found = read_counts(six_rows(tmp_path, counts, group))
    assert (found.regions.names, found.notes) == (("b", "a", "c"), ())
    assert found.regions.chrom.tolist() == [0, 0, 0, 1, 1, 2]
    assert found.regions.start.tolist() == [0, 5, 9, 0, 5, 0]
    assert found.values.dtype == kind
    assert found.values[:, 0].tolist() == counts


@pytest.mark.parametrize("group", [1, 2, 6])
@pytest.mark.parametrize(("counts", "message"), [
    ([1, 2, -3, 4, -5, 6], "row 3, column x: -3 is"),
    (pa.array([1, 2, 3, 4, -5, None]), "row 5, column x: -5 is"),
    ([1.5, 2.0, 3.0, float("nan"), -5.0, 6.0], "row 4, column x: nan is"),
])  # fmt: skip
def test_parquet__the_first_wrong_row_is_told_whichever_is_found_first(
    tmp_path: Path, counts: Any, message: str, group: int
) -> None:
    with pytest.raises(InputError, match=message):
        read_counts(six_rows(tmp_path, counts, group))


def test_tables__that_are_cut_or_damaged_are_told_in_one_line(tmp_path: Path) -> None:
    for name, said in (
        ("a.tsv.gz", "gzip data ends early"),
        ("a.parquet", "cannot be read as Par"),
    ):
        path = tmp_path / name
        write_counts(str(path), table())
        whole = path.read_bytes()
        path.write_bytes(whole[:-9])
        assert problem(str(path)).startswith(f"{path}: {said}")
    for at in range(4, len(whole), 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert "\n" not in problem(str(path))


def problem(path: str) -> str:
    """What is wrong with a table; nothing where it can be read."""
    try:
        read_counts(path)
    except InputError as error:
        return str(error)
    return ""


def test_text__through_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    good = HEADER + "c\t0\t5\t1\t2\n"
    for row, expected in (
        ("", ""),
        ("c\t0\t5\tx\t2\n", "row 2, column a: 'x' is no number"),
        ("c\t1_0\t50\t1\t2\n", "row 2, column start: '1_0' is no whole number"),
        ("\xe9\t0\t5\t1\t2\n", "row 2, column chrom: is not UTF-8"),
        ("c\t0\t5\t1\n", "row 2: 4 columns instead of 5"),
    ):
        text = (good + row).encode("latin-1")
        writer = threading.Thread(target=pipe.write_bytes, args=(text,))
        writer.start()
        if expected:
            assert problem(str(pipe)).startswith(f"{pipe}: {expected}")
        else:
            assert read_counts(str(pipe)).values.tolist() == [[1, 2]]
        writer.join()


def test_parquet__with_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = str(tmp_path / os.fsdecode(b"a\xff.parquet"))
    write_counts(path, table())
    with pytest.raises(InputError, match="its name is not UTF-8, as Parquet needs: rename it"):
        read_counts(path)


def test_text__names_that_would_break_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    bad = Counts(Regions.of([("c", 0, 1)]), ("a\tb",), np.zeros((1, 1), np.int32))
    with pytest.raises(UsageError, match="cannot be a name in a TSV file"):
        write_counts(str(path), bad)
    assert not path.exists()


def test_counts__other_shapes_are_refused() -> None:
    good = table()
    with pytest.raises(ValueError, match=r"values: \[8, 3\] instead of \[8, 1\]"):
        Counts(good.regions, ("a",), good.values)
    with pytest.raises(ValueError, match="instead of contiguous int32 or float64"):
        Counts(good.regions, good.samples, good.values.astype(np.int64))


@pytest.mark.parametrize(
    "error", [pa.ArrowMemoryError("realloc"), OSError(errno.ENOMEM, "?"), MemoryError()]
)
def test_parquet__that_does_not_fit_the_memory_is_not_called_damaged(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(pq, "read_schema", Mock(side_effect=error))
    with pytest.raises(Failure, match=r"a\.parquet: does not fit into memory") as said:
        read_counts(store(b"PAR1 and more", "a.parquet"))
    assert not isinstance(said.value, InputError)


@pytest.mark.parametrize(("names", "numbers"), [([], [0, 0]), (["a"], [0, 1]), (["a"], [-1, 0])])
def test_parquet__of_chromosomes_without_names(names: list[str], numbers: list[int]) -> None:
    """Arrow reads such a dictionary, of a file that is damaged, without looking at it."""
    indices = pa.array(numbers, pa.int32())
    chrom = pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()), safe=False)
    columns = [chrom, pa.array([0, 5]), pa.array([5, 9]), pa.array([1, 2], pa.int32())]
    batch = pa.record_batch(columns, ["chrom", "start", "end", "s"])
    whole = CountRows.empty(2, 1, np.int32, np.empty)
    with pytest.raises(InputError, match=r"its chromosomes are damaged$"):
        place_batches("x.parquet", ("s",), [batch], whole)
