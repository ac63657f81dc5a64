"""Windows and BED files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from multigpu.errors import InputError
from multigpu.formats.alignments.regions import Regions, read_bed, windows


def rows(regions: Regions) -> list[tuple[str, int, int]]:
    names = [regions.names[number] for number in regions.chrom.tolist()]
    return list(zip(names, regions.start.tolist(), regions.end.tolist(), strict=True))


def test_windows__the_last_one_is_shorter_and_no_base_is_lost() -> None:
    found = windows([("a", 10), ("b", 11), ("c", 4), ("none", 0)], 5)
    assert rows(found) == [
        ("a", 0, 5), ("a", 5, 10), ("b", 0, 5), ("b", 5, 10), ("b", 10, 11), ("c", 0, 4),
    ]  # fmt: skip
    assert found.blocks == [slice(0, 2), slice(2, 5), slice(5, 6)]
    assert found.names == ("a", "b", "c", "none")


def test_windows__of_r_lack_the_last_base_of_multiples_unless_there_is_one_window() -> None:
    found = windows([("a", 10), ("b", 11), ("c", 5)], 5, compat_r=True)
    assert [end for _, _, end in rows(found)] == [5, 9, 5, 10, 11, 5]


def test_windows__of_nothing() -> None:
    assert len(windows([], 5)) == 0
    assert windows([], 5).blocks == []


def test_regions__order_is_none_where_nothing_has_to_move() -> None:
    assert Regions.of([("b", 0, 5), ("b", 0, 6), ("b", 1, 2), ("a", 0, 1)]).order() is None
    assert Regions.of([]).order() is None
    order = Regions.of([("b", 3, 4), ("a", 0, 5), ("b", 0, 6), ("b", 0, 5)]).order()
    assert order is not None
    assert order.tolist() == [3, 2, 0, 1]


def test_regions__a_region_may_overlap_one_that_is_not_the_last() -> None:
    nested = Regions.of([("a", 0, 100), ("a", 10, 20), ("a", 30, 40), ("b", 50, 60)])
    assert list(nested.oddities()) == ["2 regions are overlapping an earlier one"]
    assert list(nested.take(np.array([1, 2, 3])).oddities()) == []


def test_bed__comments_other_columns_and_compression(tmp_path: Path) -> None:
    text = "browser x\ntrack y\n# z\n\nchr1\t5\t9\tname\t0\t+\r\nchr1 9 12\n"
    (tmp_path / "a.bed.gz").write_bytes(gzip.compress(text.encode()))
    found, notes = read_bed(str(tmp_path / "a.bed.gz"))
    assert rows(found) == [("chr1", 5, 9), ("chr1", 9, 12)]
    assert notes == ()


@pytest.mark.parametrize("first", ["", "# a comment\n", "track x\n"])
def test_bed__a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path, first: str) -> None:
    (tmp_path / "a.bed").write_text(first + "chr1\t5\t9\n", "utf-8-sig")
    assert rows(read_bed(str(tmp_path / "a.bed"))[0]) == [("chr1", 5, 9)]


def test_bed__is_sorted_within_chromosomes_as_they_appear(tmp_path: Path) -> None:
    path = tmp_path / "a.bed"
    path.write_text("x\t7\t9\ny\t0\t5\nx\t0\t8\nx\t7\t9\n")
    found, notes = read_bed(str(path))
    assert rows(found) == [("x", 0, 8), ("x", 7, 9), ("x", 7, 9), ("y", 0, 5)]
    assert notes == (
        f"{path}: the regions are not in order: they are sorted",
        f"{path}: 1 region is given more than once",
        f"{path}: 1 region is overlapping an earlier one",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no regions"),
        ("# nothing\n", "there are no regions"),
        ("a\t0\t5\na\t5\n", "line 2: no chromosome, start and end: "),
        ("a\t0\tx\n", "line 1: no chromosome, start and end: "),
        ("#\na\t5\t5\n", "line 2: 5 to 5 is no region"),
        ("a\t-5\t5\n", "line 1: -5 to 5 is no region"),
        ("a\t0\t99999999999999999999\n", "line 1: 0 to 99999999999999999999 is no region"),
        ("a\t1_000\t2_000\n", "line 1: no chromosome, start and end: "),
        ("a\t+1\t2\n", "line 1: no chromosome, start and end: "),
        ("\xff\t0\t5\n", "line 1: no chromosome, start and end: "),
    ],
)
def test_bed__what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.bed"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read_bed(str(path))
    assert str(caught.value).startswith(f"{path}: {message}")
