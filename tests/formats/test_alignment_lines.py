"""Lines of SAM and PAF, and files of SAM and BAM, of rows that are given."""

import gzip
import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from support.scanned import signatures_named

from multigpu.errors import Failure, InputError, UsageError, quoted
from multigpu.formats.tables import columns, sam
from multigpu.formats.tables.alignment_lines import SamOfSignatures
from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.sam import References, misnamed_query, open_sam
from multigpu.formats.tables.writers import render

SIGNATURES = signatures_named([b"one", b"two"], b"ACGUNr")  # 6 bases


def rows(*rows: tuple[bytes, int, int, int, bool, float, int, bytes]) -> Batch:
    """Rows of sample, signature, start, end, reverse, score, errors and alignment.

    Samples have 30 bases.
    """
    samples, signatures, starts, ends, reverses, scores, errors, cigars = zip(*rows, strict=True)
    distinct = list(dict.fromkeys(samples))
    return Batch(
        sample_index=np.array([distinct.index(name) for name in samples]),
        sample=list(samples),
        signature=np.array(signatures, np.int32),
        start=np.array(starts, np.int64),
        end=np.array(ends, np.int64),
        reverse=np.array(reverses, np.bool_),
        score=np.array(scores, np.float64),
        ambiguous=np.arange(len(rows), dtype=np.int32),
        errors=np.array(errors, np.int32),
        sample_length=np.full(len(rows), 30),
        cigar=list(cigars),
    )


ROWS = rows(
    (b"s1", 0, 4, 11, False, 20.5, 1, b"3=1I3="),
    (b"s1", 1, 0, 5, True, 40.0, 1, b"1D5="),
    (b"s1", 0, 24, 30, True, math.nan, 3, b"1=2X2=1X"),
    (b"s2", 0, 0, 0, False, math.nan, 6, b"6D"),
    (b"s2", 1, 30, 30, True, math.nan, 6, b"6D"),
)


def test_sam__of_reads() -> None:
    assert render(ROWS, SIGNATURES, "sam").decode().splitlines() == [
        "s1\t0\tone\t1\t255\t4S3=1I3=19S\t*\t0\t0\t*\t*\tNM:i:1\tAS:i:5\tqs:f:20.5",
        "s1\t272\ttwo\t1\t255\t25S5=1D\t*\t0\t0\t*\t*\tNM:i:1\tAS:i:4\tqs:f:40.0",
        "s1\t272\tone\t1\t255\t1X2=2X1=24S\t*\t0\t0\t*\t*\tNM:i:3\tAS:i:0",
        "s2\t0\tone\t1\t255\t6D30S\t*\t0\t0\t*\t*\tNM:i:6\tAS:i:-6",
        "s2\t272\ttwo\t1\t255\t6D30S\t*\t0\t0\t*\t*\tNM:i:6\tAS:i:-6",
    ]


def test_sam__of_signatures() -> None:
    lines = SamOfSignatures(SIGNATURES, ()).lines(ROWS[:3]).decode().splitlines()
    assert lines == [
        "one\t0\ts1\t5\t255\t3=1D3=\t*\t0\t0\tACGTNR\t*\tNM:i:1\tAS:i:5\tqs:f:20.5",
        "two\t16\ts1\t1\t255\t1I5=\t*\t0\t0\tYNACGT\t*\tNM:i:1\tAS:i:4\tqs:f:40.0",
        "one\t272\ts1\t25\t255\t1=2X2=1X\t*\t0\t0\tYNACGT\t*\tNM:i:3\tAS:i:0",
    ]


def test_sam__of_signatures_does_not_depend_on_the_division(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = SamOfSignatures(SIGNATURES, ()).lines(ROWS)
    for size in (1, 2, 3):
        lines = SamOfSignatures(SIGNATURES, ()).lines
        parts = [ROWS[at : at + size] for at in range(0, 5, size)]
        assert b"".join(map(lines, parts)) == whole
    monkeypatch.setattr(columns, "PIECE", 2)
    assert SamOfSignatures(SIGNATURES, ()).lines(ROWS) == whole


def test_sam__of_reads_has_one_first_line_a_read_however_it_is_rendered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = render(ROWS, SIGNATURES, "sam")
    monkeypatch.setattr(columns, "PIECE", 1)
    assert render(ROWS, SIGNATURES, "sam") == whole


def test_paf() -> None:
    assert render(ROWS, SIGNATURES, "paf+ambiguous").decode().splitlines() == [
        "one\t6\t0\t6\t+\ts1\t30\t4\t11\t6\t7\t255\tNM:i:1\tAS:i:5\tqs:f:20.5\txa:i:0\tcg:Z:3=1D3=",
        "two\t6\t0\t6\t-\ts1\t30\t0\t5\t5\t6\t255\tNM:i:1\tAS:i:4\tqs:f:40.0\txa:i:1\tcg:Z:1I5=",
        "one\t6\t0\t6\t-\ts1\t30\t24\t30\t3\t6\t255\tNM:i:3\tAS:i:0\txa:i:2\tcg:Z:1=2X2=1X",
        "one\t6\t0\t6\t+\ts2\t30\t0\t0\t0\t6\t255\tNM:i:6\tAS:i:-6\txa:i:3\tcg:Z:6I",
        "two\t6\t0\t6\t-\ts2\t30\t30\t30\t0\t6\t255\tNM:i:6\tAS:i:-6\txa:i:4\tcg:Z:6I",
    ]


# ---- names ------------------------------------------------------------------------------------


def test_references__are_in_the_header_in_their_order() -> None:
    references = References()
    references.add("a.fa", [b"chr2", b"empty", b"HLA*01:02|x"], [5, 0, 2**31 - 1])
    references.add("b.fa", [b"empty", b"chr10"], [7, 1])
    assert references.header(b"ID:x").decode().splitlines() == [
        "@HD\tVN:1.6\tSO:unsorted",
        "@SQ\tSN:chr2\tLN:5",
        "@SQ\tSN:HLA*01:02|x\tLN:2147483647",
        "@SQ\tSN:empty\tLN:7",
        "@SQ\tSN:chr10\tLN:1",
        "@PG\tID:x",
    ]


@pytest.mark.parametrize(
    ("name", "length", "problem"),
    [
        (b"", 1, "record 2: has no name, which SAM needs: name it, or choose format paf"),
        (b"*a", 1, r"record '\*a': SAM allows names of .*, no \* or = first: rename it, or choose"),
        (b"=", 1, "record '=': SAM allows names of"),
        (b"a,b", 1, "record 'a,b': SAM allows names of"),
        (b"a\n", 1, r"record 'a\\n': SAM allows names of"),
        (b"caf\xc3\xa9", 1, "record 'café': SAM allows names of"),
        (b"there", 1, "record 'there': duplicate name; SAM needs unique reference names: rename"),
        (
            b"long",
            2**31,
            "record 'long': 2,147,483,648 bases, and SAM allows 2,147,483,647: choose format paf",
        ),
    ],
)
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
        if name:
            assert error.where == f"record {quoted(name)}"
            assert error.problem.startswith("SAM allows names of 1 to 254 ASCII characters without")
        else:
            assert error.where == f"record {number}"
            assert error.problem.startswith("has no name, which SAM needs: name it, or choose")


# ---- files ------------------------------------------------------------------------------------

HEADER = b"@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:s1\tLN:30\n"
LINES = SamOfSignatures(SIGNATURES, ()).lines(ROWS[:3]).splitlines(keepends=True)


def written(kind: str, compression: Any = "none", **options: Any) -> bytes:
    file = io.BytesIO()
    options = {"header_last": True, "path": None, **options}
    with open_sam(file, kind, compression, lambda: HEADER, **options) as write:
        for line in LINES:
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


def test_bam__without_records(tmp_path: Path) -> None:
    with (
        (tmp_path / "x.bam").open("wb") as file,
        open_sam(file, "bam", "none", lambda: HEADER, header_last=True, path=None),
    ):
        pass
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as found:
        assert (found.references, list(found)) == (("s1",), [])


def test_bam__is_compressed_inside() -> None:
    with pytest.raises(UsageError, match=r"^BAM files are compressed inside: choose a name"):
        written("bam", "gzip")


@pytest.mark.parametrize("kind", ["sam", "bam"])
def test_lines_that_wait__on_a_full_disk(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Path("/dev/full").open("r+b", buffering=0) as full:
        monkeypatch.setattr(sam.tempfile, "TemporaryFile", lambda **_: full)
        with pytest.raises(Failure, match=r"out: cannot be written: the disk is full"):
            written(kind, path=str(tmp_path / "out"))
