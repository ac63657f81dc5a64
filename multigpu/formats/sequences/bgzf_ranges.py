"""FASTQ in BGZF: spans of whole blocks, which any worker decompresses by itself.

A span has the records that begin in it. Where its first one begins is guessed, and checked, as for
plain files (see `fastq`); positions are those in the content.
"""

from collections.abc import Iterator
from itertools import chain

from multigpu.formats.sequences.fastq import HEADER
from multigpu.formats.sequences.file_records import FileRecords
from multigpu.formats.sequences.pieces import Pieces, TextInMemory
from multigpu.formats.sequences.records import gather_letters
from multigpu.formats.sequences.spans import BgzfSpan
from multigpu.formats.sequences.streams import block_spans, range_blocks
from multigpu.formats.storage.bgzf import block_borders
from multigpu.formats.storage.decompress import GzipFile
from multigpu.formats.storage.sources import Source, new_memory
from multigpu.formats.storage.stored_streams import fill, open_stored
from multigpu.kernels.device.buffers import Buffers

UNKNOWN = 1 << 62  # where the content of a span ends that has the rest of its file
ROOM = 32 << 20  # bytes that are read at a time of such a span


def bgzf_spans(number: int, path: str, size: int, chunk_bytes: int) -> Iterator[BgzfSpan]:
    """Yield the spans of a file of `size` bytes, each of about `chunk_bytes` of content.

    The last one has what no block follows, whatever it is.
    """
    spans, begin = 0, 0
    before = here = (0, 0)  # the last borders with less content, and with as much as now
    first = here  # block to read: it has the byte before `begin`
    for stored, content in block_borders(path):
        if content > here[1]:
            before, here = here, (stored, content)
        if content - begin >= chunk_bytes:
            yield BgzfSpan(number, spans, begin, content, spans == 0, 0, *first)
            spans, begin, first = spans + 1, content, before
    stop = content if stored == size else UNKNOWN
    if stop > begin:
        yield BgzfSpan(number, spans, begin, stop, spans == 0, 0, *first)


def read_range(
    source: Source, span: BgzfSpan, *, offset: int, letters: Buffers, texts: Buffers
) -> Pieces:
    """Read the records that begin in a span. Raises InputError where the file is damaged.

    offset          the quality character that means 0
    letters, texts  sources of memory for the bases and for the content
    """
    with open_stored(source.path) as stored:
        stored.expected = source.size
        stored.restart(span.stored)
        # The newline of the line before belongs to the search.
        before = span.start - (not span.exact)
        text = GzipFile(stored)
        fill(text, memoryview(bytearray(before - span.origin)))
        content = range_blocks(text, min(span.stop - before, ROOM), texts.take)
        begin, front = span.start, next(content, new_memory(0))
        if not span.exact:
            header = HEADER.search(front.data)
            begin = before + header.start(1) if header else span.stop
            front = front[begin - before :]
        blocks = block_spans(0, source, (each for each in chain([front], content)), offset, begin)
        records = FileRecords(blocks, begin)
        count = records.fill_to(span.stop) if begin < span.stop else 0
    raw, table, _ = records.take(count)
    return Pieces(
        begin=begin if span.exact or begin < span.stop else -1,
        stop=records.position(),
        table=table,
        letters=gather_letters(raw, table, letters.take),
        text=TextInMemory(raw, is_reusable=True),
        error=None if len(records.table) else records.error,
    )
