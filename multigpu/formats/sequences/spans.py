"""Spans of samples: byte ranges of plain files, and blocks of whole records of streams."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.plan import spans
from multigpu.errors import InputError
from multigpu.formats.sequences.records import empty_table
from multigpu.formats.storage.sources import new_memory


@dataclass(frozen=True)
class FileSpan:
    """Byte range of a file.

    source      number of the file; of a pair of files it is a range of the first
    number      of the span in the file
    exact       whether a record begins at `start`
    mate_start  where then its mate begins in the second file of a pair
    """

    source: int
    number: int
    start: int
    stop: int
    exact: bool
    mate_start: int = 0


class IndexReads(NamedTuple):
    """Index reads of one file: number i is letters[offsets[i] : offsets[i + 1]]."""

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class BgzfSpan(FileSpan):
    """Range of the content of a BGZF file, at the borders of blocks.

    stored, origin  where the first block to read begins, in the file and in the content
    """

    stored: int = 0
    origin: int = 0


@dataclass(frozen=True, eq=False)
class BlockSpan:
    """Whole records of a stream, parsed, or the error that ended it.

    raw       uint8[size]: their text, which ends with the last of them
    table     int64[n, 6], as in `multigpu.kernels.compiled.text.records`
    mates     int8[n]: 1 or 2 where a record is of a pair, else 0; None where there are no pairs
    left_out  number of records that were read and are none of these
    begin     position of raw[0] in the source, where it is text
    index     of each index file the reads that go with these, one for each record or pair
    """

    source: int
    number: int
    raw: NDArray[np.uint8] = field(default_factory=lambda: new_memory(0))
    table: NDArray[np.int64] = field(default_factory=lambda: empty_table(0))
    error: InputError | None = None
    mates: NDArray[np.int8] | None = None
    left_out: int = 0
    begin: int = 0
    index: tuple[IndexReads, ...] = ()


@dataclass(frozen=True)
class StreamSpan:
    """Block of a compressed file that the worker opens; there may be none of this number.

    first  number of the first block that is not finished yet
    size   decompressed bytes that are read at a time
    """

    source: int
    number: int
    first: int
    size: int


Span = FileSpan | BlockSpan | StreamSpan


def file_spans(source: int, size: int, chunk_bytes: int) -> Iterator[FileSpan]:
    """Yield the spans of a file that is cut every `chunk_bytes`, regardless of records."""
    for number, piece in enumerate(spans(size, chunk_bytes)):
        yield FileSpan(source, number, piece.start, piece.stop, exact=number == 0)


def stream_spans(source: int, first: int, size: int) -> Iterator[StreamSpan]:
    """Yield the spans of a compressed file from number `first` on, without an end."""
    for number in count(first):
        yield StreamSpan(source, number, first, size)
