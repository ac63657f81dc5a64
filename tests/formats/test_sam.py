"""Names, headers and files of SAM and BAM."""

import gzip
import io
import re
from pathlib import Path
from typing import Any

import pysam
import pytest

from multigpu.errors import Failure, InputError, quoted
from multigpu.formats.tables import sam
from multigpu.formats.tables.sam import References, misnamed_query, open_sam


def test_references__are_in_the_header_in_their_order() -> None:
    references = References()
    references.add("a.fa", [b"chr2", b"empty", b"HLA*01:02|x"], [5, 0, 2**31 - 1])
    references.add("b.fa", [b"empty", b"chr10"], [7, 1])
    assert references.header(b"ID:x") == (
        b"@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:chr2\tLN:5\n@SQ\tSN:HLA*01:02|x\tLN:2147483647\n"
        b"@SQ\tSN:empty\tLN:7\n@SQ\tSN:chr10\tLN:1\n@PG\tID:x\n"
    )


@pytest.mark.parametrize(("name", "length", "problem"), [
    (b"", 1, "record 2: has no name, which SAM needs: name it, or choose format paf"),
    (b"*a", 1, r"record '\*a': SAM allows names of .*, no \* or = first: rename it, or choose"),
    (b"=", 1, "record '=': SAM allows names of"),
    (b"a,b", 1, "record 'a,b': SAM allows names of"),
    (b"a\n", 1, r"record 'a\\n': SAM allows names of"),
    (b"caf\xc3\xa9", 1, "record 'café': SAM allows names of"),
    (b"there", 1, "record 'there': duplicate name; SAM needs unique reference names: rename"),
    (b"long", 2**31, "record 'long': 2,147,483,648 bases, and SAM allows 2,147,483,647: choose fo"),
])  # fmt: skip
def test_references__that_sam_does_not_allow(name: bytes, length: int, problem: str) -> None:
    references = References()
    references.add("a.fa", [b"there"], [3])
    with pytest.raises(InputError, match=f"^b.fa: {problem}"):
        references.add("b.fa", [b"good", name], [1, length])


@pytest.mark.parametrize("name", [b"", b"a@b", b"a b", b"x" * 255, b"\x7f", b"caf\xc3\xa9"])
def test_query__that_sam_does_not_allow(name: bytes) -> None:
    good = b"first\n*=,()\n" + b"x" * 254 + b"\n"
    assert misnamed_query("a.fq", good, are_all=True) is None
    assert misnamed_query("a.fq", b"", are_all=True) is None
    for text, number in ((name + b"\n", 1), (good + name + b"\nlast\n", 4)):
        error = misnamed_query("a.fq", text, are_all=True)
        assert error is not None
        assert error.where == f"record {quoted(name) if name else number}"
        problem = "SAM allows names of 1 to 254 ASCII characters without"
        problem = problem if name else "has no name, which SAM needs: name it, or choose"
        assert error.problem.startswith(problem)


HEADER = b"@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:s1\tLN:30\n"
LINES = [
    b"one\t0\ts1\t5\t255\t3=1D3=\t*\t0\t0\tACGTNR\t*\tNM:i:1\tAS:i:5\tqs:f:20.5\n",
    b"two\t16\ts1\t1\t255\t1I5=\t*\t0\t0\tYNACGT\t*\tNM:i:1\tAS:i:4\tqs:f:40.0\n",
    b"one\t272\ts1\t25\t255\t1=2X2=1X\t*\t0\t0\tYNACGT\t*\tNM:i:3\tAS:i:0\n",
]


def written(kind: str, compression: Any = "none", lines: Any = LINES, **options: Any) -> bytes:
    file = io.BytesIO()
    options = {"header_last": True, "path": None, **options}
    with open_sam(file, kind, compression, lambda: HEADER, **options) as write:
        for line in lines:
            write(line)
    return file.getvalue()


@pytest.mark.parametrize("header_last", [False, True])
def test_sam__is_the_header_and_the_lines(header_last: bool, tmp_path: Path) -> None:
    text = HEADER + b"".join(LINES)
    options = {"header_last": header_last, "path": str(tmp_path / "out.sam")}
    assert written("sam", **options) == text
    assert gzip.decompress(written("sam", "gzip", **options)) == text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("header_last", [False, True])
def test_bam__has_the_same_records(header_last: bool, tmp_path: Path) -> None:
    (tmp_path / "x.bam").write_bytes(written("bam", header_last=header_last))
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as file:
        assert str(file.header).encode() == HEADER
        found = [record.to_string() for record in file]
    lines = [line.decode().rstrip() for line in LINES]
    assert found == [re.sub(r"(qs:f:\d+)\.0$", r"\1", line) for line in lines]
    assert written("bam", header_last=not header_last) == (tmp_path / "x.bam").read_bytes()
    (tmp_path / "x.bam").write_bytes(written("bam", lines=[]))
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as none:
        assert (none.references, list(none)) == (("s1",), [])


@pytest.mark.parametrize("kind", ["sam", "bam"])
def test_lines__on_a_full_disk(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Path("/dev/full").open("r+b", buffering=0) as full:
        monkeypatch.setattr(sam.tempfile, "TemporaryFile", lambda **_: full)
        with pytest.raises(Failure, match=r"out: cannot be written: the disk is full"):
            written(kind, path=str(tmp_path / "out"))
