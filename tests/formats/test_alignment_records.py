"""BAM and CRAM files as samples."""

import os
from pathlib import Path
from typing import Any

import pysam
import pytest
from support.sequence_texts import fields_of

import multigpu
from multigpu.errors import InputError
from multigpu.formats.sequences.memory_records import records_or_paths
from multigpu.formats.sequences.record_source import RecordSource
from multigpu.formats.sequences.registry import inspect_samples

GENOME = "ACGTTGCAGGATTACAGATTACCA" * 10
# Name, flag, bases and qualities as they stand in the file.
READS = [
    ("pair", 77, "ACGTTGCA", "IIIIFFFF"), ("pair", 141, "GGACGTCC", None),
    ("turned", 16, "AACG", "ABCD"), ("turned", 16 | 256, "AACG", "ABCD"),
    ("turned", 2048, "AA", "AB"), ("bare", 4, "", None), ("unsure", 16, "AACC", None),
]  # fmt: skip
SEQUENCED = [
    (b"pair", b"ACGTTGCA", b"IIIIFFFF"), (b"pair", b"GGACGTCC", b""),
    (b"turned", b"CGTT", b"DCBA"), (b"bare", b"", b""), (b"unsure", b"GGTT", b""),
]  # fmt: skip


def write(path: Path, reads: list[Any] = READS) -> str:
    header = pysam.AlignmentHeader.from_dict({"SQ": [{"SN": "chr", "LN": len(GENOME)}]})
    kind, more = "wb", {}
    if path.suffix == ".cram":
        (genome := path.with_name("genome.fa")).write_text(f">chr\n{GENOME}\n")
        kind, more = "wc", {"reference_filename": str(genome)}
    with pysam.AlignmentFile(str(path), kind, header=header, **more) as file:
        for name, flag, bases, qualities in reads:
            read = pysam.AlignedSegment(header)
            read.query_name, read.flag, read.query_sequence = name, flag, bases
            if qualities:
                read.query_qualities = pysam.qualitystring_to_array(qualities)
            if not flag & 4:
                read.reference_id, read.reference_start = 0, 0
                read.cigarstring = f"{len(bases)}M"
            file.write(read)
    return str(path)


def blocks_of(source: RecordSource, size: int = 1 << 20, offset: int = 33) -> list[Any]:
    """Return the fields of the records of each block, then mates, and the number left out."""
    found, mates, left_out = [], [], 0
    for block in source.spans(0, size, offset):
        found.append(fields_of(block))
        mates += [0] * len(found[-1]) if block.mates is None else block.mates.tolist()
        left_out += block.left_out
    return [found, mates, left_out]


@pytest.mark.parametrize("suffix", [".bam", ".cram"])
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_records__are_the_primary_ones_as_sequenced(tmp_path: Path, suffix: str, size: int) -> None:
    source = inspect_samples(write(tmp_path / f"x{suffix}"))
    assert isinstance(source, RecordSource)
    blocks, mates, left_out = blocks_of(source, size)
    assert [record for block in blocks for record in block] == SEQUENCED
    assert (mates, left_out, source.has_mates) == ([1, 2, 0, 0, 0], 2, True)
    assert len([block for block in blocks if block]) == (5 if size == 1 else 1)
    shifted = [(name, bases, bytes(q + 31 for q in values)) for name, bases, values in SEQUENCED]
    assert [record for block in blocks_of(source, offset=64)[0] for record in block] == shifted


def test_alignments_of_pysam__are_records_in_memory(tmp_path: Path) -> None:
    with pysam.AlignmentFile(write(tmp_path / "x.bam"), check_sq=False) as file:
        source = records_or_paths(file.fetch(until_eof=True), "samples")
        blocks, mates, left_out = blocks_of(source)
    assert [record for block in blocks for record in block] == SEQUENCED
    assert (mates, left_out, source.layout) == ([1, 2, 0, 0, 0], 2, "fastq")


@pytest.mark.process
@pytest.mark.parametrize("workers", [0, 2])
def test_scan__of_bam_has_mates_and_no_score_without_quality(tmp_path: Path, workers: int) -> None:
    bam = write(tmp_path / "x.bam")
    signatures = [("x", "ACGT"), ("y", "CGTT")]
    table = multigpu.scan(bam, signatures, gpus="none", max_chunk_bytes=1).to_table()
    # Several files are opened by workers.
    two = multigpu.scan([bam, bam], signatures, gpus="none", max_chunk_bytes=1, workers=workers)
    assert two.to_table()["start"].to_pylist() == 2 * table["start"].to_pylist()
    rows = table.select(["sample", "sample_index", "signature", "start", "score", "mate"])
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        ("pair", 0, "x", 0, 40.0, 1), ("pair", 0, "y", 1, 39.25, 1), ("pair", 1, "x", 2, None, 2),
        ("turned", 2, "y", 0, 33.5, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(("suffix", "problem"), [
    (".cram", "a CRAM file needs the reference that it was made with, .*"),
    (".bam", "cannot be decoded: .*"),
])  # fmt: skip
def test_file__that_cannot_be_decoded_is_named(
    tmp_path: Path, suffix: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REF_PATH", str(tmp_path))
    path = Path(write(tmp_path / f"x{suffix}"))
    source = inspect_samples(str(path))
    assert isinstance(source, RecordSource)
    if suffix == ".cram":
        for name in ("genome.fa", "genome.fa.fai"):
            (tmp_path / name).unlink()
    else:
        content = bytearray(path.read_bytes())
        content[-40] ^= 0xFF
        path.write_bytes(content)
    with pytest.raises(InputError, match=f"x{suffix}: {problem}$"):
        blocks_of(source)


def test_bam__through_a_pipe_is_refused(tmp_path: Path) -> None:
    content = Path(write(tmp_path / "x.bam")).read_bytes()
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    with pytest.raises(InputError, match=r"BAM can be read from a file only: `samtools fastq` .*"):
        inspect_samples(f"/dev/fd/{reading}")
    os.close(reading)
