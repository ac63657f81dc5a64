"""Spans of samples: files are cut by byte positions, streams at the borders of records."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.plan import spans
from multigpu.errors import Failure, InputError, Unreadable
from multigpu.formats.sequences.records import Parsed, describe, empty_table, parse
from multigpu.formats.storage.read_ahead import Block, ReadAhead
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text.records import Fault


@dataclass(frozen=True)
class FileSpan:
    """Piece of a file, by byte positions.

    exact  whether a record begins at `start`
    """

    source: int
    start: int
    stop: int
    exact: bool


@dataclass(frozen=True, eq=False)
class BlockSpan:
    """Whole records of a stream, parsed, or the error that ended it."""

    source: int
    raw: NDArray[np.uint8]
    parsed: Parsed
    error: InputError | None = None


Span = FileSpan | BlockSpan


def file_spans(source: int, size: int, chunk_bytes: int) -> Iterator[FileSpan]:
    """Yield the spans of a file that is cut every `chunk_bytes`, regardless of records."""
    for piece in spans(size, chunk_bytes):
        yield FileSpan(source, piece.start, piece.stop, exact=piece.start == 0)


def block_spans(
    number: int, source: Source, content: ReadAhead[Block], phred_offset: int
) -> Iterator[BlockSpan]:
    """Yield the spans of a stream, cut at record borders; the last one may have its error.

    Raises Unreadable where it cannot be read.
    """
    left, before = np.empty(0, np.uint8), 0  # bytes of the content in blocks that were given
    least = 0
    with contextlib.closing(content):
        while True:
            try:
                raw, final = _next_bytes(content, left, least)
            except MemoryError as large:
                if not least:
                    raise
                problem = f"a record of more than {len(left):,} bytes does not fit the memory"
                raise Failure(f"{source.path}: {problem}") from large
            except Unreadable:
                raise  # a journal must not know of it
            except InputError as damage:
                yield BlockSpan(number, left[:0], Parsed(table=empty_table(0), stop=0), damage)
                return
            parsed = parse(raw, source.layout, final=final, offset=phred_offset)
            good = parsed.fault in (Fault.NONE, Fault.INCOMPLETE) and not final
            error = None if good else describe(source, raw, parsed, before, phred_offset)
            if len(parsed.table) or error:
                yield BlockSpan(number, raw, parsed, error)
            if error or final:
                return
            left, before = raw[parsed.stop :], before + parsed.stop
            # A long record is not looked at again with every block.
            least = 0 if len(parsed.table) else 2 * len(left)


def _next_bytes(
    content: Iterator[Block], left: NDArray[np.uint8], least: int
) -> tuple[NDArray[np.uint8], bool]:
    """Return what was left and the next block, or `least` bytes; and whether that is all."""
    parts, size = [left], len(left)
    while (block := next(content, None)) is not None:
        parts.append(block)
        size += len(block)
        if size >= least:
            break
    return np.concatenate(parts), block is None
