"""Streams read ahead by a thread of their own."""

import gzip
import threading
from collections.abc import Iterator

import pytest
from support.stored import READS, STORED, Store, inspect_source

from multigpu.errors import InputError
from multigpu.formats.storage.read_ahead import ReadAhead


def test_stream__is_the_whole_content_or_says_that_it_is_damaged(store: Store) -> None:
    found = inspect_source(store(STORED["gzip"])).stream(1000)
    assert b"".join(block.tobytes() for block in found) == READS
    found = inspect_source(store(gzip.compress(READS * 5)[:-20])).stream(1000)
    with pytest.raises(InputError, match="ends early"):
        list(found)


def test_stream__that_nobody_takes_ends_when_it_is_closed(store: Store) -> None:
    before = set(threading.enumerate())
    found = inspect_source(store(STORED["gzip"])).stream(500)
    (reading,) = set(threading.enumerate()) - before
    found.close()
    reading.join(5)
    assert not reading.is_alive()
    assert next(iter(found), None) is None


def test_read_ahead__reads_no_more_than_its_depth() -> None:
    given = threading.Semaphore(0)

    def items() -> Iterator[int]:
        for number in range(100):
            given.release()
            yield number

    ahead = ReadAhead(items(), 3)
    assert [next(ahead) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert sum(given.acquire(timeout=0.1) for _ in range(12)) <= 5 + 3 + 1
    ahead.close()
    assert next(ahead, None) is None
