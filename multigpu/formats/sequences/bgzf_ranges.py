"""FASTQ in BGZF: spans of whole blocks, which any worker decompresses by itself.

A span has the records that begin in it. Where its first one begins is guessed, and checked, as for
plain files (see `fastq`); positions are those in the content.
"""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.fastq import FASTQ, parse
from multigpu.formats.sequences.pieces import RangeRecords
from multigpu.formats.sequences.records import Parsed, describe, empty_table
from multigpu.formats.sequences.spans import BgzfSpan
from multigpu.formats.storage.bgzf import block_borders
from multigpu.formats.storage.decompress import GzipFile
from multigpu.formats.storage.sources import Source
from multigpu.formats.storage.stored_streams import fill, open_stored
from multigpu.kernels.compiled.text.records import LENGTH, Fault, gather
from multigpu.kernels.device.buffers import Buffers

UNKNOWN = 1 << 62  # where the content of a span ends that has the rest of its file
ROOM = 32 << 20  # bytes that are read at a time of such a span
MORE = 128 << 10  # bytes after a span that are read for its last record
HEADER = re.compile(rb"\n(@[^\n]*\n)[^@]")  # not qualities that begin with @: a header follows


def has_ranges(source: Source) -> bool:
    """Whether any worker can read a part of a source that is compressed."""
    is_one_file = type(source) is Source and source.is_file and not source.in_blocks
    return is_one_file and source.compression == "bgzf" and source.layout == "fastq"


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
            where = {"stored": first[0], "origin": first[1]}
            yield BgzfSpan(number, spans, begin, content, exact=spans == 0, **where)
            spans, begin, first = spans + 1, content, before
    stop = content if stored == size else UNKNOWN
    if stop > begin:
        where = {"stored": first[0], "origin": first[1]}
        yield BgzfSpan(number, spans, begin, stop, exact=spans == 0, **where)


def read_range(
    source: Source, span: BgzfSpan, *, offset: int, letters: Buffers, texts: Buffers
) -> RangeRecords:
    """Read the records that begin in a span. Raises InputError where the file is damaged.

    offset          the quality character that means 0
    letters, texts  sources of memory for the bases and for the content
    """
    border, origin = span.stop - span.origin, span.origin
    with open_stored(source.path) as stored:
        stored.expected = source.size
        stored.restart(span.stored)
        text = _Text(GzipFile(stored), texts, min(border, ROOM) + MORE)
        while len(text.raw) < border and not text.is_complete:
            text.extend(min(border - len(text.raw), ROOM))
        first = span.start - origin if span.exact else _guess(text.raw, span.start - origin, border)
        at, fault, qualities = (border if first < 0 else first), Fault.NONE, 0
        tables = [empty_table(0)]
        while 0 <= first < border:
            parsed = parse(text.raw, text.is_complete, offset, at, border)
            tables.append(parsed.table)
            at, fault, qualities = parsed.stop, parsed.fault, parsed.qualities
            is_cut = fault is Fault.INCOMPLETE or (fault is Fault.NONE and at >= len(text.raw))
            if text.is_complete or not is_cut:
                break
            # A long record is not looked at again with every block.
            text.extend(max(MORE, len(text.raw) - at))
    table, raw = np.concatenate(tables), text.raw
    parsed = Parsed(table=table, stop=at, fault=fault, qualities=qualities)
    error = describe(source.path, FASTQ.mark, raw, parsed, origin, offset)
    # Of a record with a wrong quality the row follows the good ones.
    table = table[: len(table) - (fault is Fault.QUALITY)]
    bases = letters.take(int(table[:, LENGTH].sum()))
    gather(raw, table, bases, 0)
    begin = -1 if first < 0 else origin + first
    return RangeRecords(
        begin=begin, stop=origin + at, table=table, letters=bases, error=error, raw=raw[:at]
    )


def _guess(raw: NDArray[np.uint8], start: int, border: int) -> int:
    """Guess where the first record begins from `start` on; -1 if none does before the border."""
    found = HEADER.search(raw.data, max(0, start - 1))
    return found.start(1) if found and found.start(1) < border else -1


class _Text:
    """Content that is read so far.

    raw          uint8[n]
    is_complete  whether nothing follows
    """

    def __init__(self, content: GzipFile, buffers: Buffers, size: int) -> None:
        self._content, self._buffers = content, buffers
        self._room = buffers.take(size)
        self.raw, self.is_complete = self._room[:0], False

    def extend(self, count: int) -> None:
        """Read `count` bytes more, or all that follow."""
        held = len(self.raw)
        if held + count > len(self._room):
            full, self._room = self._room, self._buffers.take(2 * (held + count))
            self._room[:held] = full[:held]
            self._buffers.give(full)
        more = fill(self._content, self._room.data[held : held + count])
        self.raw, self.is_complete = self._room[: held + more], more < count
