"""BAM records and indexes against pysam's, however the bytes are cut."""

import contextlib
import logging
import os
import random
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bams import REFERENCES, Row, random_rows, write_alignments
from support.bgzf_data import bgzf
from support.counted import ROWS, Run, in_windows
from support.program import program
from support.stored import Store

from multigpu import count
from multigpu.errors import InputError
from multigpu.formats.alignments import bam
from multigpu.formats.alignments.bam import WHOLE, Stretch, read_index
from multigpu.formats.alignments.files import AlignmentFile, cut, inspect_alignments, reads

WANTED = {number: (0, length) for number, (_, length) in enumerate(REFERENCES)}


def header_size(content: bytes) -> int:
    at = 12 + int.from_bytes(content[4:8], "little")
    for _ in REFERENCES:
        at += 8 + int.from_bytes(content[at : at + 4], "little")
    return at


def content_of(path: str) -> bytes:
    """Return what a BAM file or an index has inside."""
    return bytes(pysam.BGZFile(path, "rb").read())


def stretches(file: AlignmentFile, wanted: dict[int, tuple[int, int]], size: int) -> list[Stretch]:
    return cut(file, wanted, size)[0]


Columns = list[tuple[int, int, int, int, int, bool]]


def rows(file: AlignmentFile, stretch: Stretch = WHOLE) -> Columns:
    found = [
        (block.chrom, block.start, block.end, block.length, block.mapq, block.reverse)
        for block in reads(file, stretch, ordered=True)
    ]
    return [row for block in found for row in zip(*(c.tolist() for c in block), strict=True)]


def rows_of_pysam(path: str) -> Columns:
    with pysam.AlignmentFile(path, "rb") as file:
        return [
            (
                read.reference_id, read.reference_start, read.reference_end,
                read.query_length or read.infer_query_length(), read.mapping_quality,
                read.is_reverse,
            )
            for read in file.fetch(until_eof=True)
            if not read.is_unmapped
        ]  # fmt: skip


@pytest.fixture
def some(tmp_path: Path) -> str:
    return write_alignments(tmp_path / "some.bam", random_rows(3000))


@pytest.mark.parametrize("block", [40, 41, 997, 1 << 20])
def test_reads__are_those_of_pysam(some: str, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """40 bytes are less than a record: the buffer grows until one fits."""
    monkeypatch.setattr(bam, "BLOCK", block)
    assert rows(inspect_alignments(some)) == rows_of_pysam(some)


@pytest.mark.parametrize("csi", [False, True], ids=["bai", "csi"])
@pytest.mark.parametrize(("size", "fewest"), [(1, 4), (50_000, 4), (1 << 30, 1)])
def test_stretches__have_every_read_once(tmp_path: Path, csi: bool, size: int, fewest: int) -> None:
    """In a small file htslib puts all records into the largest bin of a CSI index."""
    path = write_alignments(tmp_path / "some.bam", random_rows(4000, longest=1500), csi=csi)
    file = inspect_alignments(path)
    pieces = stretches(file, WANTED, size)
    assert len(pieces) >= fewest
    assert len(pieces) == 1 or size < 1 << 30
    assert [row for stretch in pieces for row in rows(file, stretch)] == rows_of_pysam(path)


@pytest.mark.parametrize("csi", [False, True], ids=["bai", "csi"])
def test_stretches__long_reads_over_many_windows(tmp_path: Path, csi: bool) -> None:
    """Such records lie in large bins, and windows within them may begin with no record."""
    table: list[Row] = [(0, 100 * i, 60, f"{20_000 + 7 * i}M", 0) for i in range(5)]
    table += [(0, 200_000, 60, "90M", 0), (1, 70_000, 60, "90M", 16)]
    path = write_alignments(tmp_path / "long.bam", table, csi=csi)
    file = inspect_alignments(path)
    found = [row for stretch in stretches(file, WANTED, 1) for row in rows(file, stretch)]
    assert found == rows_of_pysam(path)
    assert len(found) == 7


@pytest.mark.parametrize("begin", [0, 20_000, 150_000, 200_050, 299_999])
def test_stretches__have_all_that_reaches_into_what_is_wanted(some: str, begin: int) -> None:
    file, end = inspect_alignments(some), min(begin + 40_000, 300_000)
    found = [r for s in stretches(file, {0: (begin, end)}, 1) for r in rows(file, s)]
    wanted = [r for r in rows_of_pysam(some) if r[0] == 0 and r[1] < end and r[2] > begin]
    assert set(wanted) <= set(found)
    assert all(row[1] < end for row in found)
    assert len(found) == len(set(found)) or len(wanted) != len(set(wanted))


def test_reads__without_any(tmp_path: Path) -> None:
    file = inspect_alignments(write_alignments(tmp_path / "none.bam", []))
    assert stretches(file, WANTED, 1) == rows(file) == []


def test_reads__a_file_that_is_cut(some: str, store: Store) -> None:
    whole = Path(some).read_bytes()
    for content in (whole[:-28], whole[: len(whole) // 2], whole[:9]):
        with pytest.raises(InputError, match=r"\.bam: (gzip data )?ends early"):
            inspect_alignments(store(content, "a.bam"))
    file = inspect_alignments(store(bgzf(content_of(some)[:-3], 60_000), "b.bam"))
    with pytest.raises(InputError, match="ends within a record: the file is truncated"):
        rows(file)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 16
    with pytest.raises(InputError, match=r"gzip data is corrupt|something that is not gzip"):
        rows(inspect_alignments(store(flipped, "flipped.bam")))


@pytest.mark.parametrize(
    ("field", "value"),
    [(0, 10), (4, 4), (4, 1 << 30), (8, -2), (20, -1), (20, 1 << 20)],
    ids=["size", "reference", "large reference", "position", "no bases", "many bases"],
)
def test_reads__a_damaged_record(some: str, store: Store, field: int, value: int) -> None:
    content = bytearray(content_of(some))
    at = header_size(content) + field
    content[at : at + 4] = value.to_bytes(4, "little", signed=True)
    with pytest.raises(InputError, match="is damaged, or its index belongs to another file"):
        rows(inspect_alignments(store(bgzf(bytes(content), 60_000), "changed.bam")))


def test_reads__unsorted_records_only_where_order_matters(tmp_path: Path) -> None:
    path = write_alignments(tmp_path / "unsorted.bam", random_rows(50)[44::-1], index=False)
    total = sum(len(block) for block in bam.reads(path, len(REFERENCES), WHOLE, ordered=False))
    assert total == len(rows_of_pysam(path)) > 0
    with pytest.raises(InputError, match="is not sorted by position: run `samtools sort`"):
        rows(inspect_alignments(path))


@pytest.mark.parametrize("is_larger", [False, True])
def test_index__of_another_file(some: str, tmp_path: Path, is_larger: bool) -> None:
    """Entries of a larger one stand behind the end: that is not an empty file."""
    table = random_rows(9000, longest=900) if is_larger else []
    references = REFERENCES if is_larger else REFERENCES[:2]
    other = write_alignments(tmp_path / "other.bam", table, references)
    Path(other + ".bai").replace(some + ".bai")
    file = inspect_alignments(some)
    with pytest.raises(InputError, match=r"some\.bam\.bai: is damaged, or not the index of"):
        stretches(file, WANTED, 1)
    beyond = Stretch(0, 1 << 40, Path(some).stat().st_size + 1 << 16)
    with pytest.raises(InputError, match=r"is damaged, or its index belongs"):
        rows(file, beyond)


def damaged(data: st.DataObject, content: bytes, first: int = 0) -> bytes:
    """Return a content with a few other bytes."""
    changed, values = (
        bytearray(content),
        st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255),
    )
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(first, len(content) - 1))] = data.draw(values)
    return bytes(changed)


class Contents(NamedTuple):
    """Of a small file and its indexes, decompressed; `place` is for damaged ones."""

    records: bytes
    indexes: tuple[bytes, bytes]
    place: Path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    folder = tmp_path_factory.mktemp("small")
    path = write_alignments(folder / "small.bam", random_rows(30))
    pysam.index("-c", path)
    content, bai, csi = (content_of(path + suffix) for suffix in ("", ".bai", ".csi"))
    return Contents(content[header_size(content) :], (bai, csi), folder / "damaged")


@given(st.data())
def test_index__damaged_anywhere_is_an_answer(small: Contents, data: st.DataObject) -> None:
    """Numba checks no bounds: what is read must be checked. A changed offset may go unseen here."""
    content = damaged(data, data.draw(st.sampled_from(small.indexes)), first=4)
    small.place.write_bytes(content)
    with contextlib.suppress(InputError):
        read_index(str(small.place))


@given(st.data())
def test_reads__damaged_anywhere_are_an_answer(small: Contents, data: st.DataObject) -> None:
    content = damaged(data, small.records)
    raw, last = np.frombuffer(content, np.uint8), np.full(1, bam.NOWHERE, np.int64)
    with contextlib.suppress(InputError):
        found, stop, _ = bam._parse("x.bam", raw, len(REFERENCES), WHOLE, False, last)
        assert 0 <= stop <= len(content)
        assert ((found.chrom >= 0) & (found.chrom < len(REFERENCES))).all()


def _int32(*numbers: int) -> bytes:
    return np.array(numbers, "<i4").tobytes()


HUGE = 2**31 - 1


@pytest.mark.parametrize(("header", "problem"), [
    (_int32(HUGE), "ends early: the file is truncated"),  # bytes of text
    (_int32(-1), "ends early: the file is truncated"),
    (_int32(0, HUGE), "ends early: the file is truncated"),  # references
    (_int32(0, HUGE, 0, 0), "is damaged: the name of a reference has 0 bytes"),
    (_int32(0, 1, HUGE), "is damaged: the name of a reference has 2147483647 bytes"),
    (_int32(0, 1, 4) + b"chr\0" + _int32(-9), "is damaged: 'chr' has -9 bases"),
])  # fmt: skip
def test_header__of_absurd_numbers_is_refused(store: Store, header: bytes, problem: str) -> None:
    path = store(bgzf(bam.MAGIC + header), "a.bam")
    tracemalloc.start()
    with pytest.raises(InputError, match=f"{problem}$"):
        inspect_alignments(path)
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("cut", [3, 6, 100, -40])
@pytest.mark.parametrize("csi", [False, True], ids=["bai", "csi"])
def test_index__that_is_cut(some: str, store: Store, csi: bool, cut: int) -> None:
    pysam.index(*(["-c"] if csi else []), some)
    content = content_of(f"{some}.{'csi' if csi else 'bai'}")  # a plain one is as good
    with pytest.raises(InputError, match=r"ends early|is no index"):
        read_index(store(content[:cut], "cut"))
    far = b"BAI\1" + _int32(1, 1, 4681, 1) + bytes(16) + _int32(1) + b"\xff" * 8
    with pytest.raises(InputError, match="the index is damaged"):
        read_index(store(far, "far"))


def test_stretches__small_references_share_one(tmp_path: Path) -> None:
    """An assembly may have thousands of them; those not asked for are not read at the ends."""
    references = [(f"contig{i}", 2000) for i in range(300)]
    table: list[Row] = [(i, 7 * j, 60, "90M", 0) for i in range(300) for j in range(10)]
    file = inspect_alignments(write_alignments(tmp_path / "contigs.bam", table, references))
    wanted = {i: (0, 2000) for i in range(40, 300) if i % 50}
    (stretch,) = stretches(file, wanted, 1 << 30)
    found = rows(file, stretch)
    assert {row[0] for row in found} == set(range(40, 300))
    many = stretches(file, wanted, 1)
    assert len(many) > 1
    again = [row for stretch in many for row in rows(file, stretch)]
    assert [row for row in again if row[0] in wanted] == [r for r in found if r[0] in wanted]


@pytest.mark.process
def test_index__of_a_file_whose_name_is_no_utf8(tmp_path: Path) -> None:
    path = str(tmp_path / os.fsdecode(b"\xff.bam"))
    Path(write_alignments(tmp_path / "x.bam", ROWS, index=False)).rename(path)
    ended = program("count", path, "--window", "7000")
    assert ended.status == 0
    header, *rows = ended.out.splitlines()
    assert header.split("\t")[3:] == ["\ufffd"]
    assert [int(row.split("\t")[3]) for row in rows] == in_windows(ROWS, 7000)


def test_index__that_is_older_than_its_file(some: str, caplog: pytest.LogCaptureFixture) -> None:
    os.utime(some + ".bai", (1, 1))
    with caplog.at_level(logging.WARNING, "multigpu"):
        count(some)
    assert caplog.messages == [f"multigpu: {some}.bai is older than the file it belongs to"]


def test_index__is_not_needed_unless_duplicates_are_removed(tmp_path: Path, refused: Run) -> None:
    path = write_alignments(tmp_path / "mixed.bam", ROWS[100::-1], index=False)
    found = count(path, window=7000)
    assert found.values[:, 0].tolist() == in_windows(ROWS[:101], 7000)
    assert found.notes[0].startswith("no index, so one thread reads the whole file: ")
    assert count(path, window=7000, index=False).notes == ()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mixed.bam"]
    assert "is not sorted by position" in refused(path, "--remove-duplicates")


def test_reads__of_a_damaged_file_without_an_index(tmp_path: Path, refused: Run) -> None:
    path = Path(write_alignments(tmp_path / "bare.bam", ROWS, index=False))
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 100] = bytes(100)
    path.write_bytes(content)
    said = refused(str(path))
    assert said == refused(str(path), "--no-index")
    assert "sort" not in said


@pytest.mark.parametrize("csi", [False, True], ids=["bai", "csi"])
@pytest.mark.parametrize("options", [(), ("--chromosomes", "chr3"), ("--chromosomes", "chrEmpty")])
@pytest.mark.parametrize("fewer", [0, 900, 1500], ids=["none", "two chromosomes", "all but some"])
def test_index__of_before_reads_were_added_is_refused(
    tmp_path: Path, refused: Run, fewer: int, csi: bool, options: tuple[str, ...]
) -> None:
    """Its date is newer."""
    rows = [row for row in ROWS if row[0] >= 0]
    shorter = write_alignments(tmp_path / "shorter.bam", rows[:fewer], csi=csi)
    path = write_alignments(tmp_path / "a.bam", ROWS, index=False)
    suffix = ".csi" if csi else ".bai"
    Path(shorter + suffix).rename(path + suffix)
    assert refused(path, *options) == (
        f"{path}{suffix}: is damaged, or not the index of {path}: `samtools index {path}` makes it"
        " again, --no-index does without"
    )
    assert count(path, window=7000, index=False).values[:, 0].tolist() == in_windows(ROWS, 7000)


@pytest.mark.parametrize("csi", [False, True], ids=["bai", "csi"])
def test_index__damaged_anywhere_loses_no_read(tmp_path: Path, csi: bool) -> None:
    """Numbers of mapped reads and the order of offsets tell."""
    rows = random_rows(3000, longest=900)
    path = write_alignments(tmp_path / "a.bam", rows, csi=csi)
    index, expected = Path(path + (".csi" if csi else ".bai")), in_windows(rows, 50_000)
    whole, random_ = pysam.BGZFile(str(index), "rb").read(), random.Random(4)
    outcomes = Counter[bool]()
    for _ in range(120):
        content, at = bytearray(whole), random_.randrange(4, len(whole))
        content[at] = random_.choice([0, 1, 127, 128, 255, content[at] ^ 1, content[at] ^ 64])
        index.write_bytes(content)
        try:
            assert count(path, window=50_000).values[:, 0].tolist() == expected
        except InputError:
            outcomes[False] += 1
        else:
            outcomes[True] += 1
    assert min(outcomes[True], outcomes[False]) > 20
