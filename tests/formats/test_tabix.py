"""VCF files and their indexes, by which programs find what is there."""

import errno
import os
from pathlib import Path

import pysam
import pytest

from multigpu.formats.tables import tabix
from multigpu.formats.tables.tabix import LONGEST_TBI, write_indexed

HEADER = (
    "##fileformat=VCFv4.4\n##contig=<ID=chr1>\n##contig=<ID=HLA-A*01:01>\n"
    "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
)
Place = tuple[str, int, int]  # chromosome, begin and end


def written(folder: Path, places: list[Place]) -> Path:
    lines = [
        b"%b\t%d\tr%d\tN\t<DEL>\t.\t.\tEND=%d\n" % (chrom.encode(), begin + 1, k, end)
        for k, (chrom, begin, end) in enumerate(places)
    ]
    last = max((end for _, _, end in places), default=0)
    write_indexed(path := folder / "some.vcf.gz", [HEADER.encode(), *lines], last)
    return path


def found(path: Path, chrom: str, begin: int, end: int) -> list[str]:
    (index,) = path.parent.glob("*.vcf.gz.*")
    with pysam.TabixFile(str(path), index=str(index)) as file:
        return [line.split("\t")[2] for line in file.fetch(chrom, begin, end)]


@pytest.mark.parametrize("end", [LONGEST_TBI - 1, LONGEST_TBI, 3 * LONGEST_TBI])
def test_index__leads_to_all_that_is_there(tmp_path: Path, end: int) -> None:
    places = [("chr1", 5, 40_000), ("chr1", 20_000, 20_010), ("chr1", end - 1, end)]
    path = written(tmp_path, [*places, ("HLA-A*01:01", 0, 7)])
    assert found(path, "chr1", 20_005, 20_006) == ["r0", "r1"]
    assert found(path, "chr1", 30_000, 40_000) == ["r0"]
    assert found(path, "chr1", end - 1, end) == ["r2"]
    assert found(path, "HLA-A*01:01", 0, 100) == ["r3"]
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["some.vcf.gz", f"some.vcf.gz.{'csi' if end >= LONGEST_TBI else 'tbi'}"]


def test_bytes__depend_on_the_text_alone(tmp_path: Path) -> None:
    with pysam.VariantFile(str(written(tmp_path, []))) as file:
        assert list(file) == []
    assert (tmp_path / "some.vcf.gz.tbi").exists()
    lines = (b"chr1\t%d\tr\tN\t<DEL>\t.\t.\tEND=%d\n" % (at, at + 9) for at in range(1, 9_000))
    text = HEADER.encode() + b"".join(lines)
    for name, pieces in (("a", [text]), ("b", [text[:1000], b"", text[1000:]])):
        (tmp_path / name).mkdir()
        write_indexed(tmp_path / name / "x.vcf.gz", pieces, 9_008)
    for suffix in ("", ".tbi"):
        one, other = (tmp_path / name / f"x.vcf.gz{suffix}" for name in "ab")
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(("room", "number"), [(0, errno.ENOSPC), (1 << 40, None)])
def test_full_disk__number(monkeypatch: pytest.MonkeyPatch, room: int, number: int | None) -> None:
    """Of the system there are these; what htslib says of them names no reason."""
    status = os.statvfs("/")
    values = [room // status.f_frsize if k == 4 else value for k, value in enumerate(status)]
    monkeypatch.setattr(tabix.os, "statvfs", lambda _: os.statvfs_result(values))
    with pytest.raises(OSError, match=r"(?i)no space left|error") as caught:
        write_indexed(Path("/dev/full"), [HEADER.encode()], 0)
    assert caught.value.errno == number
