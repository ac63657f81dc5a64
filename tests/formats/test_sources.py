"""Paths and patterns to sources, and parts of them as they are asked for."""

import gzip
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.program import run_python
from support.stored import READS, STORED, Store, bgzf, expand, inspect_source, skippable_frame

from multigpu.errors import InputError
from multigpu.formats.sequences.registry import SEQUENCES
from multigpu.formats.storage import input_paths, sources
from multigpu.formats.storage.fingerprints import fingerprint
from multigpu.formats.storage.input_paths import would_read
from multigpu.formats.storage.sources import open_content, read_into
from multigpu.formats.storage.zstandard import zstd


def test_expand__keeps_files_pipes_and_urls_in_the_order_given(store: Store) -> None:
    one, two = store(b"x", "one.fq"), store(b"x", "two")
    paths = [two, "-", "s3://bucket/a*.fq", one, two]
    assert expand(paths) == paths


def test_expand__takes_the_sequence_files_of_a_directory_by_name(tmp_path: Path) -> None:
    wanted = ["a.fa", "b.fasta.gz", "c.FNA.bgz", "d.fq.zst", "e.fastq"]
    for name in [*wanted[::-1], "notes.txt", "f.fq.bz2", ".hidden.fq", "g.fq.part", "fq"]:
        (tmp_path / name).touch()
    (tmp_path / "directory.fq").mkdir()
    assert expand([str(tmp_path)]) == [str(tmp_path / name) for name in wanted]


GIVEN = (
    "in", "in/", "./in/../in", "link", "in/*", "*", "in/*.fq", "**", "**/*.fq*", "in/**/x.fq",
    "l*/[xy].f?", "in/.*", "*/*/*", "in/x.fq", "no*",
)  # fmt: skip
NEW = ("in/x.fq", "in/x.tsv", "in/.x.fq", "x.fq", "in/sub/x.fq", "in/sub/y.fq.gz", "link/x.fa")


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("new", NEW)
def test_would_read__is_what_expand_does_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, new: str
) -> None:
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("in")
    for folder in (".", "in", "in/sub"):
        (tmp_path / folder / "there.fq").touch()
    monkeypatch.chdir(tmp_path)
    told = would_read(given, new, SEQUENCES)
    Path(new).touch()
    stands = input_paths.stands_for_others(given)
    try:
        found = {os.path.realpath(path) for path in expand([given])}
    except InputError:
        found = set()
    through_link = given.startswith("l*") and new.startswith("in")
    assert told == (stands and os.path.realpath(new) in found and not through_link)


def test_expand__writes_paths_as_one_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.fq").touch()
    monkeypatch.chdir(tmp_path / "a")
    given = [".", "./", "../a//", f"{tmp_path}/a/", str(tmp_path / "a")]
    assert expand(given) == ["b.fq", "b.fq", "../a/b.fq", *2 * [str(tmp_path / "a" / "b.fq")]]


def test_expand__sorts_what_a_pattern_matches_unless_a_file_has_that_name(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.fq", "a.fq", "sub/c.fq", "d.txt"):
        (tmp_path / name).touch()
    assert expand([f"{tmp_path}/*.fq"]) == [f"{tmp_path}/a.fq", f"{tmp_path}/b.fq"]
    assert expand([f"{tmp_path}/**/c.fq"]) == [f"{tmp_path}/sub/c.fq"]
    assert expand([f"{tmp_path}/s*"]) == [f"{tmp_path}/sub/c.fq"]
    (tmp_path / "[ab].fq").touch()
    assert expand([f"{tmp_path}/[ab].fq"]) == [f"{tmp_path}/[ab].fq"]


@pytest.mark.parametrize(("name", "problem"), [
    ("", r"the directory has no sequence files \(\.fa, …\)"),
    ("*.none", r"\*\.none: no file matches this pattern"),
    ("absent.fq", "there is no such file"),
    ("notes.txt/absent.fq", "cannot be read: "),
    ("zero\0byte.fq", "cannot be read: "),
    ("n" * 300, "cannot be read: "),
    ("gone", r"/gone\.fq: cannot be read: there is no such file"),
    ("loop", r"/loop\.fq: cannot be read: too many levels"),
    ("*.lost", r"link\.lost: cannot be read: there is no such file"),
])  # fmt: skip
def test_expand__refuses_what_stands_for_nothing(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "link.lost").symlink_to(tmp_path / "absent.fq")
    for folder, target in (("gone", "nowhere"), ("loop", "loop.fq")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.fq").symlink_to(target)
    with pytest.raises(InputError, match=problem):
        expand([str(tmp_path / name)])


def test_expand__refuses_what_it_cannot_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"-: standard input can be given only once"):
        expand(["-", "-"])
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read everything
    with pytest.raises(InputError, match=r"reads: cannot be read: permission denied"):
        expand([store(b"x")])


@pytest.mark.parametrize("compression", STORED)
def test_inspect__tells_the_compression_by_content(store: Store, compression: str) -> None:
    source = inspect_source(path := store(STORED[compression], "misleading.txt"))
    assert source == sources.Source(path, len(STORED[compression]), compression, "fastq")
    assert source.cuttable == (compression == "none")


@pytest.mark.parametrize("blank", [b"", b"\n", b" \r\n\t\n", b"\n" * 200_000])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bgzf, zstd.compress])
def test_inspect__tells_the_layout_after_blanks(store: Store, compress: Any, blank: bytes) -> None:
    assert inspect_source(store(compress(blank + b">name\nACGT\n"))).layout == "fasta"
    assert inspect_source(store(compress(blank + READS))).layout == "fastq"


@pytest.mark.parametrize("data", [b"", b"\n \r\n", b"\n" * 200_000])
@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, bgzf, zstd.compress, lambda data: skippable_frame(len(data) % 99)],
)
def test_inspect__refuses_what_is_empty(store: Store, pack: Any, data: bytes) -> None:
    with pytest.raises(InputError, match=r"reads: is empty$"):
        inspect_source(store(pack(data)))


@pytest.mark.parametrize(("data", "problem"), [
    (b"ACGT\nACGT", "neither FASTQ nor FASTA: begins with 'ACGT'"),
    (b"\x1f", "neither FASTQ nor FASTA: begins with"),
    (b"\xef\xbb\xbf@read\n", r"begins with a byte order mark \(BOM\) of UTF-8: remove it with"),
    (b"x" * 1000, "begins with 'x{60}'"),
    (gzip.compress(b"name\tvalue\n", mtime=0), "begins with 'name\\\\tvalue'"),
    (b"@read\rACGT\r+\rIIII\r", "its lines end with carriage returns: convert them"),
    (gzip.compress(b"\r>read\rACGT\r\r", mtime=0), "its lines end with carriage returns"),
    (b"BZh91AY&SY", "is compressed with bzip2"),
    (b"\xfd7zXZ\x00\x00", "is compressed with xz"),
    (b"PK\x03\x04", "is a zip archive"),
    (gzip.compress(gzip.compress(READS, mtime=0), mtime=0), "is compressed twice"),
    (gzip.compress(zstd.compress(READS), mtime=0), "is compressed twice"),
    (bgzf(READS, end=b""), r"reads: gzip data ends early: .* is truncated \(the BGZF end marker"),
])  # fmt: skip
def test_inspect__refuses_other_content(store: Store, data: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        inspect_source(store(data))


def test_paths__of_no_regular_file_are_refused(tmp_path: Path) -> None:
    for name, problem in (("", "is a directory"), ("absent", "there is no such file")):
        with pytest.raises(InputError, match=f"{name}: cannot be read: {problem}"):
            inspect_source(str(tmp_path / name))
    for path, problem in (("/dev/null", "only a regular file"), (str(tmp_path / "x"), "no such")):
        with pytest.raises(InputError, match=problem):
            fingerprint(path)


@pytest.mark.process
def test_sources__load_no_library_before_it_is_needed() -> None:
    code = (
        "import sys, multigpu.formats.storage.sources, multigpu.workloads.scan.output.registry\n"
        "print({'isal', 'backports.zstd', 'fsspec', 'pyarrow'} & set(sys.modules))"
    )
    assert run_python("-c", code).out == "set()\n"


@pytest.mark.parametrize(("start", "size"), [(0, 10), (777, 5000), (0, len(READS)), (21_000, 9999)])
def test_read_into__fills_the_array_up_to_the_end(store: Store, start: int, size: int) -> None:
    out = np.empty(size, np.uint8)
    count = read_into(store(READS), start, out)
    assert out[:count].tobytes() == READS[start : start + size]
    assert read_into(store(READS), len(READS) + 5, out) == 0


@pytest.mark.parametrize(("size", "step"), [(10 << 20, (5 << 20) - 1), (1000, 143)])
def test_fingerprint__sees_changes_in_small_files_any(store: Store, size: int, step: int) -> None:
    before = fingerprint(store(bytes(size)))
    assert before.same_content(fingerprint(store(bytes(size))))
    for at in range(0, size, step):
        after = fingerprint(store(bytes(at) + b"\1" + bytes(size - at - 1)))
        assert (after.size, before.same_content(after)) == (size, False)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstd.compress])
def test_opened__is_the_content_or_an_error_at_its_end(store: Store, compress: Any) -> None:
    content = random.Random(1).randbytes(3 << 20)
    with open_content(store(compress(content))) as file:
        assert file.peek(4)[:4] == content[:4]
        assert file.read() == content
    if compress is not bytes:
        with open_content(store(compress(content)[:-100])) as file:
            assert len(file.read(1000)) == 1000
            with pytest.raises(InputError, match="ends early"):
                file.read()
