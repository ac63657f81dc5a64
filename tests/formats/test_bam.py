"""BAM records against pysam's, however the bytes are cut."""

import contextlib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bams import REFERENCES, Row, random_rows, write_alignments
from support.bgzf_data import bgzf

from multigpu.errors import InputError
from multigpu.formats.alignments import bam
from multigpu.formats.alignments.files import AlignmentFile, inspect_alignments, reads


def header_size(path: str) -> int:
    content = pysam.BGZFile(path, "rb").read()
    at = 12 + int.from_bytes(content[4:8], "little")
    for _ in REFERENCES:
        at += 8 + int.from_bytes(content[at : at + 4], "little")
    return at


Columns = list[tuple[int, int, int, int, int, bool]]


def rows(file: AlignmentFile) -> Columns:
    found = [
        (block.chrom, block.start, block.end, block.length, block.mapq, block.reverse)
        for block in reads(file, ordered=True)
    ]
    return [row for block in found for row in zip(*(c.tolist() for c in block), strict=True)]


def rows_of_pysam(path: str) -> Columns:
    with pysam.AlignmentFile(path, "rb") as file:
        return [
            (
                read.reference_id,
                read.reference_start,
                read.reference_end,
                read.query_length or read.infer_query_length(),
                read.mapping_quality,
                read.is_reverse,
            )
            for read in file.fetch(until_eof=True)
            if not read.is_unmapped
        ]


@pytest.fixture
def some(tmp_path: Path) -> str:
    return write_alignments(tmp_path / "some.bam", random_rows(3000))


def test_references__in_the_order_of_the_header(some: str) -> None:
    assert bam.references(some) == list(REFERENCES)


@pytest.mark.parametrize("block", [40, 41, 997, 1 << 20])
def test_reads__are_those_of_pysam_wherever_blocks_end(
    some: str, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """40 bytes are less than a record: the buffer grows until one fits."""
    monkeypatch.setattr(bam, "BLOCK", block)
    assert rows(inspect_alignments(some)) == rows_of_pysam(some)


def test_reads__as_long_as_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bam, "BLOCK", 1000)
    table: list[Row] = [(0, 5, 60, "50000M", 0), (0, 6, 60, "10M", 16), (0, 7, 60, "70000M", 0)]
    path = write_alignments(tmp_path / "long.bam", table)
    assert rows(inspect_alignments(path)) == rows_of_pysam(path)


def test_reads__without_any(tmp_path: Path) -> None:
    path = write_alignments(tmp_path / "none.bam", [])
    assert rows(inspect_alignments(path)) == []


# ---- what is wrong with files ------------------------------------------------------------------


def cut_in_content(path: str, tmp_path: Path, change: Callable[[bytearray], None]) -> str:
    """A BAM file whose decompressed bytes are changed."""
    content = bytearray(pysam.BGZFile(path, "rb").read())
    change(content)
    changed = str(tmp_path / "changed.bam")
    with pysam.BGZFile(changed, "wb") as file:
        file.write(bytes(content))
    return changed


def drop_end(content: bytearray) -> None:
    del content[-3:]


def test_reads__a_file_that_is_cut(some: str, tmp_path: Path) -> None:
    whole = Path(some).read_bytes()
    for name, content in (("a", whole[:-28]), ("b", whole[: len(whole) // 2]), ("c", whole[:9])):
        (tmp_path / f"{name}.bam").write_bytes(content)
        with pytest.raises(InputError, match=r"\.bam: (gzip data )?ends early"):
            inspect_alignments(str(tmp_path / f"{name}.bam"))


def test_reads__content_that_ends_within_a_record(some: str, tmp_path: Path) -> None:
    file = inspect_alignments(cut_in_content(some, tmp_path, drop_end))
    with pytest.raises(InputError, match="ends within a record: the file is truncated"):
        rows(file)


@pytest.mark.parametrize(
    ("field", "value"),
    [(0, 10), (4, 4), (4, 1 << 30), (8, -2), (20, -1), (20, 1 << 20)],
    ids=["size", "reference", "large reference", "position", "no bases", "many bases"],
)
def test_reads__a_damaged_record(some: str, tmp_path: Path, field: int, value: int) -> None:
    at = header_size(some) + field

    def damage(content: bytearray) -> None:
        content[at : at + 4] = value.to_bytes(4, "little", signed=True)

    with pytest.raises(InputError, match="is damaged: it has a record that none can be"):
        rows(inspect_alignments(cut_in_content(some, tmp_path, damage)))


def test_reads__a_flipped_bit_is_seen(some: str, tmp_path: Path) -> None:
    content = bytearray(Path(some).read_bytes())
    content[len(content) // 2] ^= 16
    (tmp_path / "flipped.bam").write_bytes(content)
    with pytest.raises(InputError, match=r"gzip data is corrupt|something that is not gzip"):
        rows(inspect_alignments(str(tmp_path / "flipped.bam")))


def test_reads__unsorted_records_only_where_order_matters(tmp_path: Path) -> None:
    path = write_alignments(tmp_path / "unsorted.bam", random_rows(50)[44::-1])
    total = sum(len(block) for block in bam.reads(path, len(REFERENCES), ordered=False))
    assert total == len(rows_of_pysam(path)) > 0
    with pytest.raises(InputError, match="is not sorted by position: run `samtools sort`"):
        rows(inspect_alignments(path))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Records of a small file, decompressed."""
    path = write_alignments(tmp_path_factory.mktemp("small") / "small.bam", random_rows(30))
    return pysam.BGZFile(path, "rb").read()[header_size(path) :]


@given(st.data())
def test_reads__damaged_anywhere_are_an_answer(records: bytes, data: st.DataObject) -> None:
    content = bytearray(records)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    raw, last = np.frombuffer(bytes(content), np.uint8), np.full(1, bam.NOWHERE, np.int64)
    with contextlib.suppress(InputError):
        found, stop = bam._parse("x.bam", raw, len(REFERENCES), False, last)
        assert 0 <= stop <= len(content)
        assert ((found.chrom >= 0) & (found.chrom < len(REFERENCES))).all()


def _int32(*numbers: int) -> bytes:
    return np.array(numbers, "<i4").tobytes()


HUGE = 2**31 - 1


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (_int32(HUGE), "ends early: the file is truncated"),  # bytes of text
        (_int32(-1), "ends early: the file is truncated"),
        (_int32(0, HUGE), "ends early: the file is truncated"),  # references
        (_int32(0, HUGE, 0, 0), "is damaged: the name of a reference has 0 bytes"),
        (_int32(0, 1, HUGE), "is damaged: the name of a reference has 2147483647 bytes"),
        (_int32(0, 1, 4) + b"chr\0" + _int32(-9), "is damaged: 'chr' has -9 bases"),
    ],
)
def test_header__with_absurd_numbers_is_refused(
    tmp_path: Path, header: bytes, problem: str
) -> None:
    path = tmp_path / "a.bam"
    path.write_bytes(bgzf(bam.MAGIC + header))
    tracemalloc.start()
    with pytest.raises(InputError, match=f"{problem}$"):
        inspect_alignments(str(path))
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()
