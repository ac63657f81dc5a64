"""Indexes of alignment files: missing, old, or of another file."""

import logging
import os
import random
from pathlib import Path

import pysam
import pytest
from support.bams import random_rows, write_alignments
from support.counted import ROWS, Run, in_windows
from support.program import program

from multigpu import count
from multigpu.errors import InputError


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
    refused = 0
    for _ in range(120):
        content, at = bytearray(whole), random_.randrange(4, len(whole))
        content[at] = random_.choice([0, 1, 127, 128, 255, content[at] ^ 1, content[at] ^ 64])
        index.write_bytes(content)
        try:
            assert count(path, window=50_000).values[:, 0].tolist() == expected
        except InputError:
            refused += 1
    assert 20 < refused < 100
