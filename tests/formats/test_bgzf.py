"""BGZF in batches of blocks: the same as one stream, wherever they end and whatever follows."""

import gzip
import random
import threading
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bgzf_data import bgzf as packed_as_bgzf
from support.bgzf_data import bgzf_block

from multigpu.errors import InputError
from multigpu.formats.storage import bgzf
from multigpu.formats.storage.bgzf import BgzfContent
from multigpu.formats.storage.decompress import BGZF_END, Members

CONTENT = random.Random(5).randbytes(30_000) + bytes(50_000) + b"ACGT" * 5_000


packed = partial(packed_as_bgzf, end=b"")


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


def read(content: BgzfContent | Members, size: int = 7_000) -> bytes:
    found = bytearray()
    room = bytearray(size)
    while count := content.readinto(memoryview(room)):
        found += room[:count]
    return bytes(found)


def outcome(content: BgzfContent | Members) -> tuple[bytes | None, str]:
    try:
        return read(content), ""
    except InputError as error:
        return None, str(error)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bgzf, "BATCH", 3_000)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [100, 1_000, 4_000, 60_000])
def test_content__is_what_was_packed(threads: int, size: int) -> None:
    stored = packed(CONTENT, size) + BGZF_END
    assert read(BgzfContent(Stored(stored), threads)) == CONTENT
    assert read(BgzfContent(Stored(stored, most=17), threads), size=13) == CONTENT


TAILS = {
    "nothing": b"",
    "zeros": bytes(100),
    "many zeros": bytes(20_000),
    "gzip": gzip.compress(b"more"),
    "BGZF once more": packed(b"more", 2) + BGZF_END,
    "garbage": b"garbage" * 20,
    "zeros, then garbage": bytes(50) + b"garbage",
    "half a block": bgzf_block(b"x" * 500)[:40],
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
@pytest.mark.parametrize("end", [BGZF_END, b""], ids=["marker", "no marker"])
def test_content__ends_as_in_one_thread(tail: bytes, end: bytes) -> None:
    stored = packed(CONTENT, 4_000) + end + tail
    assert outcome(BgzfContent(Stored(stored), 2)) == outcome(Members(Stored(stored), "gzip"))


@given(st.integers(0, 6_000), st.sampled_from([1, 3]))
def test_content__cut_anywhere_is_an_error(cut: int, threads: int) -> None:
    stored = packed(CONTENT[:20_000], 1_500) + BGZF_END
    with pytest.raises(InputError, match="the file is truncated"):
        read(BgzfContent(Stored(stored[: len(stored) - 1 - cut]), threads))


@given(st.integers(0, 2**32))
def test_content__with_a_flipped_bit_is_the_same_or_an_error(seed: int) -> None:
    chance = random.Random(seed)
    stored = bytearray(packed(CONTENT[:20_000], 1_500) + BGZF_END)
    stored[chance.randrange(len(stored))] ^= 1 << chance.randrange(8)
    found, problem = outcome(BgzfContent(Stored(bytes(stored)), 2))
    assert found == CONTENT[:20_000] or problem


def test_threads__are_gone_when_the_content_is() -> None:
    before = set(threading.enumerate())
    read(BgzfContent(Stored(packed(CONTENT, 500) + BGZF_END), 3))
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()
