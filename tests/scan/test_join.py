"""FASTA records that stand in several spans, against the whole file in one."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from multigpu import InputError, scan
from multigpu.workloads.scan.api import ScanResult

pytestmark = pytest.mark.process  # runs whole jobs

Rows = list[tuple[object, ...]]


def fasta(random: np.random.Generator, records: int, longest: int, width: int, end: str) -> str:
    text = ""
    for record in range(records):
        bases = "".join(random.choice(list("ACGTN"), random.integers(0, longest + 1)))
        lines = [bases[at : at + width] for at in range(0, len(bases), width)]
        header = f">r{record} " + "x" * int(random.integers(0, 20))
        text += end.join([header, *lines]) + end * int(random.integers(1, 3))
    return text


def rows(result: ScanResult) -> Rows:
    table = result.to_table()
    return list(zip(*table.to_pydict().values(), strict=True))


def scanned(folder: Path, **options: object) -> Rows:
    return rows(scan(folder / "s.fa", folder / "g.fa", gpus="none", threads=2, **options))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("width", [1, 7, 60, 1000])
@pytest.mark.parametrize("hits", ["first", "all"])
def test_scan__fasta_cut_anywhere_is_whole(tmp_path: Path, end: str, width: int, hits: str) -> None:
    random = np.random.default_rng([width, len(end), len(hits)])
    text = fasta(random, 5, 300, width, end)
    (tmp_path / "s.fa").write_text(text, newline="")
    longest = max(text.split(">"), key=len).split(end, 1)[1].replace(end, "")
    pieces = [f">g{at}\n{longest[at : at + 3 + at // 2]}\n" for at in range(0, 100, 7)]
    (tmp_path / "g.fa").write_text("".join(pieces))
    whole = scanned(tmp_path, hits=hits, strand="both")
    assert len(whole) >= 15  # each was taken from a record
    for size in (1, 2, 3, 5, 17, 64, 100, 333):
        assert scanned(tmp_path, hits=hits, strand="both", max_chunk_bytes=size) == whole, size


def test_scan__illegal_base_in_a_later_piece_is_told_from_its_record(tmp_path: Path) -> None:
    (tmp_path / "s.fa").write_text(">one\nACGT\n>two x\n" + "ACGT\n" * 20 + "AC!T\n")
    (tmp_path / "g.fa").write_text(">g\nACG\n")
    for size in (4, 10, 50, 1000):
        with pytest.raises(InputError, match=r"s\.fa: record 'two', position 82 \(from 0\): '!'"):
            scanned(tmp_path, max_chunk_bytes=size)


def test_scan__header_lines_of_any_length_are_no_bases(tmp_path: Path) -> None:
    """They are as long as several spans, and as what is looked back."""
    bases = "TTACGTTTCC" * 9000
    text = f">one\nGGACGTGG\n>two {bases}\nAC\nGT\n>three {bases[:70_000]}\n>four\nACGT\n"
    (tmp_path / "s.fa").write_text(text)
    (tmp_path / "z.fa.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "g.fa").write_text(">g\nACGT\n")
    whole = rows(scan(tmp_path / "z.fa.gz", tmp_path / "g.fa", gpus="none", hits="all"))
    assert [(row[0], row[4]) for row in whole] == [("one", 2), ("two", 0), ("four", 0)]
    for size in (20_000, 70_003, 100_000, 1_000_000):
        same = scanned(tmp_path, hits="all", max_chunk_bytes=size)
        assert [(*row[:8], row[9]) for row in same] == [(*row[:8], row[9]) for row in whole], size
