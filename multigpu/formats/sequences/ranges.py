"""Ranges of reads that any worker reads by itself: of FASTQ in BGZF, and of two files of pairs.

A span has the records, or pairs, that begin in it. Where its first one begins is guessed, and
checked, as for plain files (see `fastq`). Spans of BGZF are whole blocks, by positions in the
content; those of pairs are byte ranges of the first file. Where the other file has the mate of the
first read is guessed by the share of the file before it, and there by its name.
"""

from collections.abc import Generator, Iterator
from io import FileIO
from itertools import chain

from multigpu.formats.sequences.fastq import HEADER, find_first_record
from multigpu.formats.sequences.file_records import FileRecords, title_at
from multigpu.formats.sequences.pairs import PairedSource, error_at_end, split_title, take_pairs
from multigpu.formats.sequences.pieces import Pieces, TextInMemory
from multigpu.formats.sequences.records import gather_letters
from multigpu.formats.sequences.spans import BgzfSpan, FileSpan
from multigpu.formats.sequences.streams import block_spans, range_blocks
from multigpu.formats.storage.bgzf import block_borders
from multigpu.formats.storage.decompress import GzipFile
from multigpu.formats.storage.sources import Block, Source, new_memory, read_part
from multigpu.formats.storage.stored_streams import errors_named, fill, open_stored
from multigpu.kernels.compiled.text.records import NAME
from multigpu.kernels.device.buffers import Buffers

UNKNOWN = 1 << 62  # where the content of a span ends that has the rest of its file
ROOM = 32 << 20  # bytes that are read at a time of such a span
# How far around the guess the name of a mate is looked for, in bytes. What is farther off is found
# when the span before has ended.
DISTANCES = (1 << 15, 1 << 20, 1 << 25)


# ---- BGZF ----------------------------------------------------------------------------------------


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


def read_bgzf(
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
    raw, table, _ = records.first(count)
    return Pieces(
        begin=begin if span.exact or begin < span.stop else -1,
        stop=records.position(count),
        table=table,
        letters=gather_letters(raw, table, letters.take),
        text=TextInMemory(raw, is_reusable=True),
        error=None if len(records.table) > count else records.error,
    )


# ---- pairs ---------------------------------------------------------------------------------------


def read_pairs(
    source: PairedSource, span: FileSpan, *, offset: int, letters: Buffers, texts: Buffers
) -> Pieces:
    """Read the pairs whose first mate begins in a span, with their text.

    offset   the quality character that means 0
    letters  source of the memory for the letters
    texts    source of that for the text, and for the ranges, which is given back

    Raises Unreadable where a file cannot be read.
    """
    one, two = source.files
    begin, mate_begin = span.start, span.mate_start
    if not span.exact:
        with errors_named(one.path), FileIO(one.path) as file:
            begin = find_first_record(file.fileno(), span.start - 1, span.stop)
    start = begin if begin >= 0 else span.stop
    first = _records_from(one, start, span.stop - start, offset, texts)
    count = first.fill_to(span.stop) if start < span.stop else 0
    if count and not span.exact:
        mate_begin = _find_mate(two, first, begin * (two.size or 0) // (one.size or 1))
        count *= mate_begin >= 0
    size = (first.position(count) - start) * (two.size or 0) // (one.size or 1)
    files = [first, _records_from(two, max(0, mate_begin), size, offset, texts)]
    pairs = min(count, files[1].fill(count))
    raw, table, error = take_pairs(source, files, pairs, texts.take)
    if count or span.exact:
        error = error or error_at_end(source, files)
    for each in files:
        if each.raw.base is not None:
            texts.give(each.raw)
    return Pieces(
        begin=begin,
        stop=first.position(),
        mate_begin=mate_begin,
        mate_stop=files[1].position(),
        table=table,
        letters=gather_letters(raw, table, letters.take),
        text=TextInMemory(raw, is_reusable=True),
        error=error,
    )


def _records_from(file: Source, begin: int, size: int, offset: int, texts: Buffers) -> FileRecords:
    """Return the records of a file from a position on, of which `size` bytes are wanted."""

    def content() -> Generator[Block]:
        with open_stored(file.path) as stored:
            stored.expected = file.size
            stored.restart(begin)
            yield from range_blocks(stored, size, texts.take)

    return FileRecords(block_spans(0, file, content(), offset, begin), begin)


def _find_mate(file: Source, first: FileRecords, guess: int) -> int:
    """Return where the mate of the first record begins, near a place in a file; -1: not there."""
    name = int(first.table[0, NAME])
    shared, _ = split_title(title_at(first.raw, name))
    # As in the first file, a blank or the number of the mate follows.
    wanted = b"\n" + first.raw[name - 1 : name + len(shared) + 1].tobytes()
    for distance in DISTANCES:
        start = max(0, guess - distance)
        found = read_part(file.path, start, guess + distance - start).find(wanted)
        if found >= 0:
            return start + found + 1
    return -1
