"""Good and bad input, and what the fixtures give."""

import gzip
from collections.abc import Callable

import pytest
from support.bgzf_data import bgzf

from multigpu.formats.storage.zstandard import zstd

SCAN = ("scan", "--gpus", "none")
SIGNATURES = b">sig\nACGT\n"
READS = b"@r1 first\nACGTA\n+\nIIIII\n@r2\nTTACGT\n+\n@+III!\n"
LAYOUTS = {
    "plain": READS,
    "crlf": READS.replace(b"\n", b"\r\n"),
    "wrapped": b"@r1 first\nACG\nTA\n+\nIII\nII\n@r2\nTTA\nCGT\n+r2\n@+I\nII!\n",
    "blank lines": READS.replace(b"@r2", b"\n\n@r2") + b"\n",
}
CHUNKS = [pytest.param((), id="one chunk"), pytest.param(("--max-chunk-bytes", "7"), id="7 bytes")]
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "bgzf": bgzf, "zstd": zstd.compress,
}  # fmt: skip
BASE, QUALITY, LENGTH = ("ACGTXCGTAC", "I" * 10), ("ACGTACGTAC", "IIII IIIII"), ("ACGT", "IIIII")

Refused = Callable[..., str]
Store = Callable[[str, bytes], str]


def fastq(*reads: tuple[str, str, str]) -> bytes:
    return "".join(f"@{name}\n{bases}\n+\n{quality}\n" for name, bases, quality in reads).encode()


def many(count: int, **faults: tuple[str, str]) -> bytes:
    """Reads of which some, by their name, have other bases and qualities."""
    reads = []
    for number in range(count):
        bases, quality = faults.get(f"r{number}", ("ACGTACGTAC", "IIIIIIIIII"))
        reads.append((f"r{number}", bases, quality))
    return fastq(*reads)
