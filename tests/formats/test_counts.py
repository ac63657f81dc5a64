"""Counts tables: what is written is read back, and what is wrong is named."""

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from multigpu.errors import Failure, InputError, UsageError
from multigpu.formats.alignments.regions import Regions, windows
from multigpu.formats.tables import counts_arrow, counts_tsv
from multigpu.formats.tables.counts import CountRows, Counts, place_batches
from multigpu.formats.tables.counts_files import read_counts, write_counts

NAMES = ("a.tsv", "a.tsv.gz", "a.tsv.zst", "a.parquet", "a.pq", "a")

Store = Callable[[str], str]


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


@pytest.fixture
def store(tmp_path: Path) -> Store:
    def write(text: str) -> str:
        (tmp_path / "counts.tsv").write_text(text)
        return str(tmp_path / "counts.tsv")

    return write


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_tables__come_back_as_they_were(tmp_path: Path, name: str, dtype: type) -> None:
    path, written = str(tmp_path / name), table(dtype=dtype)
    write_counts(path, written)
    found = read_counts(path)
    assert same(found, written)
    assert found.notes == ()


@pytest.mark.parametrize("name", NAMES[:4])
def test_tables__bytes_do_not_depend_on_pieces(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = table(rows=100)
    write_counts(str(tmp_path / name), written)
    whole = (tmp_path / name).read_bytes()
    for module in (counts_arrow, counts_tsv):
        monkeypatch.setattr(module, "ROWS", 7)
    assert same(read_counts(str(tmp_path / name)), written)
    write_counts(str(tmp_path / name), written)
    assert (tmp_path / name).read_bytes() == whole


def test_parquet__keeps_the_names_of_regions(tmp_path: Path) -> None:
    path, genes = str(tmp_path / "a.parquet"), ("A", "", "B,C", *["D"] * 5)
    written = table()
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
    regions = Regions.of([("c", 0, 5), ("d", 2, 4)])
    write_counts(
        str(tmp_path / "a.tsv"), Counts(regions, ("x", "y z"), np.array([[1, 2], [0, 7]], np.int32))
    )
    expected = "chrom\tstart\tend\tx\ty z\nc\t0\t5\t1\t2\nd\t2\t4\t0\t7\n"
    assert (tmp_path / "a.tsv").read_text() == expected


@pytest.mark.parametrize("text", ["#chrom\tstart\tend\ta\nc\t0\t5\t1e2\n", (
    "\ufeffchrom\tstart\tend\ta\r\nc\t0\t5\t100\r\n\r\n"
)])  # fmt: skip
def test_text__of_other_programs(store: Store, text: str) -> None:
    found = read_counts(store(text))
    assert found.samples == ("a",)
    assert found.values.tolist() == [[100]]
    assert found.values.dtype == np.int32


def test_counts__whole_ones_of_any_type_become_int32(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    columns = {"chrom": ["c"], "start": [0], "end": [9]}
    columns |= {
        "a": pa.array([5], pa.int64()),
        "b": pa.array([6.0]),
        "c": pa.array([7], pa.uint8()),
    }
    pq.write_table(pa.table(columns), path)
    assert read_counts(path).values.dtype == np.int32
    assert read_counts(path).values.tolist() == [[5, 6, 7]]


def test_counts__too_large_for_int32_stay_float64(store: Store) -> None:
    found = read_counts(store("chrom\tstart\tend\ta\nc\t0\t5\t5000000000\n"))
    assert found.values.dtype == np.float64
    assert found.values[0, 0] == 5e9


ROWS = ["c\t10\t20\t1", "c\t0\t10\t2", "d\t0\t10\t3", "c\t5\t15\t4", "c\t0\t10\t5"]


@pytest.mark.parametrize("rows_at_a_time", [1, 1 << 16])
def test_rows__are_sorted_within_chromosomes_as_they_appear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_a_time: int
) -> None:
    columns = list(zip(*(row.split("\t") for row in ROWS), strict=True))
    kinds = [str, int, int, int]
    arrays = [[kind(value) for value in c] for kind, c in zip(kinds, columns, strict=True)]
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table(arrays, ["chrom", "start", "end", "a"]), path)
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
    "chrom,start,end,a\nc,0,5,7\n": "are chrom, start, end and samples, not 'chrom,start,end,a'",
}


@pytest.mark.parametrize("text", OTHERS)
def test_read__other_files_are_called_by_their_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.sam"
    path.write_bytes(text.encode())
    with pytest.raises(InputError, match=OTHERS[text]):
        read_counts(str(path))


HEADER = "chrom\tstart\tend\ta\tb\n"
NO_TABLE = "is no counts table: its columns are chrom, start, end and samples"


@pytest.mark.parametrize(
    ("text", "message"),
    [
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
        (
            HEADER + "c\t9223372036854775808\t5\t1\t1\n",
            "row 1, column start: '9223372036854775808'",
        ),
        (HEADER + "c\t0\t5\t1\t1\n\t\t\t\t\n", "row 2, column start: '' is no whole number"),
        (
            HEADER + "c\t0\t5\t1\t1\n\t5\t9\t1\t1\n",
            "row 2, column chrom: the chromosome has no name",
        ),
        (HEADER + "c\t0\t5\t1\t1\nc\0\t5\t9\t1\t1\n", "row 2, column chrom: 'c\\x00' is no"),
        ("chrom\tstart\tend\ta\0\nc\t0\t5\t1\n", "column 4: 'a\\x00' is no name of a sample"),
        (HEADER + "c\t0\t5\t1\t1e308\n", "row 1, column b: 1e+308 is no count: counts are below"),
    ],
)
def test_text__what_is_wrong_is_named(store: Store, text: str, message: str) -> None:
    path = store(text)
    with pytest.raises(InputError) as caught:
        read_counts(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_text__a_chromosome_in_latin_1_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes((HEADER + "c\t0\t5\t1\t1\n\xe9\t0\t5\t1\t1\n").encode("latin-1"))
    with pytest.raises(InputError, match="row 2, column chrom: is not UTF-8"):
        read_counts(str(path))


VALUES = [
    "5", " 5 ", "-5", "+5", "", " ", "1_0", "1,0", "0x10", "007", "1.0", "1.", ".5", "1e3", "1e",
    "nan", "inf", "infinity", "NA", "\u0665", "\uff15", "5\v", "\xa05", "1d",
    "9" * 19, "9" * 400, "1e999",
]  # fmt: skip


@pytest.mark.parametrize("column", ["start", "a"])
@pytest.mark.parametrize("value", VALUES)
def test_text__no_value_is_refused_in_the_words_of_a_library(
    store: Store, value: str, column: str
) -> None:
    fields = ["c", "0", "5", "1", "1"]
    fields[{"start": 1, "a": 3}[column]] = value
    said = problem(store(HEADER + "c\t0\t5\t1\t1\n" + "\t".join(fields) + "\n"))
    assert "CSV" not in said
    assert not said or ": row 2" in said


def test_text__rows_are_counted_through_all_batches(tmp_path: Path) -> None:
    rows = "".join(f"c\t{i}\t{i + 1}\t1\n" for i in range(200_000))
    path = tmp_path / "a.tsv"
    path.write_text("chrom\tstart\tend\ta\n" + rows + "c\t200000\t200001\t-1\n")
    with pytest.raises(InputError, match="row 200001, column a: -1 is no count"):
        read_counts(str(path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
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
    ],
)
def test_parquet__what_is_wrong_is_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
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
def test_parquet__row_groups_of_any_size_are_one_table(
    tmp_path: Path, case: str, group: int
) -> None:
    counts, kind = COUNTS_OF_SIX[case]
    found = read_counts(six_rows(tmp_path, counts, group))
    assert (found.regions.names, found.notes) == (("b", "a", "c"), ())
    assert found.regions.chrom.tolist() == [0, 0, 0, 1, 1, 2]
    assert found.regions.start.tolist() == [0, 5, 9, 0, 5, 0]
    assert found.values.dtype == kind
    assert found.values[:, 0].tolist() == counts


@pytest.mark.parametrize("group", [1, 2, 6])
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 2, -3, 4, -5, 6], "row 3, column x: -3 is"),
        (pa.array([1, 2, 3, 4, -5, None]), "row 5, column x: -5 is"),
        ([1.5, 2.0, 3.0, float("nan"), -5.0, 6.0], "row 4, column x: nan is"),
    ],
)
def test_parquet__the_first_wrong_row_is_told_whichever_is_found_first(
    tmp_path: Path, counts: Any, message: str, group: int
) -> None:
    with pytest.raises(InputError, match=message):
        read_counts(six_rows(tmp_path, counts, group))


@pytest.mark.parametrize(
    ("name", "problem"),
    [("a.parquet", "cannot be read as Parquet"), ("a.tsv.gz", "gzip data ends early: the file is")],
)
def test_tables__that_are_cut(tmp_path: Path, name: str, problem: str) -> None:
    path = tmp_path / name
    write_counts(str(path), table())
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=f"{name}: {problem}"):
        read_counts(str(path))


def test_parquet__that_is_damaged_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_counts(str(path), table())
    whole = path.read_bytes()
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
    for text, expected in (
        (good, None),
        (good + "c\t0\t5\tx\t2\n", "row 2, column a: 'x' is no number"),
        (good + "c\t1_0\t50\t1\t2\n", "row 2, column start: '1_0' is no whole number"),
        (good + "\xe9\t0\t5\t1\t2\n", "row 2, column chrom: is not UTF-8"),
        (good + "c\t0\t5\t1\n", "row 2: 4 columns instead of 5"),
    ):
        writer = threading.Thread(target=pipe.write_bytes, args=(text.encode("latin-1"),))
        writer.start()
        if expected is None:
            assert read_counts(str(pipe)).values.tolist() == [[1, 2]]
        else:
            with pytest.raises(InputError, match=expected):
                read_counts(str(pipe))
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


@pytest.mark.parametrize("error", ["arrow", "system", "python"])
def test_parquet__that_does_not_fit_the_memory_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    errors = {
        "arrow": pa.ArrowMemoryError("realloc of size 4096 failed"),
        "system": OSError(errno.ENOMEM, "Cannot allocate memory"),
        "python": MemoryError("realloc of size 4096 failed"),
    }
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 and more")

    def fail(*_: object) -> None:
        raise errors[error]

    monkeypatch.setattr(pq, "read_schema", fail)
    with pytest.raises(Failure, match=r"a\.parquet: does not fit into memory") as said:
        read_counts(str(path))
    assert not isinstance(said.value, InputError)


@pytest.mark.parametrize(("names", "numbers"), [([], [0, 0]), (["a"], [0, 1]), (["a"], [-1, 0])])
def test_parquet__whose_chromosomes_have_no_names_is_refused(
    names: list[str], numbers: list[int]
) -> None:
    """Arrow reads such a dictionary, of a file that is damaged, without looking at it."""
    indices = pa.array(numbers, pa.int32())
    chrom = pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()), safe=False)
    columns = [chrom, pa.array([0, 5]), pa.array([5, 9]), pa.array([1, 2], pa.int32())]
    batch = pa.record_batch(columns, ["chrom", "start", "end", "s"])
    whole = CountRows.empty(2, 1, np.int32, np.empty)
    with pytest.raises(InputError, match=r"its chromosomes are damaged$"):
        place_batches("x.parquet", ("s",), [batch], whole)
