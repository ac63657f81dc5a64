"""FASTQ in BGZF, cut at any block: the records, positions and errors of the plain text."""

import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from support.examples import examples
from support.stored import READS, Store, bgzf, inspect_source

from multigpu.errors import InputError
from multigpu.formats.sequences import streams
from multigpu.formats.sequences.pieces import Pieces
from multigpu.formats.sequences.ranges import bgzf_spans, read_bgzf
from multigpu.formats.sequences.spans import BgzfSpan
from multigpu.formats.storage import bgzf as blocks
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text.records import LENGTH, NAME, NAME_END
from multigpu.kernels.device.buffers import Buffers

WRAPPED = b"".join(
    b"@@r%d x\n%b\n%b\n+\n%b\n%b\n\n" % (n, b"ACGTAGATT", b"TTACG", b"@IIIIIIII", b"@@III")
    for n in range(150)
)
TEXTS = {
    "reads": READS[: READS.index(b"@read150\n")],
    "wrapped": WRAPPED,
    "CRLF": WRAPPED.replace(b"\n", b"\r\n"),
    "qualities of @": b"".join(b"@r%d\nACGTA\n+\n@@@@@\n" % n for n in range(400)),
    "one long": b"@long\n%b\n+\n%b\n" % (b"ACGT" * 9000, b"I" * 36_000)
    + READS[: READS.index(b"@read5\n")],
}


def _then_gzip(text: bytes, block: int) -> bytes:
    return bgzf(text[:3333], block=block, end=b"") + gzip.compress(text[3333:])


ENDS: dict[str, Callable[[bytes, int], bytes]] = {
    "BGZF": lambda text, block: bgzf(text, block=block),
    "twice": lambda text, block: bgzf(text[:999], block=block) + bgzf(text[999:], block=block),
    "padded": lambda text, block: bgzf(text, block=block) + bytes(333),
    "then gzip": _then_gzip,
}


def read(path: str, span: BgzfSpan) -> Pieces:
    source = Source(path, Path(path).stat().st_size, "bgzf", "fastq")
    buffers = Buffers(lambda size: np.empty(size, np.uint8))
    return read_bgzf(source, span, offset=33, letters=buffers, texts=buffers)


def names_of(found: Pieces) -> list[tuple[bytes, int]]:
    names = found.text.windows(found.table[:, NAME], found.table[:, NAME_END])
    return list(zip(names, found.table[:, LENGTH].tolist(), strict=True))


def read_all(path: str, chunk_bytes: int) -> Sequence[Pieces]:
    """Return the parts of a file, of which those that begin elsewhere are read once more."""
    source, parts, reached = inspect_source(path), [], 0
    assert source.has_ranges
    for span in bgzf_spans(0, path, source.size or 0, chunk_bytes):
        part = read(path, span)
        is_empty = not len(part.table) and part.error is None
        if part.begin != reached and not (reached >= span.stop and is_empty):
            part = read(path, replace(span, start=reached, exact=True))
            assert part.begin == reached
        if part.begin == reached:
            reached = part.stop
        parts.append(part)
        if part.error:
            break
    return parts


@pytest.mark.parametrize("text", TEXTS)
@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    end=st.sampled_from(list(ENDS)),
    block=st.integers(13, 3000),
    chunk_bytes=st.integers(200, 9000),
    more=st.sampled_from([1, 100, streams.MORE]),
)
def test_ranges__have_every_record_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, text: str, end: str, block: int,
    chunk_bytes: int, more: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(streams, "MORE", more)
    stored = ENDS[end](TEXTS[text], block)
    parts = read_all(store(stored), chunk_bytes)
    whole = read(store(bgzf(TEXTS[text])), BgzfSpan(0, 0, 0, len(TEXTS[text]), exact=True))
    assert [row for part in parts for row in names_of(part)] == names_of(whole)
    assert b"".join(part.letters.tobytes() for part in parts) == whole.letters.tobytes()
    assert not any(part.error for part in parts)


def test_ranges__are_mostly_guessed_right(store: Store) -> None:
    path = store(bgzf(TEXTS["reads"], block=700))
    spans = list(bgzf_spans(0, path, inspect_source(path).size or 0, 2000))
    parts = [read(path, span) for span in spans]
    pairs = [(part.stop, after.begin) for part, after in pairwise(parts) if len(after.table)]
    assert len(pairs) > 6
    assert all(stop == begin for stop, begin in pairs)


@pytest.mark.parametrize(
    ("old", "new"), [(b"@read77\n", b"read77\n"), (b"\n+\n", b"\n-\n"), (b"A\n+", b"A\nA\n+")]
)
def test_ranges__have_the_first_error_with_its_place(store: Store, old: bytes, new: bytes) -> None:
    text = READS.replace(old, new, 1) if old != b"\n+\n" else READS[:-60] + b"x"
    whole = read(store(bgzf(text)), BgzfSpan(0, 0, 0, len(text), exact=True))
    assert whole.error is not None
    found = read_all(store(bgzf(text, block=500)), 3000)[-1].error
    assert f"{found}" == f"{whole.error}"


@pytest.mark.parametrize("at", [3000, 9000, 15_000])
def test_ranges__of_damaged_data_are_an_error(store: Store, at: int) -> None:
    good = bgzf(READS, block=500)
    path = store(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
    with pytest.raises(InputError, match=r"gzip|a record should"):
        raise next((part.error for part in read_all(path, 3000) if part.error), ValueError)


TAILS = {
    "nothing": b"",
    "zeros": bytes(99),
    "gzip": gzip.compress(b"ACGT"),  # with the time in it
    "a block that is cut": bgzf(b"ACGT")[:30],
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=list(TAILS))
@pytest.mark.parametrize("at_a_time", [2, 3, 512])
def test_borders__are_those_of_all_whole_blocks(
    at_a_time: int, tail: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, path = bgzf(READS[:4000], block=300), tmp_path / "reads.fastq.gz"
    path.write_bytes(stored + tail)
    borders, left = [(0, 0)], stored
    while left:
        block = zlib.decompressobj(31)
        content = borders[-1][1] + len(block.decompress(left))
        left = block.unused_data
        borders.append((len(stored) - len(left), content))
    monkeypatch.setattr(blocks, "BORDERS", at_a_time)
    assert list(blocks.block_borders(str(path))) == borders
