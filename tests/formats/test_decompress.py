"""Bytes out of compressed data: all of them or an error, never fewer."""

import gzip
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from support.examples import examples
from support.stored import (
    READS,
    STORED,
    TRUNCATED,
    Store,
    bgzf,
    content,
    inspect_source,
    skippable_frame,
    thirds,
    zstd_frame,
)

from multigpu.errors import InputError
from multigpu.formats.storage import bgzf as batches
from multigpu.formats.storage import decompress
from multigpu.formats.storage.decompress import ZSTD_MAGIC
from multigpu.formats.storage.zstandard import zstd


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """BGZF in many batches."""
    monkeypatch.setattr(batches, "BATCH", 3_000)


@pytest.mark.parametrize("size", [1, 4096, len(READS) - 1, len(READS), len(READS) + 1])
@pytest.mark.parametrize("compression", STORED)
def test_blocks__are_full_and_fresh(store: Store, compression: str, size: int) -> None:
    got = list(inspect_source(store(STORED[compression])).blocks(size))
    assert b"".join(block.tobytes() for block in got) == READS
    assert {len(block) for block in got[:-1]} <= {size}
    assert 1 <= len(got[-1]) <= size
    assert got[0].dtype == np.uint8
    assert len(got) == 1 or not np.shares_memory(got[0], got[1])


def windowed(log: int) -> bytes:
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: log})
    return compressor.compress(READS, compressor.FLUSH_BLOCK) + compressor.flush()


CUT = (READS[:777], READS[777:])
LEGAL = {
    "gzip padded": gzip.compress(READS) + bytes(1000),
    "gzip padded twice": gzip.compress(CUT[0]) + bytes(512) + gzip.compress(CUT[1]) + bytes(3),
    "BGZF padded by one byte": bgzf(READS) + bytes(1),
    "BGZF padded by more than a block": bgzf(READS) + bytes(300_000),
    "BGZF twice": bgzf(READS[:5000]) + bgzf(READS[5000:]),
    "BGZF then gzip": bgzf(READS[:5000], end=b"") + gzip.compress(READS[5000:]),
    "gzip then BGZF": gzip.compress(READS[:5000]) + bgzf(READS[5000:]),
    "empty gzip member first": gzip.compress(b"") + gzip.compress(READS),
    "skippable zstd frame first": skippable_frame(7) + zstd.compress(READS),
    "skippable zstd frame": zstd.compress(CUT[0]) + skippable_frame(0) + zstd.compress(CUT[1]),
    "tiny zstd": b"".join(zstd.compress(READS[a : a + 7]) for a in range(0, len(READS), 7)),
    "empty zstd frame first": zstd.compress(b"") + zstd.compress(READS),
    "zstd with the longest window": windowed(29),
}


@pytest.mark.parametrize("stored", LEGAL.values(), ids=list(LEGAL))
def test_blocks__read_every_legal_form(store: Store, stored: bytes) -> None:
    assert content(store(stored)) == READS


def test_blocks__refuse_a_zstd_window_that_is_too_large_and_a_size_of_nothing(store: Store) -> None:
    one_segment = ZSTD_MAGIC + b"\xe0" + (3 << 30).to_bytes(8, "little") + bytes(20)
    for stored in (windowed(30), one_segment):
        with pytest.raises(InputError, match="its zstd window has more than 536,870,912 bytes"):
            content(store(stored))
    with pytest.raises(ValueError, match=r"blocks of 0 bytes"):
        next(inspect_source(store(READS)).blocks(0))


# Beside what is cut anywhere, see below.
TRUNCATED_DATA = {
    "second gzip member: one byte": gzip.compress(READS) + gzip.compress(READS)[:1],
    "BGZF without its marker, padded": bgzf(READS)[:-28] + bytes(10),
    "BGZF without its marker, padded by more than a block": bgzf(READS)[:-28] + bytes(300_000),
    "BGZF and half a block": bgzf(READS, end=b"") + bgzf(READS)[:40],
    "gzip then BGZF without its marker": gzip.compress(READS) + bgzf(READS, end=b""),
    "second zstd frame: one byte": zstd.compress(READS) + zstd.compress(READS)[:1],
    "skippable zstd frame cut": zstd.compress(READS) + skippable_frame(90)[:-1],
}


@pytest.mark.parametrize("stored", TRUNCATED_DATA.values(), ids=list(TRUNCATED_DATA))
@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_blocks__say_that_the_file_is_truncated(store: Store, stored: bytes, size: int) -> None:
    with pytest.raises(InputError, match=rf"reads: (gzip|zstd) {TRUNCATED}"):
        content(store(stored), size)


def flipped(data: bytes, at: int) -> bytes:
    """One bit is wrong, at `at` from the front or (negative) from the back."""
    damaged = bytearray(data)
    damaged[at] ^= 0x10
    return bytes(damaged)


CORRUPT = r"reads: (gzip|zstd) data is corrupt: \w"


@pytest.mark.parametrize(("stored", "kind"), [
    (flipped(gzip.compress(READS), -6), ""),  # of the checksum
    (flipped(bgzf(READS), 4000), ""),
    (flipped(bgzf(READS), -32), ""),  # of the length of the last block
    (flipped(bgzf(READS), -30), ""),  # which is beyond any block's
    (flipped(zstd_frame(READS), -2), ""),
    (gzip.compress(READS) + READS, "gzip"),
    (gzip.compress(READS) + bytes(9) + READS, "gzip"),
    (gzip.compress(READS) + b"garbage", "gzip"),
    (gzip.compress(READS) + b"\n", "gzip"),
    (bgzf(READS) + b"garbage", "gzip"),
    (bgzf(READS) + bytes(50) + b"garbage", "gzip"),
    (bgzf(READS) + READS, "gzip"),
    (zstd.compress(READS) + READS, "zstd"),
    (zstd.compress(READS) + bytes(9), "zstd"),
])  # fmt: skip
def test_blocks__are_corrupt_or_something_follows(store: Store, stored: bytes, kind: str) -> None:
    follows = f"something that is not {kind} follows the {kind} data"
    with pytest.raises(InputError, match=follows if kind else CORRUPT):
        content(store(stored))


def test_bgzf__cut_where_its_end_begins_like_a_size_is_truncated(store: Store) -> None:
    stored = bgzf(b"@r\nA")  # 4 bytes, as the flags of the next header say
    for stop in range(len(stored) - len(decompress.BGZF_END) + 1, len(stored)):
        with pytest.raises(InputError, match=TRUNCATED):
            content(store(stored[:stop]), 100)


@pytest.mark.parametrize("compression", ["gzip", "bgzf", "zstd"])
@examples(300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_blocks__never_end_early(store: Store, compression: str, data: st.DataObject) -> None:
    """Cut anywhere; only where whole members remain can nobody see it, except with BGZF."""
    reads = READS[: data.draw(st.integers(1, len(READS)))]
    pack: Any = {"gzip": gzip.compress, "zstd": zstd_frame, "bgzf": bgzf}[compression]
    texts = [reads] if compression == "bgzf" else thirds(reads)
    members = [*map(pack, texts)]
    unseen = {len(b"".join(members[:n])): b"".join(texts[:n]) for n in range(1, len(texts))}
    stored = b"".join(members)
    stop = data.draw(st.integers(0, len(stored) - 1))
    path = store(stored[:stop])
    if stop in unseen:
        assert content(path) == unseen[stop]
        return
    with pytest.raises(InputError, match=rf"{TRUNCATED}|is empty|neither FASTQ"):
        content(path, data.draw(st.sampled_from([100, 5000, 1 << 20])))


@pytest.mark.parametrize("compression", ["gzip", "bgzf", "zstd"])
@examples(200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_blocks__never_give_other_data(store: Store, compression: str, data: st.DataObject) -> None:
    """Any byte changed. Some header bytes say nothing about the data, so equal data is right."""
    stored = bytearray(STORED[compression])
    stored[data.draw(st.integers(0, len(stored) - 1))] ^= data.draw(st.integers(1, 255))
    if stored[:1] in (b">", b"@"):
        return  # plain text by its first letter: its next ones are refused as bases
    try:
        got = content(store(bytes(stored)))
    except InputError:
        return
    assert got == READS


def test_threads_of_bgzf__are_gone_when_the_content_is(store: Store) -> None:
    before = set(threading.enumerate())
    assert content(store(bgzf(READS))) == READS
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()
