"""The text of whole records, however a source is cut."""

import itertools
from collections.abc import Iterable
from functools import partial

import numpy as np
import pytest
from support.bgzf_data import bgzf
from support.scanned import LAYOUTS, fasta_of, fastq
from support.stored import Store

from multigpu.formats.sequences.pairs import PairedSource
from multigpu.formats.sequences.pieces import TextInMemory
from multigpu.formats.sequences.reader import SpanReader
from multigpu.formats.sequences.registry import SEQUENCES
from multigpu.formats.sequences.spans import BgzfSpan, FileSpan, Span
from multigpu.formats.sequences.streams import OpenStreams, stream_blocks
from multigpu.formats.storage.sources import Source, inspect_source

OFFSET = 33
TEXTS = {"plain": fastq(), **LAYOUTS, "fasta": fasta_of().replace(b"\n", b"\n\n")}


def texts_of(source: Source, spans: Iterable[Span]) -> list[bytes]:
    """Return the text of each record in the spans of a source."""
    found = []
    for pieces in map(reader_of(source).read, spans):
        assert pieces.error is None
        found += pieces.text.windows(*pieces.borders())
    return found


def reader_of(*sources: Source) -> SpanReader:
    streams = OpenStreams(sources, OFFSET)
    room = partial(np.empty, dtype=np.uint8)
    return SpanReader(sources, streams, overlap=0, phred_offset=OFFSET, allocate=room)


@pytest.mark.parametrize("layout", TEXTS)
@pytest.mark.parametrize("pair", [False, True])
def test_text_of_records__does_not_depend_on_cuts(store: Store, layout: str, pair: bool) -> None:
    text = TEXTS[layout]
    source = inspect_source(store(text), SEQUENCES)
    if pair:
        source = PairedSource(source, inspect_source(store(text, "mates"), SEQUENCES))
    found = texts_of(source, stream_blocks(0, source, 1000, OFFSET))
    assert b"".join(found[:: 1 + pair]) == text.lstrip()
    for size in range(1, 60):
        assert texts_of(source, stream_blocks(0, source, size, OFFSET)) == found
    if source.layout == "fastq":
        assert texts_of(source, [FileSpan(0, 0, 0, len(text), exact=True)]) == found


def test_memory__of_a_span_is_given_to_one_other(store: Store) -> None:
    alone, *files = (
        inspect_source(store(text, name), SEQUENCES)
        for name, text in (("bgzf", bgzf(fastq())), ("one", fastq()), ("two", fastq()))
    )
    reader = reader_of(alone, PairedSource(*files))
    spans = [BgzfSpan(0, 0, 0, 300, exact=True), FileSpan(1, 0, 0, 300, exact=True)]
    for span in spans:
        reader.give_back(reader.read(span))
    texts = [reader.read(span).text for span in 2 * spans]
    for one, two in itertools.combinations(texts, 2):
        assert isinstance(one, TextInMemory)
        assert isinstance(two, TextInMemory)
        assert not np.shares_memory(one.raw, two.raw)
