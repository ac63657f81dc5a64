"""BAM and CRAM files for tests, written by pysam."""

import random
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pysam

REFERENCES = (("chr1", 300_000), ("chr2", 100_000), ("chrEmpty", 50_000), ("chr3", 70_000))

# Random, so that they are hardly compressed.
BASES = random.Random(1).randbytes(1 << 20).translate(b"ACGT" * 64).decode()

Row = tuple[int, int, int, str, int]  # reference, position, mapping quality, CIGAR, flag


def random_rows(count: int, seed: int = 1, longest: int = 120) -> list[Row]:
    """Return sorted mapped reads of all kinds, and unmapped ones with and without a position."""
    random_ = random.Random(seed)
    rows: list[Row] = []
    for _ in range(count):
        number = random_.choice([0, 0, 0, 1, 3])
        position = random_.randrange(REFERENCES[number][1] - 2 * longest)
        matched = random_.randrange(20, longest)
        cigar = random_.choice([
            f"{matched}M", f"5S{matched}M", f"{matched}M10S", f"3H{matched}M",
            f"9M2I{matched}M", f"9M7D{matched}M", f"9M50N{matched}M", f"9={matched}X",
        ])  # fmt: skip
        flag = random_.choice([0, 0, 16, 16, 99, 147, 256, 1024, 2048, 4])
        rows.append((number, position, random_.choice([0, 1, 30, 60, 255]), cigar, flag))
    rows.sort(key=lambda row: row[:2])
    return rows + [(-1, -1, 0, "", 4)] * 5


def write_alignments(
    path: Path, rows: Iterable[Row], references: Sequence[tuple[str, int]] = REFERENCES,
    index: bool = True, csi: bool = False, fasta: Path | None = None, version: str = "3.0",
) -> str:  # fmt: skip
    """Write a BAM file, or a CRAM file where a FASTA file is given; return its path."""
    if fasta:
        _write(path, rows, references, fasta, version)
        if index:
            pysam.index(str(path))
        return str(path)
    content, bai_or_csi = _bam(tuple(rows), tuple(references), index, csi)
    path.write_bytes(content)
    if index:
        Path(f"{path}.{'csi' if csi else 'bai'}").write_bytes(bai_or_csi)
    return str(path)


@cache
def _bam(
    rows: tuple[Row, ...], references: tuple[tuple[str, int], ...], index: bool, csi: bool
) -> tuple[bytes, bytes]:
    """Return a BAM file and its index, which many tests want of the same rows."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "some.bam"
        _write(path, rows, references, None, "")
        if not index:
            return path.read_bytes(), b""
        pysam.index(*(["-c"] if csi else []), str(path))
        return path.read_bytes(), Path(f"{path}.{'csi' if csi else 'bai'}").read_bytes()


def _write(
    path: Path, rows: Iterable[Row], references: Sequence[tuple[str, int]], fasta: Path | None,
    version: str,
) -> None:  # fmt: skip
    header = {
        "HD": {"VN": "1.6", "SO": "coordinate"},
        "SQ": [{"SN": name, "LN": length} for name, length in references],
    }
    cram = {"reference_filename": str(fasta), "format_options": [f"version={version}".encode()]}
    mode, more = ("wc", cram) if fasta else ("wb", {})
    with pysam.AlignmentFile(str(path), mode, header=header, **more) as file:
        for number, row in enumerate(rows):
            file.write(_record(f"read{number}", row, file.header))


def _record(name: str, row: Row, header: pysam.AlignmentHeader) -> pysam.AlignedSegment:
    record = pysam.AlignedSegment(header)
    record.query_name = name
    record.reference_id, record.reference_start, record.mapping_quality = row[:3]
    record.flag = row[4]
    if row[3]:
        record.cigarstring = row[3]
        if not row[4] & 256:  # secondary records have no sequence
            at = row[1] % (len(BASES) // 2)
            record.query_sequence = BASES[at : at + record.infer_query_length()]
    return record


def write_fasta(path: Path) -> Path:
    """Write the reference sequences and their index."""
    path.write_text("".join(f">{name}\n{'ACGT' * (size // 4)}\n" for name, size in REFERENCES))
    pysam.faidx(str(path))
    return path
