"""Indexes of alignment files: made, missing, old, or impossible."""

import logging
import os
import random
from collections import Counter
from pathlib import Path

import pysam
import pytest
from support.bams import Row, random_rows, write_alignments
from support.counted import ROWS, Run, in_windows
from support.program import program

from multigpu import count
from multigpu.errors import InputError
from multigpu.formats.alignments import files


@pytest.fixture
def without_index(tmp_path: Path) -> str:
    return write_alignments(tmp_path / "bare.bam", ROWS, index=False)


def test_index__of_a_reference_too_long_for_bai(tmp_path: Path) -> None:
    longest = (("chr1", 600_000_000),)
    rows: list[Row] = [(0, 5, 60, "50M", 0), (0, 599_999_000, 60, "50M", 0)]
    path = write_alignments(tmp_path / "long.bam", rows, longest, index=False)
    assert count(path, window=300_000_000).values[:, 0].tolist() == [1, 1]
    assert (tmp_path / "long.bam.csi").exists()


@pytest.mark.parametrize("name", ["bare.bam", "-x.bam", "s3:x.bam", "http:x.bam"])
def test_index__is_made_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also for a name like an option, or an address."""
    monkeypatch.chdir(tmp_path)
    write_alignments(tmp_path / name, ROWS, index=False)
    assert count(name, window=7000).values[:, 0].tolist() == in_windows(ROWS, 7000)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, f"{name}.bai"]


@pytest.mark.process
def test_index__of_a_file_whose_name_is_no_utf8(tmp_path: Path) -> None:
    path = str(tmp_path / os.fsdecode(b"\xff.bam"))
    Path(write_alignments(tmp_path / "x.bam", ROWS, index=False)).rename(path)
    ended = program("count", path, "--window", "7000")
    assert ended.status == 0
    header, *rows = ended.out.splitlines()
    assert header.split("\t")[3:] == ["\ufffd"]
    assert [int(row.split("\t")[3]) for row in rows] == in_windows(ROWS, 7000)
    assert "samtools takes names in UTF-8 only" in ended.err


def test_index__where_none_can_be_made_the_file_is_read_in_order(
    without_index: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The superuser may write anywhere.
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    with caplog.at_level(logging.WARNING, "multigpu"):
        found = count(without_index, window=7000)
    assert found.values[:, 0].tolist() == in_windows(ROWS, 7000)
    assert not Path(without_index + ".bai").exists()
    (said,) = caplog.messages
    assert "bare.bam has no index and none can be made" in said
    assert "cannot be written" in said


def test_index__that_is_older_than_its_file(some: str, caplog: pytest.LogCaptureFixture) -> None:
    os.utime(some + ".bai", (1, 1))
    with caplog.at_level(logging.WARNING, "multigpu"):
        count(some)
    assert caplog.messages == [f"multigpu: {some}.bai is older than the file it belongs to"]


def test_index__of_an_unsorted_file(tmp_path: Path, refused: Run) -> None:
    path = write_alignments(tmp_path / "mixed.bam", ROWS[100::-1], index=False)
    said = refused(path)
    advice = "run `samtools sort` on it first, or give --no-index (it is not sorted)"
    assert said == f"{path}: no index can be made: {advice}"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mixed.bam"]
    expected = in_windows(ROWS[:101], 7000)
    assert count(path, window=7000, index=False).values[:, 0].tolist() == expected
    assert "is not sorted by position" in refused(path, "--no-index", "--remove-duplicates")


def test_index__of_a_damaged_file(without_index: str, refused: Run) -> None:
    content = bytearray(Path(without_index).read_bytes())
    middle = len(content) // 2
    content[middle : middle + 100] = bytes(100)
    Path(without_index).write_bytes(content)
    said = refused(without_index)
    assert said == refused(without_index, "--no-index")
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


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (pysam.SamtoolsError("stdout=, stderr=samtools index: failed to create index for \"x\": No"
                             " such file or directory\n"), "failed to create index"),
        (pysam.SamtoolsError("stdout=, stderr=samtools index: failed to create or write index\n"),
         "failed to create or write index"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)  # fmt: skip
def test_index__that_samtools_does_not_make_of_a_good_file(
    without_index: str, refused: Run, monkeypatch: pytest.MonkeyPatch, said: Exception, shown: str
) -> None:
    def fail(*arguments: str) -> None:
        raise said

    monkeypatch.setattr(pysam, "index", fail)
    expected = f"{without_index}: no index can be made: --no-index does without ({shown})"
    assert refused(without_index) == expected
