"""The class of which every format of sequences has one object: all that the program knows of it.

A format is one module that ends with its object, and one line in `registry`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.pieces import Pieces
from multigpu.formats.sequences.records import Parsed
from multigpu.formats.sequences.spans import FileSpan
from multigpu.formats.storage.sources import Source
from multigpu.kernels.device.buffers import Buffers

BLOCK = 1 << 19  # bytes of a file at a time: they stay in the cache of a core, most records fit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordFormat:
    """One format of sequences.

    name            "fastq": what a source calls its layout
    suffixes        of its files that directories stand for, without those of compression
    mark            how the content begins; of text, after white space, and how every record does
    has_qualities   whether records have them
    bases_per_byte  bases in a byte of a file, or of a block of records, about
    """

    name: str
    suffixes: tuple[str, ...]
    mark: bytes
    has_qualities: bool
    bases_per_byte: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceFormat(RecordFormat):
    """One format of sequences that is text.

    parse           (bytes that begin with a record, final, offset) → records at their front
                    final: whether nothing follows, so that an incomplete record is an error
                    offset: the quality character that means 0
    read_range      (file, source, span, overlap, offset, letters) → records of a byte range
                    file: an open file's descriptor
                    overlap: bases that the last piece reaches over the span, if its record does
                    letters: source of the memory for the bases
                    Raises InputError where the file is shorter than `source` says, and OSError
    """

    parse: Callable[[NDArray[np.uint8], bool, int], Parsed]
    read_range: Callable[[int, Source, FileSpan, int, int, Buffers], Pieces]
