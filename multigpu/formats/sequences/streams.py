"""Streams of samples, cut at the borders of records."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import Failure, InputError, Unreadable
from multigpu.formats.sequences.indexed_streams import IndexedSource, indexed_spans
from multigpu.formats.sequences.pairs import PairedSource, paired_spans
from multigpu.formats.sequences.record_source import RecordSource
from multigpu.formats.sequences.records import describe
from multigpu.formats.sequences.registry import FORMATS
from multigpu.formats.sequences.spans import BlockSpan, StreamSpan
from multigpu.formats.storage.decompress import Stream
from multigpu.formats.storage.read_ahead import LARGEST_BLOCK, ReadAhead
from multigpu.formats.storage.sources import (
    Block,
    Content,
    Source,
    blocks_of,
    join_blocks,
    new_memory,
)
from multigpu.kernels.compiled.text.records import Fault
from multigpu.kernels.device.buffers import Buffers

PAIRS_AHEAD = 4  # blocks of pairs that are joined before they are taken
MOST_WAITING = 32  # blocks of a file that were read before they are asked for
MORE = 256 << 10  # bytes after a range: records that begin in it end there
INDEX_BLOCK = 1 << 20  # bytes of index reads


def stream_blocks(
    number: int, source: Source, size: int, phred_offset: int, buffers: Buffers | None = None
) -> Iterator[BlockSpan]:
    """Yield the spans of a source that is read `size` bytes at a time; see `block_spans`.

    buffers  source of memory for the blocks of a file, which are read as they are taken; without
             it another thread reads them before
    """
    if isinstance(source, IndexedSource):
        blocks = stream_blocks(number, source.reads, size, phred_offset, buffers)
        indexes = [
            block_spans(0, file, file.stream(INDEX_BLOCK), phred_offset) for file in source.indexes
        ]
        return indexed_spans(source, blocks, indexes)
    if isinstance(source, PairedSource):
        share, ahead = max(1, min(size // len(source.files), LARGEST_BLOCK)), buffers is None
        wait = _read_ahead if ahead else iter
        files = [
            wait(block_spans(0, file, file.stream(share, ahead), phred_offset))
            for file in source.files
        ]
        return wait(paired_spans(number, source, files))
    if isinstance(source, RecordSource):
        return source.spans(number, size, phred_offset)
    content = source.blocks_in(buffers.take, size, helpers=0) if buffers else source.stream(size)
    return block_spans(number, source, content, phred_offset)


def range_blocks(stream: Stream, size: int, allocate: Callable[[int], Block]) -> Generator[Block]:
    """Yield the blocks of a stream that a range of `size` bytes and the end of its records need.

    They become larger: what is left of one is copied before the next.
    """
    sizes = itertools.chain([max(0, size) + MORE], (MORE << times for times in itertools.count()))
    return blocks_of(stream, sizes, allocate)


def _read_ahead(spans: Iterator[BlockSpan]) -> Iterator[BlockSpan]:
    """Yield spans that a thread parses or joins before they are taken, as the client has to write.

    Two decompressed files are more than one thread can do both for.
    """
    with contextlib.closing(ReadAhead(spans, PAIRS_AHEAD)) as ready:
        yield from ready


def block_spans(
    number: int, source: Source, content: Content, phred_offset: int, begin: int = 0
) -> Iterator[BlockSpan]:
    """Yield the spans of a stream, cut at record borders; the last one may have its error.

    begin  position in the source where the content begins

    Raises Unreadable where it cannot be read.
    """
    # Text that is made of alignments is FASTQ.
    sequence_format = FORMATS.get(source.layout, FORMATS["fastq"])
    left, before = new_memory(0), begin  # where in the source what is left begins
    least, block = 0, itertools.count()
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
                yield BlockSpan(number, next(block), error=damage, begin=before)
                return
            parsed = sequence_format.parse(raw, final, phred_offset)
            good = parsed.fault in (Fault.NONE, Fault.INCOMPLETE) and not final
            error = None
            if not good:
                error = describe(
                    source.path, sequence_format.mark, raw, parsed, before, phred_offset
                )
            # Once the block is given, its memory may be used for another.
            left = raw[parsed.stop :].copy()
            # The last record of the table is the one with a wrong quality.
            table = parsed.table[:-1] if parsed.fault is Fault.QUALITY else parsed.table
            if len(table) or error:
                text = raw[: parsed.stop]
                yield BlockSpan(number, next(block), text, table, error, begin=before)
            before += parsed.stop
            if error or final:
                return
            # A long record is not looked at again with every block.
            least = 0 if len(parsed.table) else 2 * len(left)


def _next_bytes(
    content: Content, left: NDArray[np.uint8], least: int
) -> tuple[NDArray[np.uint8], bool]:
    """Return what was left and the next block, or `least` bytes; and whether that is all."""
    parts, size = [left], len(left)
    while (block := next(content, None)) is not None:
        parts.append(block)
        size += len(block)
        if size >= least:
            break
    return join_blocks(*parts) if len(parts) == 2 else np.concatenate(parts), block is None


class OpenStreams:
    """Compressed files and URLs that this process has open; several threads ask for their blocks.

    A block is given once, and read again where it is asked for again. A copy for another process
    has none open.

    buffers  source of the memory that blocks lie in
    """

    def __init__(self, sources: Sequence[Source], phred_offset: int) -> None:
        self._sources, self._phred_offset = sources, phred_offset
        self.buffers = Buffers(new_memory)
        self._lock = threading.Lock()
        self._open: dict[int, _OpenStream] = {}

    def __reduce__(self) -> Any:
        return OpenStreams, (self._sources, self._phred_offset)

    def read(self, span: StreamSpan) -> BlockSpan | None:
        """Return the block; None after the last one. Raises InputError where it cannot be read."""
        with self._lock:
            if span.source not in self._open:
                about = self._sources[span.source], span.size, self._phred_offset, self.buffers
                blocks = partial(stream_blocks, span.source, *about)
                self._open[span.source] = _OpenStream(blocks, span.number)
        return self._open[span.source].read(span.number)


class _OpenStream:
    """Blocks of one file, read by the first thread that asks for one or for a later one."""

    def __init__(self, blocks: Callable[[], Iterator[BlockSpan]], first: int) -> None:
        self._blocks, self._lock = blocks, threading.Lock()
        self._waiting: dict[int, BlockSpan] = {}  # that were read, and are not asked for yet
        self._begin(first)

    def _begin(self, first: int) -> None:
        """Begin to read, with the block of this number."""
        self._error: Exception | None = None
        self._found, self._next = itertools.islice(self._blocks(), first, None), first

    def read(self, number: int) -> BlockSpan | None:
        with self._lock:
            if number < self._next and number not in self._waiting:  # it is asked for again
                self._begin(number)
            while self._next <= number:
                if self._error is not None:  # of this block and of all later ones
                    raise self._error
                try:
                    block = next(self._found, None)
                except Exception as error:
                    self._error = error
                    raise
                if block is None:
                    return None
                self._waiting[self._next] = block
                self._waiting.pop(self._next - MOST_WAITING, None)  # another worker had it
                self._next += 1
            return self._waiting.pop(number, None)
