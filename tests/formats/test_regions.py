"""Windows and BED files."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from support.stored import Store

from multigpu.errors import InputError
from multigpu.formats.alignments.regions import Regions, read_bed, windows
from multigpu.formats.storage.fingerprints import digest


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
    assert (len(windows([], 5)), windows([], 5).blocks) == (0, [])
    # R's lack the last base of multiples unless there is one window.
    of_r = windows([("a", 10), ("b", 11), ("c", 5)], 5, compat_r=True)
    assert [end for _, _, end in rows(of_r)] == [5, 9, 5, 10, 11, 5]


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


def test_bed__comments_other_columns_and_compression(store: Store) -> None:
    text = b"browser x\ntrack y\n# z\n\nchr1\t5\t9\tname\t0\t+\r\nchr1 9 12\n"
    found, (note,) = read_bed(path := store(gzip.compress(text), "a.bed.gz"))
    assert rows(found) == [("chr1", 5, 9), ("chr1", 9, 12)]
    assert found.genes == ("name", "")
    assert note.startswith(f"{path}: of the columns after the third only names are")


@pytest.mark.parametrize(("text", "genes"), [
    (b"b\t3\t4\tx\na\t0\t5\t \nb\t0\t6\ty z\n", ("y z", "x", "")),
    (b"a 0 5 .\na 7 9 x\n", ("", "x")),
    (b"a\t0\t5\t\xe9\na\t7\t9\tx\x1b[m\n", ("\ufffd", "")),
    (b"@HD\tVN:1.6\na\t1\t5\t+\tx\na\t7\t9\t-\ty\n", ("x", "y")),
    (b"a\t0\t5\t.\t0\t+\n", ()),
    (b"a\t0\t5\n", ()),
])  # fmt: skip
def test_bed__names_of_regions(store: Store, text: bytes, genes: tuple[str, ...]) -> None:
    found, notes = read_bed(path := store(text))
    assert found.genes == genes
    unused = f"{path}: names and other columns after the third are left out"
    assert (unused in notes) == (b"\t.\t0" in text)


def test_regions__names_are_no_part_of_a_digest() -> None:
    plain = Regions.of([("a", 0, 5), ("a", 5, 9)])
    assert digest(replace(plain, genes=("x", "y"))) == digest(plain)
    with pytest.raises(ValueError, match="genes: 1 instead of 2"):
        replace(plain, genes=("x",))


@pytest.mark.parametrize("first", ["", "# a comment\n", "track x\n"])
def test_bed__a_byte_order_mark_is_no_part_of_a_name(store: Store, first: str) -> None:
    path = store((first + "chr1\t5\t9\n").encode("utf-8-sig"))
    assert rows(read_bed(path)[0]) == [("chr1", 5, 9)]


def test_bed__is_sorted_within_chromosomes_as_they_appear(store: Store) -> None:
    found, notes = read_bed(path := store(b"x\t7\t9\ny\t0\t5\nx\t0\t8\nx\t7\t9\n"))
    assert rows(found) == [("x", 0, 8), ("x", 7, 9), ("x", 7, 9), ("y", 0, 5)]
    assert notes == (
        f"{path}: the regions are not in order: they are sorted",
        f"{path}: 1 region is given more than once",
        f"{path}: 1 region is overlapping an earlier one",
    )


NO_BED = "expected BED: chromosome, start from 0 and end, not"


@pytest.mark.parametrize(("text", "message"), [
    ("", "there are no regions"),
    ("# nothing\n", "there are no regions"),
    ("a\t0\t5\na\t5\n", f"line 2: {NO_BED} "),
    ("a\t0\tx\n", f"line 1: {NO_BED} "),
    ("chr1:101-200\n", f"line 1: {NO_BED} 'chr1:101-200'"),
    ("#\na\t5\t5\n", "line 2: 5 to 5 is no region"),
    ("a\t-5\t5\n", "line 1: -5 to 5 is no region"),
    ("a\t0\t99999999999999999999\n", "line 1: 0 to 99999999999999999999 is no region"),
    ("a\t1_000\t2_000\n", f"line 1: {NO_BED} "),
    ("a\t+1\t2\n", f"line 1: {NO_BED} "),
    ("\xff\t0\t5\n", f"line 1: {NO_BED} "),
    ("a\t0\t5\na\t\t5\t9\n", f"line 2: {NO_BED} "),
    ("a\t0\t5\na\t1\t\t9\n", f"line 2: {NO_BED} "),
    ("\t0\t5\n", f"line 1: {NO_BED} "),
    ("@SQ\tSN:a\tLN:5\na\t0\t5\t+\tx\n", "line 2: 0 to 5 is no region: 1 <= start <= end"),
])  # fmt: skip
def test_bed__what_is_wrong_is_named(store: Store, text: str, message: str) -> None:
    path = store(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read_bed(path)
    assert str(caught.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_bed__lines_end_in_every_way(store: Store, end: str) -> None:
    text = end.join(["track_7\t0\t9", "track\tname", "browser", "a b\t5\t9", " browser_1 7 9 ", ""])
    found, _ = read_bed(store(text.encode()))
    assert rows(found) == [("track_7", 0, 9), ("a b", 5, 9), ("browser_1", 7, 9)]
    assert len(read_bed(store(b"a\t0\t9\n\rb\t0\t5\r\nc\t1\t2\n"))[0]) == 3


@pytest.mark.parametrize(("name", "text", "from_1"), [
    ("a.interval_list", "a\t101\t200\n", True),
    ("a.interval_list.gz", "a\t101\t200\n", True),
    ("a.txt", "@HD\tVN:1.6\na\t101\t200\t+\tx\n", True),
    ("a.txt", "a\t101\t200\t-\tgene1\n", True),
    ("a.bed", "a\t101\t200\t-\t0\n", False),  # a score
    ("a.bed", "a\t0\t200\t-\tx\na\t301\t400\t-\tx\n", False),
    ("a.bed", "a\t101\t200\tx\t0\t+\n", False),
])  # fmt: skip
def test_interval_list__counts_from_1(store: Store, name: str, text: str, from_1: bool) -> None:
    pack = gzip.compress if name.endswith("gz") else bytes
    found, notes = read_bed(store(pack(text.encode()), name))
    assert found.start[-1] % 100 == (0 if from_1 else 1)
    assert any("read as a Picard interval list" in note for note in notes) == from_1


@pytest.mark.parametrize(("text", "suspicious"), [
    ("a 1 100\na 101 200\na 201 300\n", True),
    ("a 1001 2000\nb 3001 4000\n", True),
    ("a 0 100\na 100 200\na 201 300\n", False),
    ("a 1001 2000\nb 3000 4000\n", False),
    ("a 1001 2000\n", False),
    ("a 1 1001\na 1001 2001\nb 1 501\n", True),
    ("a 33 64\na 97 128\na 129 160\n", True),
    ("a 33 65\na 97 129\nb 130 162\n", False),
])  # fmt: skip
def test_regions__may_count_from_1(store: Store, text: str, suspicious: bool) -> None:
    _, notes = read_bed(store(text.encode()))
    assert any("seem to count from 1" in note for note in notes) == suspicious


def test_bed_column__is_named_by_the_last_line_with_a_hash(store: Store) -> None:
    names = b"#bedtools nuc\n#chrom\tstart\tend\tpct_gc\n"
    path = store(names + b"chr1\t9\t20\t0.5\nchr1\t1\t5\t.25\n")
    gc = read_bed(path, "pct_gc")[0].gc
    assert gc is not None
    assert gc.tolist() == [0.25, 0.5]
    for text, problem in (
        (names + b"chr1\t9\t20\t0.5\n", "'gc': its columns are chrom, start, end"),
        (b"#chrom\tstart\tend\tgc\nchr1\t9\t20\n", "line 2: expected a number in the column 'gc'"),
        (b"chr1\t9\t20\t0.5\n", "has no column 'gc': no line with # names any"),
    ):
        with pytest.raises(InputError, match=problem):
            read_bed(store(text), "gc")
