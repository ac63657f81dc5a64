"""CRAM through pysam, which reads a file as a whole: no index is needed.

Bases are not asked for, so no reference sequence is needed either. The marker of the end is that of
the CRAM specification (samtools.github.io/hts-specs/CRAMv3.pdf).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from multigpu.errors import InputError
from multigpu.formats.alignments.bam import NO_END, NOT_SORTED
from multigpu.formats.optional import import_pysam
from multigpu.formats.storage.sources import read_beginning, read_ending
from multigpu.kernels.compiled.alignments import POSITION_BITS
from multigpu.kernels.counting.types import READ_DTYPES, Reads

MAGIC = b"CRAM"
# Flag, reference, position, mapping quality, CIGAR, and the place of the mate.
FIELDS = 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80
BLOCK = 1 << 16  # reads at a time

# The container that ends a file: from version 2.1 on, in version 3 with checksums.
END_2 = bytes.fromhex("0b000000ffffffff0fe0454f460000000001000001000606010001000100")
END_3 = bytes.fromhex(
    "0f000000ffffffff0fe0454f4600000000010005bdd94f0001000606010001000100ee63014b"
)
ENDS = {b"\2\1": END_2, b"\3\0": END_3, b"\3\1": END_3}
FREE = 8  # the byte of it whose upper half has no meaning; htslib clears it, Java may set it


def absolute(path: str) -> str:
    """Return a path for htslib, which takes "s3:x" for an address and "-x" for an option."""
    return str(Path(path).absolute())


def check_end(path: str) -> None:
    """Raise InputError where the container is missing that ends every whole file."""
    wanted = ENDS.get(read_beginning(path)[4:6])
    if wanted is None:
        return  # older versions have none
    found = bytearray(read_ending(path, len(wanted)).ljust(len(wanted), b"\0"))
    found[FREE] &= 0x0F
    if found != wanted:
        raise InputError(path, NO_END)


def header(path: str) -> str:
    """Return the text of the header, as in SAM."""
    with _open(path) as file:
        return str(file.header)


def references(path: str) -> list[tuple[str, int]]:
    """Return name and length of every reference."""
    with _open(path) as file:
        return list(zip(file.references, file.lengths, strict=True))


def reads(path: str, ordered: bool) -> Iterator[Reads]:
    """Yield the mapped reads, block by block. Raises InputError for `ordered` ones that are not."""
    with _open(path) as file:
        found = _read_rows(file)
        last = -1
        while rows := list(islice(found, BLOCK)):
            columns = zip(zip(*rows, strict=True), READ_DTYPES.values(), strict=True)
            block = Reads(*(np.array(column, dtype) for column, dtype in columns))
            places = (block.chrom.astype(np.int64) << POSITION_BITS) | block.start
            if ordered and (np.diff(places, prepend=last) < 0).any():
                raise InputError(path, NOT_SORTED)
            last = int(places[-1])
            yield block


@contextmanager
def _open(path: str) -> Iterator[Any]:
    options = {"format_options": [f"required_fields={FIELDS}".encode()], "check_sq": False}
    open_file = import_pysam().AlignmentFile
    try:
        with open_file(absolute(path), "rc", **options) as file:
            yield file
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be decoded: {error}") from error


def _read_rows(file: Any) -> Iterator[tuple[int, int, int, int, int, int, bool]]:
    for read in file.fetch(until_eof=True):
        start = read.reference_start
        if not read.is_unmapped and read.reference_id >= 0 and start >= 0:
            end = read.reference_end or start + 1  # None: no base is mapped
            length = read.infer_query_length() or 0
            mate = read.next_reference_start
            is_right = mate < start or (mate == start and read.is_read2)
            is_pair = read.is_proper_pair and read.next_reference_id == read.reference_id
            row = read.reference_id, start, end, length, read.mapping_quality, read.flag
            yield *row, is_pair and is_right
