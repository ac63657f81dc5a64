"""Streams read ahead by a thread of their own."""

import gzip
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.stored import inspect_source

from multigpu.errors import InputError
from multigpu.formats.storage.read_ahead import LARGEST_BLOCK, ReadAhead


@pytest.fixture(scope="module")
def reads() -> bytes:
    """Return more than several blocks hold."""
    return b"".join(b"@r%d\nACGTACGT\n+\nIIIIIIII\n" % number for number in range(400_000))


@pytest.fixture(scope="module")
def packed(reads: bytes, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("packed") / "reads.fq.gz"
    path.write_bytes(gzip.compress(reads, 1))
    return str(path)


@pytest.mark.parametrize("size", [LARGEST_BLOCK, 1 << 20])
def test_stream__is_the_whole_content(reads: bytes, packed: str, size: int) -> None:
    found = inspect_source(packed).stream(size)
    assert b"".join(block.tobytes() for block in found) == reads


def test_stream__that_is_damaged_says_so_where_it_is_taken(packed: str, tmp_path: Path) -> None:
    damaged = tmp_path / "cut.fq.gz"
    damaged.write_bytes(Path(packed).read_bytes()[:-20])
    found = inspect_source(str(damaged)).stream(LARGEST_BLOCK)
    with pytest.raises(InputError, match="ends early"):
        list(found)


def test_stream__that_nobody_takes_ends_when_it_is_closed(packed: str) -> None:
    before = set(threading.enumerate())
    found = inspect_source(packed).stream(1000)
    (reading,) = set(threading.enumerate()) - before
    found.close()
    reading.join(5)
    assert not reading.is_alive()


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


def test_read_ahead__ends_once_and_for_all() -> None:
    ahead = ReadAhead([1, 2], 5)
    assert list(ahead) == [1, 2]
    assert next(ahead, None) is None
