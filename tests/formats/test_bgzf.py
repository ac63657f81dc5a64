"""BGZF by several threads, in small batches; `test_decompress` has all that may follow."""

import threading
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bgzf_data import bgzf as packed

from multigpu.errors import InputError
from multigpu.formats.storage import bgzf
from multigpu.formats.storage.bgzf import BgzfContent

CONTENT = Random(5).randbytes(10_000) + bytes(50_000) + b"ACGT" * 5_000


class Stored:
    """A file that gives at most `most` bytes at a time."""

    path = "reads.fq.gz"

    def __init__(self, data: bytes, most: int = 1 << 20) -> None:
        self._data, self._at, self._most = data, 0, most

    def readinto(self, out: memoryview) -> int:
        piece = self._data[self._at : self._at + min(len(out), self._most)]
        out[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def read(content: BgzfContent, size: int = 7_000) -> bytes:
    found = bytearray()
    room = bytearray(size)
    while count := content.readinto(memoryview(room)):
        found += room[:count]
    return bytes(found)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bgzf, "BATCH", 3_000)


@given(
    st.integers(0, 2**32), st.booleans(), st.sampled_from([1, 2, 5]), st.sampled_from([60, 1 << 20])
)
def test_content__is_what_was_packed_or_with_a_flipped_bit_perhaps_an_error(
    seed: int, is_flipped: bool, threads: int, most: int
) -> None:
    chance = Random(seed)
    stored = bytearray(packed(CONTENT, chance.choice([500, 4_000, 60_000])))
    stored[chance.randrange(len(stored))] ^= is_flipped << chance.randrange(8)
    try:
        found = read(BgzfContent(Stored(bytes(stored), most), threads), chance.choice([97, 7_000]))
    except InputError:
        assert is_flipped
        return
    assert found == CONTENT


def test_threads__are_gone_when_the_content_is() -> None:
    before = set(threading.enumerate())
    read(BgzfContent(Stored(packed(CONTENT, 500)), 3))
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()
