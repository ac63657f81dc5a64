"""BAM files of any size: paired reads of 100 bases, spread evenly over ten references.

All records are equally long, so a block of them is one NumPy array. Bases are random and qualities
have four levels, as of current sequencers.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pysam
from numpy.typing import NDArray

REFERENCES = tuple((f"chr{number + 1}", 100_000_000) for number in range(10))
BASES = 100
PER_BLOCK = 200_000  # records made at a time
STORED_BYTES = 87  # of a record, compressed, about
NAME = b"A00123:45:HXXXXXX:1:1101:12345:12345\0"
DIGITS = NAME.rindex(b"12345\0")  # of the name, random
TAGS = b"NMC\0ASC\x64RGZabc\0"
PAIRS = np.array([16 * first + second for first in (1, 2, 4, 8) for second in (1, 2, 4, 8)], "u1")
QUALITIES = np.array([2, 11, 25, 37, 37, 37, 37, 37], "u1")
MATCHED = BASES << 4  # the CIGAR

RECORD = np.dtype([
    ("size", "<i4"), ("reference", "<i4"), ("position", "<i4"), ("name_length", "u1"),
    ("quality", "u1"), ("bin", "<u2"), ("cigars", "<u2"), ("flag", "<u2"), ("bases", "<i4"),
    ("mate_reference", "<i4"), ("mate_position", "<i4"), ("insert", "<i4"),
    ("name", "u1", len(NAME)), ("cigar", "<u4"), ("sequence", "u1", BASES // 2),
    ("qualities", "u1", BASES), ("tags", "u1", len(TAGS)),
])  # fmt: skip


def write_bam(path: Path, size: int) -> None:
    """Write about `size` bytes, always the same ones for a size."""
    per_reference = max(1, size // (STORED_BYTES * PER_BLOCK * len(REFERENCES)))
    with pysam.BGZFile(str(path), "wb") as file:
        file.write(_header())
        for reference in range(len(REFERENCES)):
            for block in _blocks(reference, per_reference):
                file.write(block)


def _header() -> bytes:
    lines = [b"@HD\tVN:1.6\tSO:coordinate\n"]
    lines += [b"@SQ\tSN:%b\tLN:%d\n" % (name.encode(), length) for name, length in REFERENCES]
    text = b"".join(lines)
    parts = [b"BAM\x01", struct.pack("<i", len(text)), text, struct.pack("<i", len(REFERENCES))]
    for name, length in REFERENCES:
        parts.append(struct.pack("<i", len(name) + 1) + name.encode() + b"\0")
        parts.append(struct.pack("<i", length))
    return b"".join(parts)


def _blocks(reference: int, count: int) -> Iterator[bytes]:
    random = np.random.default_rng([1, reference])
    highest = REFERENCES[reference][1] - 2 * BASES
    positions = np.sort(random.integers(0, highest, count * PER_BLOCK))
    for at in range(0, len(positions), PER_BLOCK):
        yield _records(random, reference, positions[at : at + PER_BLOCK]).tobytes()


def _records(
    random: np.random.Generator, reference: int, position: NDArray[np.int64]
) -> NDArray[np.void]:
    count = len(position)
    records = np.zeros(count, RECORD)
    records["size"], records["name_length"] = RECORD.itemsize - 4, len(NAME)
    records["reference"] = records["mate_reference"] = reference
    records["position"], records["mate_position"] = position, position + 300
    records["quality"] = np.where(random.random(count) < 0.9, 60, random.integers(0, 60, count))
    records["cigars"] = 1  # bins are left out: indexes have their own
    records["flag"] = np.where(random.random(count) < 0.5, 99, 147)
    records["bases"], records["insert"], records["cigar"] = BASES, 400, MATCHED
    records["name"] = np.frombuffer(NAME, "u1")
    records["name"][:, DIGITS : DIGITS + 5] = random.integers(ord("0"), ord("9") + 1, (count, 5))
    records["sequence"] = PAIRS[random.integers(0, len(PAIRS), (count, BASES // 2))]
    records["qualities"] = QUALITIES[random.integers(0, len(QUALITIES), (count, BASES))]
    records["tags"] = np.frombuffer(TAGS, "u1")
    return records
