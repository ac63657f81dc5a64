"""Streams cut at the borders of records, and those that a process has open."""

import gzip
from collections.abc import Generator

import numpy as np
import pytest
from support.stored import READS, Store, inspect_source

from multigpu.errors import Failure
from multigpu.formats.sequences.spans import StreamSpan
from multigpu.formats.sequences.streams import OpenStreams, block_spans
from multigpu.formats.storage.sources import Block


def test_streams__a_record_that_does_not_fit_the_memory_is_said(store: Store) -> None:
    def content() -> Generator[Block]:
        yield np.frombuffer(b"@r\n" + b"A" * 97, np.uint8)
        raise MemoryError

    found = block_spans(0, inspect_source(store(READS)), content(), 33)
    with pytest.raises(Failure, match="reads: a record of more than 100 bytes does not fit"):
        next(found)


def test_open_streams__give_every_block_to_whoever_asks(store: Store) -> None:
    def names(number: int, first: int = 0) -> list[bytes] | None:
        block = streams.read(StreamSpan(0, number, first, 20))
        return None if block is None else [block.raw.tobytes()]

    sources = [inspect_source(store(gzip.compress(READS[:20_000])))]
    streams = OpenStreams(sources, 33)
    each = [names(number) for number in range(200)]
    assert each[50] is not None
    assert each[-1] is None
    streams = OpenStreams(sources, 33)
    assert [names(number) for number in (3, 1, 0, 2)] == [each[number] for number in (3, 1, 0, 2)]
    assert names(1) == each[1]  # a worker that failed may have taken it
    assert names(20) == each[20]
    streams = OpenStreams(sources, 33)
    assert [names(number, 30) for number in (31, 30)] == [each[31], each[30]]
