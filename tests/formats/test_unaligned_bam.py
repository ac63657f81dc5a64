"""Unaligned BAM that is made of FASTQ: records, flags of pairs and the read group."""

from pathlib import Path
from typing import Any

import pysam
import pytest
from support.program import Run
from support.stored import Store

from multigpu.formats.alignments.unaligned_bam import ReadGroup, fastq_to_bam

PAIR = b"@r1/1 x\nACGU\n+\nI5I!\n@r1/2\nGGG\n+\nIII\n"
READ_GROUP = {"ID": "liver", "SM": "liver", "BC": "ACG-TTC"}


def records(path: Path) -> list[tuple[str | None, int, str | None, str, object]]:
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        assert file.header.to_dict()["RG"] == [READ_GROUP]
        return [
            (
                each.query_name, each.flag, each.query_sequence,
                pysam.qualities_to_qualitystring(each.query_qualities or []), each.get_tag("RG"),
            )
            for each in file
        ]  # fmt: skip


@pytest.mark.parametrize(("text", "are_pairs", "expected"), [
    (PAIR, True, [("r1", 77, "ACGT", "I5I!", "liver"), ("r1", 141, "GGG", "III", "liver")]),
    (b"@a\r\nAC\r\nGT\r\n+\r\nIIII\r\n", False, [("a", 4, "ACGT", "IIII", "liver")]),
    (b"", False, []),
])  # fmt: skip
def test_bam__has_the_records(tmp_path: Path, text: bytes, are_pairs: bool, expected: Any) -> None:
    path = tmp_path / "0"
    path.write_bytes(text)
    fastq_to_bam(path, ReadGroup("liver", "ACG-TTC"), are_pairs=are_pairs)
    assert records(path) == expected
    assert [each.name for each in tmp_path.iterdir()] == ["0"]


def test_bam__of_broken_fastq_is_an_error(store: Store) -> None:
    with pytest.raises(OSError, match="truncated"):
        fastq_to_bam(Path(store(b"@a\nACGT\n+\nII")), ReadGroup("a"), are_pairs=False)


def test_samples_of_a_sheet__become_bam_with_their_barcodes(tmp_path: Path, main: Run) -> None:
    (tmp_path / "sheet.tsv").write_text("sample\tbarcode1\tbarcode2\nliver\tACG\tTTC\n")
    for mate, bases in ((1, "ACGA"), (2, "TTCC")):
        (tmp_path / f"x_R{mate}.fq").write_text(f"@r1/{mate}\n{bases}\n+\nIIII\n")
    ended = main(
        "scan", f"{tmp_path}/x_R1.fq", f"{tmp_path}/x_R2.fq", "--sample-sheet",
        f"{tmp_path}/sheet.tsv", "--gpus", "none", "--matched", f"{tmp_path}/{{sample}}.bam",
    )  # fmt: skip
    assert ended.status == 0
    assert records(tmp_path / "liver.bam") == [
        ("r1", 77, "ACGA", "IIII", "liver"), ("r1", 141, "TTCC", "IIII", "liver"),
    ]  # fmt: skip
