"""Several compressed files, which threads open by themselves: the rows of the plain ones."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.bgzf_data import bgzf
from support.scan_rows import without_files
from support.scanned import ALL, READS, Scan, answer, fasta_of, fastq, tsv
from support.stored import fastq as random_reads

import multigpu
from multigpu import InputError
from multigpu.formats.storage.zstandard import zstd

FILES = 5
PACK: list[Any] = [gzip.compress, zstd.compress, bgzf, gzip.compress, bgzf]


@pytest.fixture
def packed(store: Any) -> list[str]:
    """Five compressed files of some 3,000 bytes, FASTQ and FASTA."""
    contents = [fasta_of(READS * 20) if number == 2 else fastq(READS * 20) for number in range(5)]
    return [store(f"reads{n}", PACK[n](content)) for n, content in enumerate(contents)]


def expected() -> bytes:
    rows = [answer(READS * 20, every=True, both=True, scored=n != 2) for n in range(FILES)]
    return tsv([row for each in rows for row in each])


@pytest.mark.parametrize("threads", ["1", "2", "8"])
@pytest.mark.parametrize("size", ["70", "1000", "100000"])
def test_rows__of_files_in_order(scan: Scan, packed: list[str], size: str, threads: str) -> None:
    options = (*ALL, "--max-chunk-bytes", size, "--threads", threads)
    assert without_files(scan(*packed, options=options)) == expected()


def test_samples__are_numbered(scan: Scan, packed: list[str], store: Any, tmp_path: Path) -> None:
    plain = store("plain.fq", fastq())
    summary = tmp_path / "summary.json"
    scan(packed[0], plain, *packed[1:], options=("--summary", str(summary)))
    facts = json.loads(summary.read_text())
    assert facts["records"] == len(READS) * (20 * FILES + 1)
    found = multigpu.scan([packed[0], plain, packed[1]], store("s.fa", b">s\nACG\n"), gpus="none")
    indices = found.to_table()["sample_index"].to_pylist()
    assert indices == sorted(set(indices))
    assert indices[-1] > len(READS) * 21


@pytest.mark.parametrize("stop", [1, 40, 90, 150])
def test_run__is_resumed(packed: list[str], signatures: str, tmp_path: Path, stop: int) -> None:
    options: dict[str, Any] = {"gpus": "none", "hits": "all", "max_chunk_bytes": 100}
    whole = multigpu.scan(packed, signatures, **options).to_table()
    kept: dict[str, Any] = {"journal": tmp_path / "journal", "resume": True, **options}
    rows = iter(multigpu.scan(packed, signatures, **kept))
    for _ in range(stop):
        next(rows)
    rows.close()  # type: ignore[attr-defined]
    again = multigpu.scan(packed, signatures, threads=3, **kept)
    assert again.to_table().equals(whole)
    assert again._job.stats.resumed >= stop


def test_error__of_the_first_file_is_raised(scan: Scan, packed: list[str], signatures: str) -> None:
    for number in (3, 1):
        Path(packed[number]).write_bytes(PACK[number](random_reads(4000))[:-40])
        with pytest.raises(InputError, match=f"^{re.escape(packed[number])}: .* ends early"):
            scan(*packed, options=("--max-chunk-bytes", "5000"))
    rows = iter(multigpu.scan(packed, signatures, gpus="none", max_chunk_bytes=100))
    assert sum(1 for _ in zip(rows, range(20), strict=False)) == 20  # those of the first file
