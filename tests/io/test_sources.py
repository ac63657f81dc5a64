"""Paths, patterns and pipes to sources; all the bytes out of them or an error, never fewer."""

import gzip
import io
import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bgzf_data
import fsspec
import numpy as np
import pytest
from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multigpu.errors import InputError
from multigpu.io import decompress, inlets, sources
from multigpu.io.sources import (
    blocks,
    expand,
    fingerprint,
    inspect,
    opened,
    read_into,
)

ROOT = Path(__file__).resolve().parents[2]
TRUNCATED = "data ends early: the file is truncated"


def fastq(reads: int, seed: int = 1) -> bytes:
    draw = random.Random(seed)
    lines = []
    for number in range(reads):
        letters = "".join(draw.choices("ACGT", k=50))
        quality = "".join(draw.choices("!+5?I", k=50))
        lines.append(f"@read{number}\n{letters}\n+\n{quality}\n")
    return "".join(lines).encode()


bgzf = partial(bgzf_data.bgzf, block=4000)


def zstd_frame(data: bytes) -> bytes:
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


def thirds(data: bytes) -> list[bytes]:
    step = -(-len(data) // 3)
    return [data[at : at + step] for at in range(0, len(data), step)]


def skippable_frame(size: int) -> bytes:
    return b"\x50\x2a\x4d\x18" + struct.pack("<I", size) + bytes(range(size))


READS = fastq(400)
STORED = {
    "none": READS,
    "gzip": b"".join(map(gzip.compress, thirds(READS))),
    "bgzf": bgzf(READS),
    "zstd": b"".join(map(zstd_frame, thirds(READS))),
}


@pytest.fixture(autouse=True)
def no_pipes_left() -> Iterator[None]:
    yield
    while inlets.pipes:
        inlets.pipes.popitem()[1].close()


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., str]:
    def write(data: bytes, name: str = "reads") -> str:
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return write


@dataclass
class Standard:
    """What stands for sys.stdin."""

    buffer: object


def content(path: str, size: int = 1000) -> bytes:
    return b"".join(block.tobytes() for block in blocks(inspect(path), size))


# ---- expand -----------------------------------------------------------------------------------


def test_expand__keeps_files_pipes_and_urls_in_the_order_given(store: Callable[..., str]) -> None:
    one, two = store(b"x", "one.fq"), store(b"x", "two")
    paths = [two, "-", "s3://bucket/a*.fq", one, two]
    assert expand(paths) == paths


def test_expand__takes_the_sequence_files_of_a_directory_by_name(tmp_path: Path) -> None:
    wanted = ["a.fa", "b.fasta.gz", "c.FNA.bgz", "d.fq.zst", "e.fastq"]
    others = ["notes.txt", "f.fq.bz2", ".hidden.fq", "g.fq.part", "fq"]
    for name in reversed(wanted + others):
        (tmp_path / name).touch()
    (tmp_path / "directory.fq").mkdir()
    assert expand([str(tmp_path)]) == [str(tmp_path / name) for name in wanted]


def test_expand__names_what_cannot_be_opened_in_a_directory(tmp_path: Path) -> None:
    (tmp_path / "good.fq").touch()
    (tmp_path / "loop.fq").symlink_to("loop.fq")
    with pytest.raises(InputError, match=r"/loop\.fq: cannot be read: too many levels"):
        expand([str(tmp_path)])
    (tmp_path / "loop.fq").unlink()
    (tmp_path / "gone.fq").symlink_to("nowhere")
    with pytest.raises(InputError, match=r"/gone\.fq: cannot be read: there is no such file"):
        expand([str(tmp_path)])


def test_expand__writes_paths_in_a_directory_as_one_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.fq").touch()
    monkeypatch.chdir(tmp_path / "a")
    given = [".", "./", "../a//", f"{tmp_path}/a/", str(tmp_path / "a")]
    assert expand(given) == ["b.fq", "b.fq", "../a/b.fq", *2 * [str(tmp_path / "a" / "b.fq")]]


def test_expand__refuses_a_directory_without_sequence_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"the directory has no sequence files"):
        expand([str(tmp_path)])


def test_expand__sorts_what_a_pattern_matches(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.fq", "a.fq", "sub/c.fq", "d.txt"):
        (tmp_path / name).touch()
    assert expand([f"{tmp_path}/*.fq"]) == [f"{tmp_path}/a.fq", f"{tmp_path}/b.fq"]
    assert expand([f"{tmp_path}/**/c.fq"]) == [f"{tmp_path}/sub/c.fq"]
    assert expand([f"{tmp_path}/s*"]) == [f"{tmp_path}/sub/c.fq"]


def test_expand__prefers_the_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    for name in ("a[1].fq", "a1.fq"):
        (tmp_path / name).touch()
    assert expand([f"{tmp_path}/a[1].fq"]) == [f"{tmp_path}/a[1].fq"]


def test_expand__refuses_a_pattern_without_a_match(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\*\.fq: no file matches this pattern"):
        expand([f"{tmp_path}/*.fq"])


@pytest.mark.parametrize("name", ["absent.fq", "file/absent.fq", "zero\0byte.fq", "n" * 300])
def test_expand__refuses_what_is_not_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be read: "):
        expand([str(tmp_path / name)])


def test_expand__refuses_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "link.fq").symlink_to(tmp_path / "absent.fq")
    with pytest.raises(InputError, match=r"link\.fq: cannot be read: there is no such file"):
        expand([f"{tmp_path}/*.fq"])


def test_expand__refuses_a_file_without_permission(
    store: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store(b"x")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read everything
    with pytest.raises(InputError, match=r"reads: cannot be read: permission denied"):
        expand([path])


def test_expand__takes_standard_input_once() -> None:
    with pytest.raises(InputError, match=r"-: standard input can be given only once"):
        expand(["-", "-"])


# ---- inspect ----------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", STORED)
def test_inspect__tells_the_compression_by_content(
    store: Callable[..., str], compression: str
) -> None:
    path = store(STORED[compression], "misleading.txt")
    source = inspect(path)
    assert source == sources.Source(path, len(STORED[compression]), compression, "fastq")
    assert source.cuttable == (compression == "none")


@pytest.mark.parametrize("blank", [b"", b"\n", b" \r\n\t\n", b"\n" * 200_000])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bgzf, zstd.compress])
def test_inspect__tells_the_layout_by_the_first_character_that_is_not_blank(
    store: Callable[..., str], compress: Callable[[bytes], bytes], blank: bytes
) -> None:
    assert inspect(store(compress(blank + b">name\nACGT\n"))).layout == "fasta"
    assert inspect(store(compress(blank + READS))).layout == "fastq"


@pytest.mark.parametrize("data", [b"", b"\n \r\n", b"\n" * 200_000])
@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, lambda data: bgzf(data), zstd.compress, skippable_frame]
)
def test_inspect__refuses_what_is_empty(
    store: Callable[..., str], compress: Callable[[bytes], bytes], data: bytes
) -> None:
    stored = skippable_frame(len(data) % 100) if compress is skippable_frame else compress(data)
    with pytest.raises(InputError, match=r"reads: is empty$"):
        inspect(store(stored))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"ACGT\nACGT", "neither FASTQ nor FASTA: begins with 'ACGT'"),
        (b"\x1f", "neither FASTQ nor FASTA: begins with"),
        (b"\xef\xbb\xbf@read\n", "neither FASTQ nor FASTA: begins with '\\\\ufeff@read'"),
        (b"x" * 1000, "begins with 'x{60}'"),
        (gzip.compress(b"name\tvalue\n", mtime=0), "begins with 'name\\\\tvalue'"),
        (b"@read\rACGT\r+\rIIII\r", "its lines end with carriage returns: convert them"),
        (gzip.compress(b"\r>read\rACGT\r\r", mtime=0), "its lines end with carriage returns"),
        (b"BZh91AY&SY", "is compressed with bzip2"),
        (b"\xfd7zXZ\x00\x00", "is compressed with xz"),
        (b"PK\x03\x04", "is a zip archive"),
        (bgzf(b"BAM\x01\0\0\0\0"), "is a BAM file"),
        (gzip.compress(gzip.compress(READS, mtime=0), mtime=0), "is compressed twice"),
        (gzip.compress(zstd.compress(READS), mtime=0), "is compressed twice"),
    ],
)
def test_inspect__refuses_other_content_and_says_how_it_begins(
    store: Callable[..., str], data: bytes, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        inspect(store(data))


def test_inspect__refuses_a_directory_and_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read: is a directory"):
        inspect(str(tmp_path))
    with pytest.raises(InputError, match=r"absent: cannot be read: there is no such file"):
        inspect(str(tmp_path / "absent"))


def test_inspect__sees_at_once_that_the_bgzf_end_marker_is_missing(
    store: Callable[..., str],
) -> None:
    with pytest.raises(InputError, match=rf"reads: gzip {TRUNCATED} \(the BGZF end marker"):
        inspect(store(bgzf(READS, end=b"")))


def test_sources__load_no_library_before_it_is_needed() -> None:
    code = (
        "import sys, multigpu.io.sources as s, multigpu.io.writers\n"
        "loaded = {'isal', 'backports.zstd', 'fsspec', 'pyarrow'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


# ---- blocks: good data ------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4096, len(READS) - 1, len(READS), len(READS) + 1])
@pytest.mark.parametrize("compression", STORED)
def test_blocks__are_full_but_for_the_last_and_fresh(
    store: Callable[..., str], compression: str, size: int
) -> None:
    got = list(blocks(inspect(store(STORED[compression])), size))
    assert b"".join(block.tobytes() for block in got) == READS
    assert {len(block) for block in got[:-1]} <= {size}
    assert 1 <= len(got[-1]) <= size
    assert got[0].dtype == np.uint8
    assert len(got) == 1 or not np.shares_memory(got[0], got[1])


@pytest.mark.parametrize(
    "stored",
    [
        gzip.compress(READS) + bytes(1000),
        gzip.compress(READS[:777]) + bytes(512) + gzip.compress(READS[777:]) + bytes(3),
        bgzf(READS) + bytes(1),
        bgzf(READS) + bytes(300_000),
        bgzf(READS[:5000]) + bgzf(READS[5000:]),
        bgzf(READS[:5000], end=b"") + gzip.compress(READS[5000:]),
        gzip.compress(READS[:5000]) + bgzf(READS[5000:]),
        gzip.compress(b"") + gzip.compress(READS),
        skippable_frame(7) + zstd.compress(READS),
        zstd.compress(READS[:9]) + skippable_frame(0) + zstd.compress(READS[9:]),
        b"".join(zstd.compress(READS[at : at + 7]) for at in range(0, len(READS), 7)),
        zstd.compress(b"") + zstd.compress(READS),
    ],
    ids=[
        "gzip padded",
        "gzip padded between and after",
        "BGZF padded by one byte",
        "BGZF padded by more than a block",
        "BGZF twice",
        "BGZF then gzip",
        "gzip then BGZF",
        "empty gzip member first",
        "skippable zstd frame first",
        "skippable zstd frame between",
        "tiny zstd frames",
        "empty zstd frame first",
    ],
)
def test_blocks__read_every_legal_form(store: Callable[..., str], stored: bytes) -> None:
    assert content(store(stored)) == READS


def test_blocks__read_zstd_with_the_longest_window(store: Callable[..., str]) -> None:
    options = {zstd.CompressionParameter.window_log: 31}
    compressor = zstd.ZstdCompressor(options=options)
    stored = compressor.compress(READS, compressor.FLUSH_BLOCK) + compressor.flush()
    assert content(store(stored)) == READS


def test_blocks__refuse_a_size_of_nothing(store: Callable[..., str]) -> None:
    with pytest.raises(ValueError, match=r"blocks of 0 bytes"):
        next(blocks(inspect(store(READS)), 0))


# ---- blocks: damaged data ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "stored",
    [
        gzip.compress(READS)[:-1],
        gzip.compress(READS)[:-8],
        gzip.compress(READS)[:-9],
        gzip.compress(READS)[:7],
        gzip.compress(READS)[:2],
        gzip.compress(READS) + gzip.compress(READS)[:1],
        gzip.compress(READS) + gzip.compress(READS)[:9],
        gzip.compress(READS) + gzip.compress(READS)[:-4],
        bgzf(READS)[:-1],
        bgzf(READS)[:-28],
        bgzf(READS)[:-28] + bytes(10),
        bgzf(READS)[:-28] + bytes(300_000),
        gzip.compress(READS) + bgzf(READS, end=b""),
        zstd.compress(READS)[:-1],
        zstd.compress(READS)[:5],
        zstd.compress(READS) + zstd.compress(READS)[:1],
        zstd.compress(READS) + zstd.compress(READS)[:-1],
        zstd.compress(READS) + skippable_frame(90)[:-1],
    ],
    ids=[
        "gzip trailer cut by one",
        "gzip without its trailer",
        "gzip data cut",
        "gzip header cut",
        "gzip magic only",
        "second gzip member: one byte",
        "second gzip member: header cut",
        "second gzip member: trailer cut",
        "BGZF marker cut by one",
        "BGZF without its marker",
        "BGZF without its marker, padded",
        "BGZF without its marker, padded by more than a block",
        "gzip then BGZF without its marker",
        "zstd checksum cut",
        "zstd header cut",
        "second zstd frame: one byte",
        "second zstd frame cut",
        "skippable zstd frame cut",
    ],
)
@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_blocks__say_that_the_file_is_truncated(
    store: Callable[..., str], stored: bytes, size: int
) -> None:
    with pytest.raises(InputError, match=rf"reads: (gzip|zstd) {TRUNCATED}"):
        content(store(stored), size)


def flipped(data: bytes, at: int) -> bytes:
    """One bit is wrong, at `at` from the front or (negative) from the back."""
    damaged = bytearray(data)
    damaged[at] ^= 0x10
    return bytes(damaged)


@pytest.mark.parametrize(
    "stored",
    [
        flipped(gzip.compress(READS), -6),
        flipped(gzip.compress(READS), -2),
        flipped(gzip.compress(READS), 5000),
        flipped(bgzf(READS), 4000),
        flipped(zstd_frame(READS), 5000),
        flipped(zstd_frame(READS), -2),
    ],
    ids=["gzip CRC", "gzip length", "gzip data", "BGZF data", "zstd data", "zstd checksum"],
)
def test_blocks__say_that_the_data_is_corrupt(store: Callable[..., str], stored: bytes) -> None:
    with pytest.raises(InputError, match=r"reads: (gzip|zstd) data is corrupt: \w"):
        content(store(stored))


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (gzip.compress(READS) + READS, "gzip"),
        (gzip.compress(READS) + bytes(9) + READS, "gzip"),
        (gzip.compress(READS) + b"garbage", "gzip"),
        (gzip.compress(READS) + b"\n", "gzip"),
        (bgzf(READS) + b"garbage", "gzip"),
        (bgzf(READS) + READS, "gzip"),
        (zstd.compress(READS) + READS, "zstd"),
        (zstd.compress(READS) + bytes(9), "zstd"),
    ],
)
def test_blocks__say_that_something_else_follows(
    store: Callable[..., str], stored: bytes, kind: str
) -> None:
    with pytest.raises(InputError, match=f"something that is not {kind} follows the {kind} data"):
        content(store(stored))


@pytest.mark.parametrize("compression", ["gzip", "bgzf", "zstd"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_blocks__never_end_early_without_an_error(
    store: Callable[..., str], compression: str, data: st.DataObject
) -> None:
    """Cut anywhere; only where whole members remain can nobody see it, except with BGZF."""
    reads = READS[: data.draw(st.integers(1, len(READS)))]
    if compression == "bgzf":
        members, unseen = [bgzf(reads)], {}
    else:
        members = [
            {"gzip": gzip.compress, "zstd": zstd_frame}[compression](x) for x in thirds(reads)
        ]
        unseen = {len(b"".join(members[:n])): b"".join(thirds(reads)[:n]) for n in (1, 2)}
    stored = b"".join(members)
    stop = data.draw(st.integers(0, len(stored) - 1))
    path = store(stored[:stop])
    if stop in unseen:
        assert content(path) == unseen[stop]
        return
    with pytest.raises(InputError, match=rf"{TRUNCATED}|is empty|neither FASTQ"):
        content(path, data.draw(st.sampled_from([100, 5000, 1 << 20])))


@pytest.mark.parametrize("compression", ["gzip", "bgzf", "zstd"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(data=st.data())
def test_blocks__never_give_other_data_without_an_error(
    store: Callable[..., str], compression: str, data: st.DataObject
) -> None:
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


@given(
    stored=st.lists(st.sampled_from([b"\0", bytes(9), b"x", b"yz", bytes(40) + b"x"])),
    cuts=st.lists(st.integers(0, 200)),
)
def test_end_kept__is_the_last_bytes_without_zeros_however_they_come(
    stored: list[bytes], cuts: list[int]
) -> None:
    data = b"".join(stored)
    kept = decompress.EndKept(io.BytesIO(data))
    for size in [*cuts, len(data)]:
        if size:
            kept.readinto(memoryview(bytearray(size)))
    assert kept.end == data.rstrip(b"\0")
    assert kept.zeros == len(data) - len(kept.end)


# ---- pipes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", STORED)
def test_stdin__loses_nothing_to_inspect(monkeypatch: pytest.MonkeyPatch, compression: str) -> None:
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(STORED[compression])))
    source = inspect("-")
    assert source == inspect("-")
    assert (source.size, source.compression, source.cuttable) == (None, compression, False)
    assert b"".join(block.tobytes() for block in blocks(source, 1000)) == READS


@pytest.mark.parametrize("stored", [STORED["gzip"][:-1], STORED["bgzf"][:-28], STORED["zstd"][:-1]])
def test_stdin__that_ends_early_is_an_error(monkeypatch: pytest.MonkeyPatch, stored: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(stored)))
    with pytest.raises(InputError, match=TRUNCATED):
        content("-")


def test_stdin__can_be_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(READS)))
    source = inspect("-")
    assert len(list(blocks(source, 1 << 20))) == 1
    with pytest.raises(InputError, match=r"-: a pipe can be read only once"):
        next(blocks(source, 1000))


def test_stdin__of_an_earlier_run_in_this_process_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(b">old\nA\n")))
    inspect("-")
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(READS)))
    assert content("-") == READS


def test_stdin__closed_or_empty_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match=r"-: standard input is closed"):
        inspect("-")
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(b"")))
    with pytest.raises(InputError, match=r"-: is empty"):
        inspect("-")


@pytest.mark.parametrize("compression", ["none", "bgzf"])
def test_stdin__of_a_slow_writer_is_read_to_its_end(compression: str) -> None:
    """A non-blocking pipe has "nothing yet" between the pieces, which is not its end."""
    code = (
        "import os, sys\n"
        "os.set_blocking(0, False)\n"
        "from multigpu.io.sources import inspect, blocks\n"
        "for block in blocks(inspect('-'), 10_000): sys.stdout.buffer.write(block)\n"
    )
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        assert process.stdin
        assert process.stdout
        stored = STORED[compression]
        for start, stop in ((0, 1), (1, 700), (700, len(stored))):
            process.stdin.write(stored[start:stop])
            process.stdin.flush()
            threading.Event().wait(0.2)
        process.stdin.close()
        assert process.stdout.read() == READS
    assert process.returncode == 0


def test_fifo__as_from_process_substitution_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(STORED["gzip"],))
    writer.start()
    assert expand([str(path)]) == [str(path)]
    assert content(str(path)) == READS
    writer.join(10)


def test_fifo__refused_by_inspect_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"no reads",))
    writer.start()
    with pytest.raises(InputError, match=r"fifo: neither FASTQ nor FASTA"):
        inspect(str(path))
    writer.join(10)
    assert not inlets.pipes


# ---- URLs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", STORED)
def test_url__is_read_like_a_file(compression: str) -> None:
    url = f"memory://sources/{compression}"
    fsspec.filesystem("memory").pipe_file(url, STORED[compression])
    source = inspect(url)
    assert (source.size, source.compression) == (len(STORED[compression]), compression)
    assert not source.cuttable
    assert b"".join(block.tobytes() for block in blocks(source, 1000)) == READS


@pytest.mark.parametrize("stored", [STORED["gzip"][:-1], STORED["bgzf"][:-28], STORED["zstd"][:-1]])
def test_url__that_ends_early_is_an_error(stored: bytes) -> None:
    fsspec.filesystem("memory").pipe_file("memory://sources/cut", stored)
    with pytest.raises(InputError, match=f"memory://sources/cut: .* {TRUNCATED}"):
        content("memory://sources/cut")


def test_url__whose_plain_text_breaks_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.filesystem("memory").pipe_file("memory://sources/broken", READS)
    source = inspect("memory://sources/broken")
    fsspec.filesystem("memory").pipe_file("memory://sources/broken", READS[:5000])
    with pytest.raises(InputError, match=rf"ends early: 5000 of {len(READS)} bytes could be read"):
        list(blocks(source, 1000))


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("memory://sources/absent", "there is no such file"),
        ("nowhere://sources/absent", "Protocol not known: nowhere"),
    ],
)
def test_url__that_cannot_be_opened_is_an_error(url: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"{url}: cannot be read: {problem}"):
        inspect(url)


# ---- ranges and fingerprints ------------------------------------------------------------------


@pytest.mark.parametrize(("start", "size"), [(0, 10), (777, 5000), (0, len(READS))])
def test_read_into__fills_the_array_from_anywhere(
    store: Callable[..., str], start: int, size: int
) -> None:
    out = np.empty(size, np.uint8)
    assert read_into(store(READS), start, out) == size
    assert out.tobytes() == READS[start : start + size]


def test_read_into__gives_fewer_bytes_at_the_end(store: Callable[..., str]) -> None:
    out = np.empty(100, np.uint8)
    path = store(READS)
    assert read_into(path, len(READS) - 30, out) == 30
    assert out[:30].tobytes() == READS[-30:]
    assert read_into(path, len(READS) + 5, out) == 0


def test_read_into__names_the_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.fq: cannot be read: there is no such file"):
        read_into(str(tmp_path / "gone.fq"), 0, np.empty(1, np.uint8))


@pytest.mark.parametrize("at", [0, 5 << 20, (10 << 20) - 1])
def test_fingerprint__sees_a_change_at_the_front_in_the_middle_and_at_the_end(
    store: Callable[..., str], at: int
) -> None:
    data = bytearray(10 << 20)
    before = fingerprint(store(bytes(data)))
    assert before.same_content(fingerprint(store(bytes(data))))
    data[at] = 1
    after = fingerprint(store(bytes(data)))
    assert before.size == after.size == 10 << 20
    assert not before.same_content(after)


@pytest.mark.parametrize("size", [0, 1, 1000, 1 << 20, (1 << 20) + 1])
def test_fingerprint__of_a_small_file_covers_all_of_it(
    store: Callable[..., str], size: int
) -> None:
    prints = {fingerprint(store(bytes(size))).digest}
    for at in range(0, size, max(1, size // 7)):
        prints.add(fingerprint(store(bytes(at) + b"\1" + bytes(size - at - 1))).digest)
    assert len(prints) == 1 + len(range(0, size, max(1, size // 7)))


def test_fingerprint__is_for_regular_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"only a regular file on this machine"):
        fingerprint("/dev/null")
    with pytest.raises(InputError, match=r"there is no such file"):
        fingerprint(str(tmp_path / "absent"))


# ---- as file objects --------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstd.compress])
def test_opened__is_the_content(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    content = random.Random(1).randbytes(3 << 20)
    (tmp_path / "a").write_bytes(compress(content))
    with opened(str(tmp_path / "a")) as file:
        assert file.peek(4)[:4] == content[:4]
        assert file.read() == content


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress])
def test_opened__of_a_cut_file_raises_when_its_end_is_read(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "a").write_bytes(compress(random.Random(1).randbytes(3 << 20))[:-100])
    with opened(str(tmp_path / "a")) as file:
        assert len(file.read(1000)) == 1000
        with pytest.raises(InputError, match="ends early"):
            file.read()
