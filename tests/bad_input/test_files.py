"""Files that are missing, unreadable, empty, something else or damaged: one line, no output."""

import contextlib
import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_input.given import CHUNKS, READS, SCAN, SIGNATURES, Refused, Store, many
from support.bgzf_data import BGZF_END, bgzf
from support.program import Run, program

from multigpu import InputError, scan
from multigpu.formats.storage.zstandard import zstd

NOBODY = 65534


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
def public(main: Run, store: Store, signatures: str) -> Iterator[Path]:
    """A folder that everybody may enter and list, not write; after a run that loads all modules."""
    ended = main("scan", store("reads.fq", READS), "-s", signatures, "--gpus", "none")
    assert (ended.status, ended.out.count("\n"), ended.err) == (0, 3, "")
    folder = Path(tempfile.mkdtemp(prefix="multigpu-test-"))
    (folder / "good.fq").write_bytes(READS)
    (folder / "sig.fa").write_bytes(SIGNATURES)
    folder.chmod(0o555)
    yield folder
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("which", ["good.fq", "sig.fa", "inside", "hits.tsv"])
def test_file_or_folder__that_may_not_be_used_is_named(main: Run, public: Path, which: str) -> None:
    samples, output = public / "good.fq", ()
    problem = f"{public / which}: cannot be read: permission denied"
    if which == "inside":
        public.chmod(0o755)
        samples = public / "inside"
        samples.mkdir(0o000)
    elif which == "hits.tsv":
        output = ("-o", str(public / which))
        problem = f"{public / which}: cannot be written: no permission to write in {public}"
    else:
        (public / which).chmod(0)
    before = sorted(public.iterdir())
    with without_privileges():
        ended = main("scan", str(samples), "-s", str(public / "sig.fa"), *output, "--gpus", "none")
    assert (ended.status, ended.out, ended.problem) == (2, "", problem)
    assert sorted(public.iterdir()) == before


SAMPLES = {
    "absent.fq": "cannot be read: there is no such file",
    "*.nothing": "no file matches this pattern",
    "notes": "the directory has no sequence files (.fa, …)",
    **{f"/dev/{device}": "never ends" for device in ("zero", "full", "random", "urandom")},
    "text.fq": "neither FASTQ nor FASTA: begins with 'r1,ACGT'",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_no_samples__are_named(refused: Refused, store: Store, tmp_path: Path, name: str) -> None:
    store("text.fq", b"r1,ACGT\n")
    store("notes/reads.txt", READS)
    path = str(tmp_path / name)  # which an absolute name replaces
    assert refused(store("good.fq", READS), path) == f"{path}: {SAMPLES[name]}"


WHOLE = many(50)
DAMAGED = {
    "gzip, half": (gzip.compress(WHOLE)[:100], "gzip data ends early"),
    "gzip, checksum": (gzip.compress(WHOLE)[:-8] + bytes(8), "gzip data is corrupt"),
    "gzip, text behind": (gzip.compress(WHOLE) + b"text behind it", "something that is not gzip"),
    "bgzf, no end marker": (bgzf(WHOLE).removesuffix(BGZF_END), "end marker is missing"),
    "zstd, half": (zstd.compress(WHOLE)[:50], "zstd data ends early"),
    "zstd, text behind": (zstd.compress(WHOLE) + b"text behind it", "something that is not zstd"),
}  # fmt: skip


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_data__is_told_with_the_file_or_of_standard_input(
    refused: Refused, store: Store, damage: str, options: tuple[str, ...], signatures: str
) -> None:
    content, problem = DAMAGED[damage]
    path = store("damaged.fq.x", content)
    told = refused(store("good.fq", READS), path, options=options)
    assert told.startswith(f"{path}: ")
    assert problem in told
    if "half" in damage and not options:
        ended = program(*SCAN, "-", "-s", signatures, "-o", f"{path}.tsv", stdin=content)
        assert (ended.status, ended.out, problem in ended.problem) == (2, "", True)
        assert not Path(f"{path}.tsv").exists()


def test_damaged_signatures__are_told_with_the_file(refused: Refused, store: Store) -> None:
    path = store("sig.fa.gz", gzip.compress(SIGNATURES)[:-1])
    problem = refused(store("good.fq", READS), signatures=path)
    assert problem == f"{path}: gzip data ends early: the file is truncated"


@pytest.mark.parametrize("layout", ["fastq", "fasta"])
def test_file_cut_between_records__is_told(store: Store, signatures: str, layout: str) -> None:
    """What is left of it is a good file, so only its size tells that samples are missing."""
    record = {"fastq": b"@r\nACGT\n+\nIIII\n", "fasta": b">r\nACGT\n"}[layout]
    path = Path(store("cut.f", 1000 * record))
    rows = scan(path, signatures, gpus="none", threads=1, max_chunk_bytes=len(record) * 100)
    with path.open("r+b") as file:
        file.truncate(500 * len(record))
    with pytest.raises(InputError, match=r"cut\.f: was cut while it was read: it ends at byte"):
        list(rows)
