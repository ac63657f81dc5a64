"""What is wrong with the input, the options or the machine: one line, status 2, no output."""

import contextlib
import gzip
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import psutil
import pytest
from backports import zstd

from multigpu import InputError, cli, scan

ROOT = Path(__file__).resolve().parents[1]
NOBODY = 65534
SOON = 5.0  # seconds; the promise is 2, on a machine that does nothing else

SIGNATURES = b">sig\nACGT\n"
READS = b"@r1 first\nACGTA\n+\nIIIII\n@r2\nTTACGT\n+\n@+III!\n"
LAYOUTS = {
    "plain": READS,
    "crlf": READS.replace(b"\n", b"\r\n"),
    "wrapped": b"@r1 first\nACG\nTA\n+\nIII\nII\n@r2\nTTA\nCGT\n+r2\n@+I\nII!\n",
    "blank lines": READS.replace(b"@r2", b"\n\n@r2") + b"\n",
}
CHUNKS = [pytest.param((), id="one chunk"), pytest.param(("--max-chunk-bytes", "7"), id="7 bytes")]


class Left(BaseException):
    """Instead of the end of the process."""


@dataclass(frozen=True)
class Ended:
    """A run of the program that has ended."""

    status: int
    out: str
    err: str

    @property
    def problem(self) -> str:
        """The one line that there must be."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("multigpu: error: ")
        return lines[0].removeprefix("multigpu: error: ")


Run = Callable[..., Ended]
Refused = Callable[..., str]
Store = Callable[[str, bytes], str]


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The program's real `main` in this process; only its last act, `os._exit`, is caught."""

    def leave(status: int) -> None:
        raise Left(status)

    def run(*arguments: str) -> Ended:
        capfd.readouterr()
        with pytest.raises(Left, match=r"^\d+$") as left:
            cli.main(list(arguments))
        return Ended(left.value.args[0], *capfd.readouterr())

    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(cli, "os", SimpleNamespace(_exit=leave))
    yield run
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Writes a file and tells its path."""

    def write(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    return write


@pytest.fixture
def signatures(store: Store) -> str:
    return store("sig.fa", SIGNATURES)


@pytest.fixture
def refused(main: Run, tmp_path: Path, signatures: str) -> Refused:
    """The problem that a scan of these samples tells; nothing is left where the hits should be."""
    folder = tmp_path / "out"
    folder.mkdir()

    def run(*samples: str, options: tuple[str, ...] = (), signatures: str = signatures) -> str:
        output = str(folder / "hits.tsv")
        command = ("scan", *samples, "-s", signatures, "-o", output, "--gpus", "none")
        ended = main(*command, *options)
        assert list(folder.iterdir()) == []
        assert (ended.status, ended.out) == (2, "")
        return ended.problem

    return run


@pytest.fixture
def accepted(main: Run, tmp_path: Path, signatures: str) -> Callable[..., int]:
    """How many rows a scan of these samples writes."""

    def run(*samples: str, options: tuple[str, ...] = ()) -> int:
        output = tmp_path / "hits.tsv"
        command = ("scan", *samples, "-s", signatures, "-o", str(output), "--gpus", "none")
        ended = main(*command, *options)
        assert (ended.status, ended.out, ended.err) == (0, "", "")
        return output.read_bytes().count(b"\n") - 1

    return run


def fastq(*reads: tuple[str, str, str]) -> bytes:
    return "".join(f"@{name}\n{bases}\n+\n{quality}\n" for name, bases, quality in reads).encode()


def bgzf_block(data: bytes) -> bytes:
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflate.compress(data) + deflate.flush()
    header = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff\x06\x00BC\x02\x00"
    trailer = struct.pack("<II", zlib.crc32(data), len(data))
    return header + struct.pack("<H", len(body) + 25) + body + trailer


def bgzf(data: bytes) -> bytes:
    """In blocks of 20 bytes, with the end marker."""
    return b"".join(bgzf_block(data[at : at + 20]) for at in range(0, len(data), 20)) + BGZF_END


BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
COMPRESS = {"gzip": gzip.compress, "bgzf": bgzf, "zstd": zstd.compress}


# ---- files ------------------------------------------------------------------------------------


def test_scan__of_good_input_is_not_refused(accepted: Callable[..., int], store: Store) -> None:
    assert accepted(store("reads.fq", READS)) == 2


def test_missing_file__is_named(refused: Refused, tmp_path: Path, store: Store) -> None:
    good, missing = store("good.fq", READS), str(tmp_path / "absent.fq")
    assert refused(good, missing) == f"{missing}: cannot be read: there is no such file"


def test_missing_signature_file__is_named(refused: Refused, tmp_path: Path, store: Store) -> None:
    missing = str(tmp_path / "absent.fa")
    problem = refused(store("good.fq", READS), signatures=missing)
    assert problem == f"{missing}: cannot be read: there is no such file"


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """As nobody, where we are root: root may read and write everything."""
    if os.getuid():
        yield
        return
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


@pytest.fixture
def public(accepted: Callable[..., int], store: Store) -> Iterator[Path]:
    """A folder that everybody may enter and list, not write; after a run that loads all modules."""
    assert accepted(store("reads.fq", READS)) == 2
    folder = Path(tempfile.mkdtemp(prefix="multigpu-test-"))
    (folder / "good.fq").write_bytes(READS)
    (folder / "sig.fa").write_bytes(SIGNATURES)
    folder.chmod(0o555)
    yield folder
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("which", ["good.fq", "sig.fa"])
def test_unreadable_file__is_named(main: Run, public: Path, which: str) -> None:
    (public / which).chmod(0)
    with without_privileges():
        ended = main("scan", str(public / "good.fq"), "-s", str(public / "sig.fa"))
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem == f"{public / which}: cannot be read: permission denied"


def test_output_folder__that_may_not_be_written_is_named(main: Run, public: Path) -> None:
    output = public / "hits.tsv"
    command = ("scan", str(public / "good.fq"), "-s", str(public / "sig.fa"), "-o", str(output))
    with without_privileges():
        ended = main(*command, "--gpus", "none")
    assert (ended.status, ended.out) == (2, "")
    problem = f"{output}: cannot be written: no permission to write in {public}"
    assert ended.problem == problem
    assert sorted(path.name for path in public.iterdir()) == ["good.fq", "sig.fa"]


def test_unreadable_folder__is_named(main: Run, public: Path) -> None:
    inside = public / "inside"
    public.chmod(0o755)
    inside.mkdir(0o000)
    with without_privileges():
        ended = main("scan", str(inside), "-s", str(public / "sig.fa"))
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem == f"{inside}: cannot be read: permission denied"


@pytest.mark.parametrize("content", [b"", b"\n\r\n"], ids=["0 bytes", "blank lines"])
@pytest.mark.parametrize("compress", [bytes, *COMPRESS.values()], ids=["none", *COMPRESS])
def test_empty_file__is_named(
    refused: Refused, store: Store, compress: Callable[[bytes], bytes], content: bytes
) -> None:
    path = store("empty.fq", compress(content))
    assert refused(store("good.fq", READS), path) == f"{path}: is empty"


def test_folder_without_sequences__is_named(refused: Refused, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "reads.txt").write_bytes(READS)
    problem = f"{folder}: the directory has no sequence files (.fa, …)"
    assert refused(str(folder)) == problem


def test_pattern_without_a_match__is_named(refused: Refused, tmp_path: Path) -> None:
    pattern = str(tmp_path / "*.fastq")
    assert refused(pattern) == f"{pattern}: no file matches this pattern"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"r1,ACGT\n", "neither FASTQ nor FASTA: begins with 'r1,ACGT'"),
        (b"\0\1\2\3", "neither FASTQ nor FASTA: begins with '\\x00\\x01\\x02\\x03'"),
        (b"BZh91AY", "is compressed with bzip2, which is not read: decompress it first"),
        (gzip.compress(b"ACGT\n"), "neither FASTQ nor FASTA: begins with 'ACGT'"),
    ],
    ids=["text", "bytes", "bzip2", "gzip"],
)
def test_other_file__is_named_and_told_how_it_begins(
    refused: Refused, store: Store, content: bytes, problem: str
) -> None:
    path = store("other.fq", content)
    assert refused(store("good.fq", READS), path) == f"{path}: {problem}"


# ---- records ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_record__cut_off_at_any_byte_is_refused(
    main: Run, tmp_path: Path, signatures: str, layout: str, options: tuple[str, ...]
) -> None:
    """Accepted only where a record is complete, be it without its last line end."""
    whole, path, output = LAYOUTS[layout], tmp_path / "cut.fq", tmp_path / "hits.tsv"
    first, second = whole[: whole.index(b"@r2")].rstrip(), whole.rstrip()
    command = ("scan", str(path), "-s", signatures, "-o", str(output), "--gpus", "none")
    accepted = []
    for stop in range(len(whole)):
        path.write_bytes(whole[:stop])
        ended = main(*command, *options)
        if whole[:stop].rstrip(b"\r\n") in (first, second):
            assert (ended.status, ended.err) == (0, "")
            assert output.read_bytes().count(b"\n") == 2 + (stop >= len(second))
            output.unlink()
            accepted.append(stop)
        else:
            assert (stop, ended.status, ended.out) == (stop, 2, "")
            assert ended.problem.startswith(f"{path}: ")
            assert sorted(tmp_path.iterdir()) == [path, Path(signatures)]
    assert {len(first), len(second)} <= set(accepted)


@pytest.mark.parametrize("options", CHUNKS)
def test_record__cut_off_is_named_with_its_byte_and_where_the_data_end(
    refused: Refused, store: Store, options: tuple[str, ...]
) -> None:
    path = store("cut.fq", READS[:-4])
    begin, end = READS.index(b"@r2"), len(READS) - 4
    where = f"{path}: record 'r2' at byte {begin}"
    problem = f"{where}: the record is cut off: the data end at byte {end}"
    assert refused(path, options=options) == problem


@pytest.mark.parametrize("cut", [1, 4, 7, 9, 16, 17])
@pytest.mark.parametrize("compression", COMPRESS)
def test_record__cut_off_inside_compressed_data_is_refused(
    refused: Refused, store: Store, compression: str, cut: int
) -> None:
    content = READS.rstrip()[:-cut]
    assert READS.index(b"@r2") < len(content)
    path = store("cut.fq.x", COMPRESS[compression](content))
    problem = refused(path)
    assert problem.startswith(f"{path}: record 'r")
    assert "cut off" in problem or "the quality has" in problem


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize("compression", COMPRESS)
def test_record__cut_off_inside_compressed_data_is_told_with_its_byte_of_the_content(
    refused: Refused, store: Store, compression: str, options: tuple[str, ...]
) -> None:
    path = store("cut.fq.x", COMPRESS[compression](READS[:-4]))
    begin, end = READS.index(b"@r2"), len(READS) - 4
    where = f"{path}: record 'r2' at byte {begin}"
    problem = f"{where}: the record is cut off: the data end at byte {end}"
    assert refused(path, options=options) == problem


LENGTHS = [(a, b) for a in (1, 5, 6, 8, 32) for b in (0, 1, 6, 7, 9, 31) if a != b]


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize(("bases", "qualities"), LENGTHS)
def test_quality_of_another_length__is_told_with_both_lengths(
    refused: Refused, store: Store, bases: int, qualities: int, options: tuple[str, ...]
) -> None:
    reads = fastq(("r1", "ACGT", "IIII"), ("bad one", "A" * bases, "I" * qualities))
    path = store("lengths.fq", reads + fastq(("afterwards", "ACGT", "IIII")))
    where = f"{path}: record 'bad' at byte {reads.index(b'@bad')}"
    problem = f"{where}: the sequence has {bases} bases, the quality has {qualities} characters"
    assert refused(path, options=options) == problem


@pytest.mark.parametrize("options", CHUNKS)
def test_short_quality__before_a_line_end_at_the_right_distance_is_told_with_both_lengths(
    refused: Refused, store: Store, options: tuple[str, ...]
) -> None:
    path = store("lengths.fq", fastq(("r1", "ACGTACGT", "III"), ("abc", "ACGT", "IIII")))
    where = f"{path}: record 'r1' at byte 0"
    problem = f"{where}: the sequence has 8 bases, the quality has 3 characters"
    assert refused(path, options=options) == problem


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (READS + b"r3\nACGT\n+\nIIII\n", f"byte {len(READS)}: a record should begin with '@'"),
        (READS.replace(b"+\n@+", b"x\n@+"), "record 'r2' at byte 24: the sequence is not followed"),
        (READS + b">r3\nACGT\n", f"byte {len(READS)}: a record should begin with '@'"),
    ],
    ids=["no header", "no plus", "FASTA behind FASTQ"],
)  # fmt: skip
def test_broken_record__is_told_with_its_byte(
    refused: Refused, store: Store, content: bytes, problem: str, options: tuple[str, ...]
) -> None:
    path = store("broken.fq", content)
    assert refused(path, options=options).startswith(f"{path}: {problem}")


ILLEGAL = [("X", "'X'"), ("-", "'-'"), (" ", "' '"), ("*", "'*'"), ("1", "'1'"), ("\0", "'\\x00'")]


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize(("letter", "shown"), ILLEGAL, ids=[shown for _, shown in ILLEGAL])
def test_illegal_base__is_told_with_its_record_and_position(
    refused: Refused, store: Store, letter: str, shown: str, options: tuple[str, ...]
) -> None:
    reads = fastq(("r1", "ACGT", "IIII"), ("r2 two", f"ACG{letter}T{letter}", "IIIIII"))
    fasta = f">r1\nACGT\n>r2 two\nAC\nG{letter}\nT{letter}\n".encode()
    for path in (store("illegal.fq", reads), store("illegal.fa", fasta)):
        problem = refused(path, options=options)
        where = f"{path}: record 'r2', position 3 (from 0)"
        assert problem == f"{where}: {shown} is not a base (A C G T U or an IUPAC code)"


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize(
    ("quality", "offset", "shown", "position"),
    [
        ("II I", "33", "' '", 2),
        ("\x1fIII", "33", "'\\x1f'", 0),
        ("III\x7f", "33", "'\\x7f'", 3),
        ("hh?h", "64", "'?'", 2),
        ("h!?h", "64", "'!'", 1),
    ],
    ids=["blank", "control", "delete", "below @", "two below @"],
)
def test_quality_outside_its_range__is_told_with_record_position_and_offset(
    refused: Refused,
    store: Store,
    quality: str,
    offset: str,
    shown: str,
    position: int,
    options: tuple[str, ...],
) -> None:
    reads = fastq(("r1", "ACGT", "hhhh"), ("r2", "ACGT", quality))
    path = store("quality.fq", reads)
    problem = refused(path, options=(*options, "--phred-offset", offset))
    where = f"{path}: record 'r2' at byte {reads.index(b'@r2')}: {shown} at position {position}"
    assert problem == f"{where} (from 0) is no quality from offset {offset}"


# ---- which error ------------------------------------------------------------------------------


def many(count: int, **faults: tuple[str, str]) -> bytes:
    """Reads of which some, by their name, have other bases and qualities."""
    reads = []
    for number in range(count):
        bases, quality = faults.get(f"r{number}", ("ACGTACGTAC", "IIIIIIIIII"))
        reads.append((f"r{number}", bases, quality))
    return fastq(*reads)


BASE, QUALITY, LENGTH = ("ACGTXCGTAC", "I" * 10), ("ACGTACGTAC", "IIII IIIII"), ("ACGT", "IIIII")
TOLD = {
    BASE: "'X' is not a base",
    QUALITY: "' ' at position 4",
    LENGTH: "4 bases, the quality has 5",
}
SIZES = ["7", "64", "500", "100000"]


@pytest.mark.parametrize("compression", ["none", *COMPRESS])
@pytest.mark.parametrize(
    ("early", "late"),
    [(a, b) for a in TOLD for b in TOLD if a != b],
    ids=[f"{a}, then {b}" for a in ("base", "quality", "lengths")
         for b in ("base", "quality", "lengths") if a != b],
)  # fmt: skip
def test_error__reported_is_the_first_of_the_input_whatever_the_chunks(
    refused: Refused,
    store: Store,
    early: tuple[str, str],
    late: tuple[str, str],
    compression: str,
) -> None:
    compress = COMPRESS.get(compression, bytes)
    good = store("good.fq", many(40))
    bad = store("bad.fq.x", compress(many(60, r30=early, r33=late)))
    worse = store("worse.fq", many(20, r1=late))
    for size in SIZES:
        problem = refused(good, bad, worse, options=("--max-chunk-bytes", size))
        assert problem.startswith(f"{bad}: record 'r30'")
        assert TOLD[early] in problem


def test_error__of_a_later_chunk_is_the_same_from_two_worker_processes(
    refused: Refused, store: Store
) -> None:
    good, bad = store("good.fq", many(40)), store("bad.fq", many(60, r30=LENGTH, r31=BASE))
    options = ("--max-chunk-bytes", "200")
    problem = refused(good, bad, options=options)
    assert "record 'r30'" in problem
    assert refused(good, bad, options=(*options, "--workers", "2")) == problem


# ---- compressed data --------------------------------------------------------------------------

WHOLE = many(50)
BORDER = bgzf(WHOLE).index(b"\x1f\x8b", 700)  # between two blocks
DAMAGED = {
    "gzip, last byte gone": (gzip.compress(WHOLE)[:-1], "gzip data ends early"),
    "gzip, half": (gzip.compress(WHOLE)[:100], "gzip data ends early"),
    "gzip, half of a second member": (
        gzip.compress(WHOLE) + gzip.compress(WHOLE)[:100], "gzip data ends early"),
    "gzip, checksum": (gzip.compress(WHOLE)[:-8] + bytes(8), "gzip data is corrupt"),
    "gzip, body": (gzip.compress(WHOLE)[:50] + b"\xff" * 50, "gzip data"),
    "gzip, text behind": (gzip.compress(WHOLE) + b"text behind it", "something that is not gzip"),
    "bgzf, last byte gone": (bgzf(WHOLE)[:-1], "gzip data ends early"),
    "bgzf, no end marker": (bgzf(WHOLE).removesuffix(BGZF_END), "end marker is missing"),
    "bgzf, half of the blocks": (bgzf(WHOLE)[:BORDER], "end marker is missing"),
    "zstd, last byte gone": (zstd.compress(WHOLE)[:-1], "zstd data ends early"),
    "zstd, half": (zstd.compress(WHOLE)[:50], "zstd data ends early"),
    "zstd, text behind": (zstd.compress(WHOLE) + b"text behind it", "something that is not zstd"),
    "zstd, body": (zstd.compress(WHOLE)[:20] + b"\xff" * 50, "zstd data"),
}  # fmt: skip


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_data__is_told_with_the_file(
    refused: Refused, store: Store, damage: str, options: tuple[str, ...]
) -> None:
    content, problem = DAMAGED[damage]
    path = store("damaged.fq.x", content)
    told = refused(store("good.fq", READS), path, options=options)
    assert told.startswith(f"{path}: {problem}") or (
        told.startswith(f"{path}: gzip data ends early") and problem in told
    )


@pytest.mark.parametrize("damage", ["gzip, half", "bgzf, no end marker", "zstd, half"])
def test_damaged_data__from_standard_input_is_told(
    store: Store, signatures: str, tmp_path: Path, damage: str
) -> None:
    content, problem = DAMAGED[damage]
    output = tmp_path / "hits.tsv"
    ended = program("-", "-s", signatures, "-o", str(output), stdin=content)
    assert (ended.status, ended.out) == (2, "")
    assert problem in ended.problem
    assert list(tmp_path.glob("*hits*")) == []


def test_damaged_signatures__are_told_with_the_file(refused: Refused, store: Store) -> None:
    path = store("sig.fa.gz", gzip.compress(SIGNATURES)[:-1])
    problem = refused(store("good.fq", READS), signatures=path)
    assert problem == f"{path}: gzip data ends early: the file is truncated"


# ---- signatures -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b">s1\nACGT\n>s2 empty\n>s3\nA\n", "record 's2': the signature has no base"),
        (b">s1\nACGT\n>s2\n\r\n\r\n", "record 's2': the signature has no base"),
        (b">s1\nACGT\n>s2", "record 's2': the signature has no base"),
        (b">s1\nAC\nGJT\n", "record 's1', position 3 (from 0): 'J' is not a base"),
        (b">s1\nAC GT\n", "record 's1', position 2 (from 0): ' ' is not a base"),
        (b"", "is empty"),
        (b"ACGT\n", "neither FASTQ nor FASTA: begins with 'ACGT'"),
    ],
    ids=["empty", "blank lines", "cut off", "letter", "blank", "no bytes", "no FASTA"],
)
def test_wrong_signature__is_told_with_file_and_record(
    refused: Refused, store: Store, content: bytes, problem: str
) -> None:
    path = store("wrong.fa", content)
    told = refused(store("good.fq", READS), signatures=path)
    assert told.startswith(f"{path}: {problem}")


def test_no_signature__is_told(main: Run, store: Store) -> None:
    ended = main("scan", store("good.fq", READS), "--gpus", "none")
    assert (ended.status, ended.out, ended.problem) == (2, "", "no --signatures given")


def test_no_sample__is_told(main: Run, signatures: str) -> None:
    ended = main("scan", "-s", signatures, "--gpus", "none")
    assert (ended.status, ended.out, ended.problem) == (2, "", "no SAMPLES given")


# ---- output -----------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-o", "--summary"])
def test_output_folder__that_is_missing_is_told_before_any_input_is_read(
    main: Run, tmp_path: Path, option: str
) -> None:
    path = tmp_path / "nowhere" / "hits.tsv"
    ended = main("scan", "absent.fq", "-s", "absent.fa", option, str(path))
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem == f"{path}: cannot be written: there is no directory {path.parent}"
    assert list(tmp_path.iterdir()) == []


def test_output__that_is_a_folder_is_told(main: Run, tmp_path: Path) -> None:
    ended = main("scan", "absent.fq", "-s", "absent.fa", "-o", str(tmp_path))
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem == f"{tmp_path}: cannot be written: it is a directory"


def test_output__that_was_there_stays_as_it_was(
    main: Run, store: Store, signatures: str, tmp_path: Path
) -> None:
    bad, old = store("bad.fq", many(60, r30=BASE)), store("hits.tsv", b"old")
    before = sorted(tmp_path.iterdir())
    ended = main("scan", bad, "-s", signatures, "-o", old, "--gpus", "none")
    assert ended.status == 2
    assert sorted(tmp_path.iterdir()) == before
    assert Path(old).read_bytes() == b"old"


@pytest.mark.parametrize("named", ["samples", "signatures"])
@pytest.mark.parametrize("option", ["-o", "--summary", "--log-json", "--trace"])
def test_output__that_would_replace_an_input_is_refused(
    main: Run, store: Store, signatures: str, tmp_path: Path, named: str, option: str
) -> None:
    samples = store("reads.fq", READS)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    again = str(tmp_path / "." / Path(samples if named == "samples" else signatures).name)
    ended = main("scan", samples, "-s", signatures, option, again, "--gpus", "none")
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem.startswith(f"{again} is named twice")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_output__that_would_replace_a_file_of_a_pattern_is_refused(
    main: Run, store: Store, signatures: str, tmp_path: Path
) -> None:
    samples = store("reads.fq", READS)
    ended = main("scan", str(tmp_path / "*.fq"), "-s", signatures, "-o", samples, "--gpus", "none")
    assert (ended.status, ended.out) == (2, "")
    assert Path(samples).read_bytes() == READS


@pytest.mark.parametrize("option", ["--summary", "--log-json", "--trace"])
def test_outputs__of_one_name_are_refused(
    main: Run, store: Store, signatures: str, tmp_path: Path, option: str
) -> None:
    path = str(tmp_path / "same")
    options = ("-o", path, option, path, "--gpus", "none")
    ended = main("scan", store("reads.fq", READS), "-s", signatures, *options)
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem.startswith(f"{path} is named twice")
    assert not Path(path).exists()


def disk_is_full(main: Run, store: Store, signatures: str) -> Ended:
    samples = store("good.fq", READS)
    return main("scan", samples, "-s", signatures, "-o", "/dev/full", "--gpus", "none")


def test_full_disk__is_told(main: Run, store: Store, signatures: str) -> None:
    ended = disk_is_full(main, store, signatures)
    problem = "/dev/full: cannot be written: the disk is full (no space left on device)"
    assert (ended.out, ended.problem) == ("", problem)


def test_full_disk__ends_with_status_2(main: Run, store: Store, signatures: str) -> None:
    assert disk_is_full(main, store, signatures).status == 2


def test_full_disk__under_standard_output_is_told(store: Store, signatures: str) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = program(store("good.fq", READS), "-s", signatures, stdout=full)
    problem = "standard output: cannot be written: the disk is full (no space left on device)"
    assert (ended.status, ended.problem) == (2, problem)


# ---- options ----------------------------------------------------------------------------------

WRONG_OPTIONS = [
    ("--hits last", "'--hits': 'last' is not one of 'first', 'all'"),
    ("--strand -", "'--strand': '-' is not one of 'forward', 'both'"),
    ("--sample-n both", "'--sample-n': 'both' is not one of 'match', 'mismatch'"),
    ("--min-score high", "'--min-score': 'high' is not a valid float"),
    ("--min-score nan", "min_score is not a number"),
    ("--phred-offset 50", "'--phred-offset': '50' is not one of '33', '64'"),
    ("--format xml", "'--format': 'xml' is not one of"),
    ("--gpus first", "first"),
    ("--gpus 9", "there is no GPU 9"),
    ("--gpus 0,9", "there is no GPU"),
    ("--gpus GPU-00000000", "GPU-00000000"),
    ("--connect-timeout 0", "connect timeout 0: it must be positive"),
    ("--connect-timeout -1", "connect timeout -1: it must be positive"),
    ("--memory-fraction 0", "memory fraction 0: it lies between 0 and 1"),
    ("--memory-fraction 1.5", "memory fraction 1.5: it lies between 0 and 1"),
    ("--memory-fraction nan", "memory fraction nan: it lies between 0 and 1"),
    ("--memory-fraction 0.000001", "bytes of memory where"),
    ("--max-chunk-bytes 0", "chunks of 0 bytes are not possible"),
    ("--max-chunk-bytes -7", "chunks of -7 bytes are not possible"),
    ("--max-chunk-bytes 1M", "'--max-chunk-bytes': '1M' is not a valid integer"),
    ("--threads -1", "there cannot be less than no threads or processes"),
    ("--workers -1", "there cannot be less than no threads or processes"),
    ("--scheduler-file absent.json", "absent.json: no such scheduler file"),
    ("--scheduler a:1 --scheduler-file b", "give a scheduler's address or its file, not both"),
    ("--speed high", "No such option '--speed'"),
]


@pytest.mark.parametrize(("options", "problem"), WRONG_OPTIONS, ids=[o for o, _ in WRONG_OPTIONS])
def test_wrong_option__is_told(refused: Refused, store: Store, options: str, problem: str) -> None:
    assert problem in refused(store("good.fq", READS), options=tuple(options.split()))


def test_connect_timeout__that_is_no_number_is_told(refused: Refused, store: Store) -> None:
    problem = refused(store("good.fq", READS), options=("--connect-timeout", "nan"))
    assert "connect timeout nan" in problem


@pytest.mark.parametrize("name", ["hits.parquet.gz", "hits.parquet.zst"])
def test_parquet__compressed_once_more_is_refused(
    main: Run, store: Store, signatures: str, tmp_path: Path, name: str
) -> None:
    output = str(tmp_path / name)
    ended = main("scan", store("good.fq", READS), "-s", signatures, "-o", output, "--gpus", "none")
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem.startswith("Parquet files are compressed inside")
    assert list(tmp_path.glob("*hits*")) == []


def test_unknown_command__is_told(main: Run) -> None:
    ended = main("scam")
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem.startswith("No such command 'scam'")


# ---- the scheduler ----------------------------------------------------------------------------


@pytest.fixture
def silent() -> Iterator[str]:
    """An address where somebody listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("by_file", [False, True], ids=["address", "file"])
def test_scheduler__that_is_not_there_is_told_in_time(
    refused: Refused, store: Store, closed: str, by_file: bool
) -> None:
    options = ("--scheduler", closed)
    if by_file:
        content = f'{{"type": "Scheduler", "address": "{closed}"}}'.encode()
        options = ("--scheduler-file", store("scheduler.json", content))
    begin = time.monotonic()
    problem = refused(store("good.fq", READS), options=("--connect-timeout", "0.5", *options))
    assert time.monotonic() - begin < SOON
    assert problem.startswith(f"{options[1]}: no scheduler answered within 0.5 s")


def test_scheduler__that_takes_the_connection_and_never_answers_is_told_in_time(
    store: Store, signatures: str, silent: str
) -> None:
    options = ("--scheduler", silent, "--connect-timeout", "0.5")
    ended = program(store("good.fq", READS), "-s", signatures, *options, timeout=2 + SOON)
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem.startswith(f"{silent}: no scheduler answered within 0.5 s")


def test_python__ends_after_a_scheduler_that_never_answers(
    store: Store, signatures: str, silent: str
) -> None:
    scan = f"multigpu.scan({store('good.fq', READS)!r}, {signatures!r}, scheduler={silent!r},"
    code = f"import multigpu; list({scan} connect_timeout=0.5))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=2 + SOON, check=False
    )
    assert run.returncode == 1
    assert b"UsageError" in run.stderr.splitlines()[-1]


def test_scheduler_file__that_is_no_json_is_told(refused: Refused, store: Store) -> None:
    path = store("scheduler.json", b"no JSON")
    problem = refused(store("good.fq", READS), options=("--scheduler-file", path))
    assert problem.startswith(f"{path}: ")


# ---- the program itself -----------------------------------------------------------------------


def program(
    *arguments: str,
    stdin: bytes = b"",
    stdout: int | BinaryIO = subprocess.PIPE,
    timeout: float = 60,
) -> Ended:
    run = subprocess.run(
        [sys.executable, "-m", "multigpu", "scan", *arguments, "--gpus", "none"],
        cwd=ROOT,
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=timeout,
        check=False,
    )
    return Ended(run.returncode, (run.stdout or b"").decode(), run.stderr.decode())


def test_program__tells_an_error_without_a_traceback(
    store: Store, signatures: str, tmp_path: Path
) -> None:
    path, output = store("bad.fq", many(60, r30=BASE)), tmp_path / "hits.tsv"
    ended = program(path, "-s", signatures, "-o", str(output), "--max-chunk-bytes", "100")
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem.startswith(f"{path}: record 'r30', position 4 (from 0): 'X'")
    assert list(tmp_path.glob("*hits*")) == []


def test_program__with_debug_shows_where_an_error_comes_from(store: Store, signatures: str) -> None:
    ended = program(store("bad.fq", many(60, r30=BASE)), "-s", signatures, "--debug")
    lines = ended.err.splitlines()
    assert ended.status == 2
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("multigpu: error: ")


# ---- Ctrl-C -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_scan(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Samples and signatures that two cores need half a minute for: the signatures have no seed."""
    folder = tmp_path_factory.mktemp("long")
    bases = (b"ACGTTGCAAGGCTTCA" * 4000)[:50_000]
    with (folder / "long.fa").open("wb") as file:
        for number in range(1000):
            file.write(b">s%d\n%s\n" % (number, bases))
    with (folder / "sig.fa").open("wb") as file:
        for number in range(3000):
            file.write(b">g%d\n%s\n" % (number, b"RYN" * 15 + b"ACG" * (number % 7 + 1)))
    return [str(folder / "long.fa"), "-s", str(folder / "sig.fa"), "--max-chunk-bytes", "1000000"]


def family(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return [process, *process.children(recursive=True)]
    return []


def seconds_used(processes: list[psutil.Process]) -> float:
    used = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            times = process.cpu_times()
            used += times.user + times.system
    return used


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def wait_until(true: Callable[[], object], seconds: float) -> bool:
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        if true():
            return True
        time.sleep(0.05)
    return False


@dataclass(frozen=True)
class Interrupted:
    status: int
    out: bytes
    err: str
    seconds: float
    left: list[psutil.Process]


def interrupt(command: list[str], folder: Path, busy: float, whole_group: bool) -> Interrupted:
    """Runs the program, sends SIGINT when it has computed for `busy` seconds, waits for its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "multigpu", "scan", *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    parent = psutil.Process(process.pid)
    try:
        assert wait_until(lambda: list(folder.glob(".hits.tsv.part")), 30), "it did not begin"
        before = seconds_used(family(parent))
        assert wait_until(lambda: seconds_used(family(parent)) > before + busy, 60)
        members = family(parent)
        assert process.poll() is None, "it ended too early"
        begin = time.monotonic()
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
        seconds = time.monotonic() - begin
        wait_until(lambda: not alive(members), SOON)
        return Interrupted(process.returncode, out, err.decode(), seconds, alive(members))
    finally:
        for member in alive(family(parent)):
            member.kill()
        process.communicate()


WORKERS = [
    pytest.param((), 1.0, id="in process"),
    pytest.param(("--workers", "2"), 6.0, id="two worker processes"),
]


@pytest.mark.parametrize(("options", "busy"), WORKERS)
def test_interrupt__ends_soon_and_leaves_nothing(
    long_scan: list[str], tmp_path: Path, options: tuple[str, ...], busy: float
) -> None:
    output = ("-o", str(tmp_path / "hits.tsv"), "--gpus", "none")
    ended = interrupt([*long_scan, *output, *options], tmp_path, busy, whole_group=False)
    print(f"ended {ended.seconds:.2f} s after SIGINT")
    assert (ended.status, ended.out) == (130, b"")
    assert "multigpu: error: interrupted" in ended.err.splitlines()
    assert ended.seconds < SOON
    assert ended.left == []
    assert [path.name for path in tmp_path.iterdir()] == [".hits.tsv.journal"]


@pytest.mark.parametrize(("options", "busy"), WORKERS)
def test_interrupt__from_the_keyboard_reaches_all_processes_and_says_one_line(
    long_scan: list[str], tmp_path: Path, options: tuple[str, ...], busy: float
) -> None:
    """Ctrl-C in a terminal goes to the whole process group."""
    output = ("-o", str(tmp_path / "hits.tsv"), "--gpus", "none")
    ended = interrupt([*long_scan, *output, *options], tmp_path, busy, whole_group=True)
    print(f"ended {ended.seconds:.2f} s after SIGINT")
    assert (ended.status, ended.out) == (130, b"")
    kept = "multigpu: what is finished is kept: --resume goes on with it"
    said = [line for line in ended.err.splitlines() if line]
    assert said == [kept, "multigpu: error: interrupted"]
    assert ended.seconds < SOON
    assert ended.left == []
    assert [path.name for path in tmp_path.iterdir()] == [".hits.tsv.journal"]


# ---- files that change ------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["fastq", "fasta"])
def test_file_cut_between_records_while_it_is_read__is_told(
    store: Store, signatures: str, layout: str
) -> None:
    """What is left of it is a good file, so only its size tells that samples are missing."""
    record = {"fastq": b"@r\nACGT\n+\nIIII\n", "fasta": b">r\nACGT\n"}[layout]
    path = Path(store("cut.f", 1000 * record))
    rows = scan(path, signatures, gpus="none", threads=1, max_chunk_bytes=len(record) * 100)
    with path.open("r+b") as file:
        file.truncate(500 * len(record))
    with pytest.raises(InputError, match=r"cut\.f: was cut while it was read: it ends at byte"):
        list(rows)
