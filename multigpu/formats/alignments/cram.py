"""CRAM through pysam. Bases are not asked for, so no reference sequence is needed.

A file is cut at its containers, whose headers say what they have: no index is needed, which may be
of another file, and the order of the reads does not matter. The layout is that of the CRAM
specification (samtools.github.io/hts-specs/CRAMv3.pdf).
"""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import numpy as np

from multigpu.errors import InputError
from multigpu.formats.alignments.bam import NO_END, NOT_SORTED, WHOLE, Stretch, Unsorted, place
from multigpu.formats.optional import import_pysam
from multigpu.formats.storage.sources import read_beginning, read_ending, read_part
from multigpu.formats.storage.stored_streams import errors_named
from multigpu.kernels.compiled.alignments import POSITION_BITS
from multigpu.kernels.counting.types import READ_DTYPES, Reads

MAGIC = b"CRAM"
# Flag, reference, position, mapping quality, CIGAR, and the place of the mate.
FIELDS = 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80
BLOCK = 1 << 16  # reads at a time
FIRST = 26  # byte at which the first container begins, which has the text of the header
SEVERAL, MOST_REFERENCES = -2, 1 << 22  # as the reference of a container; beyond every reference
MOST_BYTES = 32 << 20  # of a piece: it is copied

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


def stretches(path: str, wanted: Collection[int], size: int) -> Iterator[Stretch]:
    """Yield pieces of neighbouring containers, which have all reads of the wanted references.

    size  stored bytes of a piece, about
    """
    begin = end = first = last = 0
    for start, stop, reference, reads in containers(path):
        if not reads or (reference not in wanted and reference != SEVERAL):
            continue
        if begin and (start != end or stop - begin > min(size, MOST_BYTES)):
            yield Stretch(place(first, 0), place(last, 0), begin, end)
            begin = 0
        if not begin:
            begin, first, last = start, MOST_REFERENCES, 0
        end, first, last = stop, min(first, max(0, reference)), max(last, reference + 1)
        if reference == SEVERAL:
            last = MOST_REFERENCES
    if begin:
        yield Stretch(place(first, 0), place(last, 0), begin, end)


def containers(path: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield stored begin and end, reference and number of reads of each container of a file.

    The file is of version 3. Raises InputError where containers do not follow each other.
    """
    with errors_named(path), open(path, "rb", buffering=256) as file:  # noqa: PTH123
        size, end = os.fstat(file.fileno()).st_size, FIRST
        while (begin := end) < size:
            file.seek(begin)
            length = int.from_bytes(file.read(4), "little")
            reference, _, _, reads = (_number(file) for _ in range(4))
            for most in (8, 8, 4):  # records before; bases; blocks
                _number(file, most)
            for _ in range(min(_number(file), size)):  # a damaged one is large
                _number(file)  # where slices begin
            stop = file.tell()
            file.seek(begin)
            header = file.read(stop - begin)
            if crc32(header) != int.from_bytes(file.read(4), "little"):
                raise InputError(path, "is damaged: the header of a container is wrong")
            end = stop + 4 + length
            if end > size:
                raise InputError(path, NO_END)
            yield begin, end, reference, reads


def _number(file: BinaryIO, most: int = 4) -> int:
    """Return the next number: the first bits that are set say how many bytes follow.

    most  of these: 4 for ITF8, 8 for LTF8, of which only the length matters here
    """
    first = (file.read(1) or b"\0")[0]
    more = min(most, 8 - (first ^ 0xFF).bit_length())
    number = int.from_bytes(bytes([first & 0xFF >> more + 1]) + file.read(more))
    if more == 4:  # four bits of the first byte, and four of the last
        number = (first & 15) << 28 | (number >> 8 & 0xFFFFFF) << 4 | number & 15
    return number - (number >> 31 << 32)


def reads(path: str, stretch: Stretch, ordered: bool) -> Iterator[Reads]:
    """Yield the mapped reads of a piece, block by block.

    ordered  raise InputError where the reads are not sorted by position
    """
    with _open(path, stretch) as file:
        found = _read_rows(file)
        last = -1
        while rows := list(islice(found, BLOCK)):
            columns = zip(zip(*rows, strict=True), READ_DTYPES.values(), strict=True)
            block = Reads(*(np.array(column, dtype) for column, dtype in columns))
            places = (block.chrom.astype(np.int64) << POSITION_BITS) | block.start
            if ordered and (np.diff(places, prepend=last) < 0).any():
                raise Unsorted(path, NOT_SORTED)
            last = int(places[-1])
            yield block


@contextmanager
def _open(path: str, stretch: Stretch = WHOLE) -> Iterator[Any]:
    options = {"format_options": [f"required_fields={FIELDS}".encode()], "check_sq": False}
    open_file = import_pysam().AlignmentFile
    try:
        with _part(path, stretch) as source, open_file(source, "rc", **options) as file:
            yield file
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be decoded: {error}") from error


@contextmanager
def _part(path: str, stretch: Stretch) -> Iterator[str | BinaryIO]:
    """Yield what pysam opens: the file, or a copy in memory of its header, a piece, and its end."""
    if not stretch.stop:
        yield absolute(path)
        return
    header = next(containers(path))[1]
    with open(os.memfd_create("multigpu"), "w+b") as file:  # noqa: PTH123
        file.write(read_part(path, 0, header))
        file.write(read_part(path, stretch.offset, stretch.stop - stretch.offset))
        file.write(ENDS.get(read_beginning(path)[4:6], b""))
        file.seek(0)
        yield file


def _read_rows(file: Any) -> Iterator[tuple[int, int, int, int, int, int, bool]]:
    """Yield the columns of every mapped read."""
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
