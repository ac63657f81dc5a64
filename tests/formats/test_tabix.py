"""Indexes of VCF files: programs find by them what is there, as by those of htslib."""

import struct
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigpu.formats.storage.bgzf import bgzf
from multigpu.formats.tables.tabix import LARGEST_TBI, Records, tabix

pysam = pytest.importorskip("pysam")
bcftools = pytest.importorskip("pysam.bcftools")

NAMES = ("chr1", "chr2", "chr10", "HLA-A*01:01")
FAR = 3 * LARGEST_TBI


def records_of(places: list[tuple[int, int, int]]) -> Records:
    """chromosome, begin and length of each"""
    rows = sorted((chrom, begin, begin + length) for chrom, begin, length in places)
    chrom, begin, end = np.array(rows, np.int64).reshape(-1, 3).T
    return Records(NAMES, chrom.astype(np.int32), begin, end)


def written(folder: Path, records: Records, more: str = "") -> Path:
    """A VCF file with an index. more: text in every record"""
    contigs = "".join(f"##contig=<ID={name}>\n" for name in NAMES)
    head = f"##fileformat=VCFv4.4\n{contigs}#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
    rows = zip(records.chrom.tolist(), records.begin.tolist(), records.end.tolist(), strict=True)
    lines = [
        f"{NAMES[chrom]}\t{begin + 1}\tr{k}\tN\t<DEL>\t.\t.\tEND={end}{more}\n"
        for k, (chrom, begin, end) in enumerate(rows)
    ]
    text = (head + "".join(lines)).encode()
    blocks, path = bgzf(text), folder / "some.vcf.gz"
    path.write_bytes(b"".join(blocks))
    suffix, index = tabix(text, blocks, records)
    Path(f"{path}{suffix}").write_bytes(b"".join(bgzf(index)))
    return path


def found(path: Path, chrom: int, begin: int, end: int) -> list[str]:
    (index,) = path.parent.glob("*.vcf.gz.*")
    with pysam.TabixFile(str(path), index=str(index)) as file:
        if NAMES[chrom] not in file.contigs:
            return []
        return [line.split("\t")[2] for line in file.fetch(NAMES[chrom], begin, end)]


def within(records: Records, chrom: int, begin: int, end: int) -> list[str]:
    here = (records.chrom == chrom) & (records.begin < end) & (records.end > begin)
    return [f"r{k}" for k in np.flatnonzero(here).tolist()]


def bases(most: int) -> st.SearchStrategy[int]:
    """Near the borders of bins, and anywhere."""
    borders = st.integers(0, (most >> 14) - 1).map(lambda k: k << 14)
    return st.one_of(borders, borders.map(lambda at: max(0, at - 1)), st.integers(0, most - 2))


@given(
    st.sampled_from([1 << 20, LARGEST_TBI - (1 << 27), FAR]).flatmap(
        lambda most: st.tuples(
            st.lists(
                st.tuples(
                    st.integers(0, 3), bases(most),
                    st.sampled_from([1, 2, 1 << 14, (1 << 17) + 1, (1 << 27) - 1]),
                ),
                min_size=1, max_size=60,
            ),
            st.lists(st.tuples(st.integers(0, 3), bases(most)), min_size=1, max_size=20),
            st.sampled_from(["", ";X=" + 9000 * "x"]),
        )
    )
)  # fmt: skip
def test_index__leads_to_all_that_is_there(
    given: tuple[list[tuple[int, int, int]], list[tuple[int, int]], str],
) -> None:
    places, asked, more = given
    records = records_of(places)
    with TemporaryDirectory() as folder:
        path = written(Path(folder), records, more)
        for chrom, begin in asked:
            for length in (1, 1 << 14, 1 << 22):
                end = begin + length
                assert found(path, chrom, begin, end) == within(records, chrom, begin, end)


@pytest.mark.parametrize("most", [1 << 28, FAR], ids=["tbi", "csi"])
def test_index__is_as_good_as_that_of_htslib(tmp_path: Path, most: int) -> None:
    """It leads to the same, and counts the same; htslib joins small bins, which we do not."""
    rng = np.random.default_rng(1)
    places = [(int(c), int(b), int(n)) for c, b, n in zip(
        rng.integers(0, 4, 20_000), rng.integers(0, most, 20_000), rng.integers(1, 99_999, 20_000),
        strict=True,
    )]  # fmt: skip
    records = records_of(places)
    path = written(tmp_path, records)
    own = {(c, b): found(path, c, b, b + 1000) for c, b, _ in places[:300]}
    counted = bcftools.index("-s", str(path))
    for index in tmp_path.glob("some.vcf.gz.*"):
        ours = len(content(index))
        index.unlink()
    pysam.tabix_index(str(path), preset="vcf", force=True, csi=most == FAR)
    assert own == {(c, b): found(path, c, b, b + 1000) for c, b, _ in places[:300]}
    assert counted == bcftools.index("-s", str(path))
    assert ours < 3 * len(content(next(tmp_path.glob("some.vcf.gz.*"))))


def content(path: Path) -> bytes:
    with pysam.BGZFile(str(path), "rb") as file:
        return bytes(file.read())


def test_index__of_no_records(tmp_path: Path) -> None:
    path = written(tmp_path, records_of([]))
    assert content(tmp_path / "some.vcf.gz.tbi")[4:8] == bytes(4)
    with pysam.TabixFile(str(path)) as file:
        assert file.contigs == []
    with pysam.VariantFile(str(path)) as file:
        assert list(file) == []


@pytest.mark.parametrize("end", [LARGEST_TBI - 1, LARGEST_TBI, LARGEST_TBI + 1])
def test_index__where_one_kind_ends_and_the_other_begins(tmp_path: Path, end: int) -> None:
    records = records_of([(0, 5, 10), (0, end - 1, 1)])
    path = written(tmp_path, records)
    assert found(path, 0, end - 1, end) == ["r1"]
    assert (tmp_path / "some.vcf.gz.csi").exists() == (end >= LARGEST_TBI)


def test_bgzf__is_in_blocks_that_say_how_long_they_are() -> None:
    text = np.random.default_rng(1).bytes(200_000)
    blocks = bgzf(text)
    assert [struct.unpack("<H", block[16:18])[0] + 1 for block in blocks] == [*map(len, blocks)]
    assert b"".join(zlib.decompress(block, 31) for block in blocks) == text
    assert zlib.decompress(blocks[-1], 31) == b""
