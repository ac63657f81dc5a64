"""Reads in every compression, and the content of a file."""

import gzip
import random
import struct
from collections.abc import Callable
from functools import partial

from multigpu.formats.sequences.registry import SEQUENCES
from multigpu.formats.storage import input_paths, sources
from multigpu.formats.storage.zstandard import zstd
from support import bgzf_data

Store = Callable[..., str]  # writes a file and tells its path
expand = partial(input_paths.expand, kind=SEQUENCES)
inspect_source = partial(sources.inspect_source, kind=SEQUENCES)
TRUNCATED = "data ends early: the file is truncated"
bgzf = partial(bgzf_data.bgzf, block=4000)


def fastq(reads: int, seed: int = 1) -> bytes:
    draw = random.Random(seed)
    lines = []
    for number in range(reads):
        letters = "".join(draw.choices("ACGT", k=50))
        quality = "".join(draw.choices("!+5?I", k=50))
        lines.append(f"@read{number}\n{letters}\n+\n{quality}\n")
    return "".join(lines).encode()


def zstd_frame(data: bytes) -> bytes:
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


def thirds(data: bytes) -> list[bytes]:
    step = -(-len(data) // 3)
    return [data[at : at + step] for at in range(0, len(data), step)]


def skippable_frame(size: int) -> bytes:
    return b"\x50\x2a\x4d\x18" + struct.pack("<I", size) + bytes(range(size))


READS = fastq(400)
STORED = {
    "none": READS,
    "gzip": b"".join(map(gzip.compress, thirds(READS))),
    "bgzf": bgzf(READS),
    "zstd": b"".join(map(zstd_frame, thirds(READS))),
}
CUT = [STORED["gzip"][:-1], STORED["bgzf"][:-28], STORED["zstd"][:-1]]


def content(path: str, size: int = 1000) -> bytes:
    return b"".join(block.tobytes() for block in inspect_source(path).blocks(size))
