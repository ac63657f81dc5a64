"""CRAM files: counted as BAM files are, or refused where they are cut."""

import gzip
from pathlib import Path
from typing import Any

import pysam
import pytest
from support.bams import write_alignments, write_fasta
from support.counted import ROWS, Run, in_windows

from multigpu import count
from multigpu.formats.alignments import cram as cram_file


def of_version(folder: Path, version: str = "3.0") -> str:
    fasta = write_fasta(folder / "reference.fa")
    return write_alignments(folder / "some.cram", ROWS, fasta=fasta, version=version)


@pytest.fixture
def cram(tmp_path: Path) -> str:
    """A CRAM file whose reference is gone."""
    path = of_version(tmp_path)
    (tmp_path / "reference.fa").unlink()
    return path


@pytest.mark.parametrize("options", [
    {}, {"index": False}, {"remove_duplicates": True}, {"get_width": True},
    {"stranded_start": True, "min_mapq": 0}, {"window": 4000, "chromosomes": ["chr3", "chr2"]},
])  # fmt: skip
def test_cram__counts_as_the_bam_file_without_its_reference(
    cram: str, some: str, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setenv("REF_PATH", "/nowhere")
    pysam.set_verbosity(0)
    with pysam.AlignmentFile(cram, "rc") as file, pytest.raises(OSError, match="truncated"):
        next(file)
    assert (count(cram, **options).values == count(some, **options).values).all()
    assert count(some, **options).values.any()


def containers_of(path: str) -> list[int]:
    """Return where the containers of a file begin, by its index."""
    pysam.index(path)
    lines = gzip.decompress(Path(path + ".crai").read_bytes()).decode().splitlines()
    return sorted({int(line.split("\t")[3]) for line in lines})


@pytest.mark.parametrize("version", ["2.1", "3.0", "3.1"])
def test_cram__that_is_cut_anywhere_is_refused_with_an_index_and_without(
    tmp_path: Path, refused: Run, version: str
) -> None:
    path = of_version(tmp_path, version)
    whole = Path(path).read_bytes()
    assert count(path, window=7000).values[:, 0].tolist() == in_windows(ROWS, 7000)
    containers = containers_of(path)
    assert len(containers) > 2
    size = len(cram_file.END_2 if version == "2.1" else cram_file.END_3)
    for stop in (*containers, len(whole) - size, len(whole) - 1, 30, 500, -50):
        Path(path).write_bytes(whole[:stop])
        for options in ((), ("--no-index",)):
            assert refused(path, *options) == f"{path}: {TRUNCATED}"


TRUNCATED = "ends early: the file is truncated (its end marker is missing)"


def test_cram__whose_end_java_wrote_is_whole(tmp_path: Path, cram: str) -> None:
    """Bits of the end marker that have no meaning may be set."""
    content = Path(cram).read_bytes()
    end = bytearray(cram_file.END_3)
    assert content.endswith(end)
    end[8] = 0xFF
    Path(cram).write_bytes(content[: -len(end)] + end)
    cram_file.check_end(cram)


def test_cram__of_version_2_0_has_no_end_marker(tmp_path: Path, refused: Run) -> None:
    path = of_version(tmp_path, "2.0")
    whole = Path(path).read_bytes().removesuffix(cram_file.END_2)  # which htslib writes anyway
    Path(path).write_bytes(whole)
    assert count(path, window=7000).values[:, 0].tolist() == in_windows(ROWS, 7000)
    Path(path).write_bytes(whole[:-500])
    assert refused(path) == f"{path}: cannot be decoded: truncated file"


@pytest.mark.parametrize("content", [b"", b"\0" * 50])
def test_cram__needs_no_index_and_none_is_made(cram: str, content: bytes) -> None:
    """One of 0 bytes, or of another file, changes nothing."""
    index = Path(cram + ".crai")
    for before in (content, None):
        index.write_bytes(before) if before is not None else index.unlink()
        found = count(cram, window=7000, max_chunk_bytes=1)
        assert found.values[:, 0].tolist() == in_windows(ROWS, 7000)
        assert index.exists() == (before is not None)


@pytest.mark.parametrize("damage", [2, 4, 10])
def test_cram__with_a_damaged_container(tmp_path: Path, refused: Run, damage: int) -> None:
    path = of_version(tmp_path)
    content = bytearray(Path(path).read_bytes())
    content[containers_of(path)[1] + damage] ^= 64
    Path(path).write_bytes(content)
    assert refused(path).startswith(f"{path}: cannot be decoded: ")
