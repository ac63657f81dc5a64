"""Many outputs at once: their bytes, their names, and how many are open."""

import errno
import gzip
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from multigpu.cluster.files import DiskFull
from multigpu.errors import UsageError
from multigpu.formats.storage import many_outputs
from multigpu.formats.storage.many_outputs import atomic_outputs

CONTENT = Random(1).randbytes(100_000) + b"ACGTTGCA" * 20_000  # what cannot be compressed, too
CONTENTS = [CONTENT, b"", CONTENT[:65_280], CONTENT[-70_000:]]


def write(folder: Path, name: str, cuts: int) -> list[bytes]:
    """Write the contents in pieces; return what is in the files."""
    paths = [str(folder / f"sub{n % 2}" / name.format(n)) for n in range(len(CONTENTS))]
    before = list(map(os.path.exists, paths))
    with atomic_outputs(str(folder / name), paths) as files:
        for at in range(cuts):
            pieces = ((n, content[at * len(content) // cuts : (at + 1) * len(content) // cuts])
                      for n, content in enumerate(CONTENTS))  # fmt: skip
            files.hold([(n, memoryview(piece)) for n, piece in pieces])
            if at % 3 == 2:
                files.write()
        files.finish()
        assert list(map(os.path.exists, paths)) == before
    assert sorted(path.name for path in folder.iterdir()) == ["sub0", "sub1"]
    return [Path(path).read_bytes() for path in paths]


@pytest.mark.parametrize(("suffix", "decompress"), [("", bytes), (".gz", gzip.decompress)])
def test_files__do_not_depend_on_the_pieces(
    tmp_path: Path, suffix: str, decompress: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = write(tmp_path, "f{}" + suffix, 1)
    assert list(map(decompress, found)) == CONTENTS
    assert write(tmp_path, "f{}" + suffix, 37) == found  # those of before are replaced
    monkeypatch.setattr(many_outputs, "TASK_BYTES", many_outputs.BLOCK)  # several threads a piece
    monkeypatch.setattr(many_outputs, "MOST_AT_ONCE", 2)
    assert write(tmp_path, "f{}" + suffix, 2) == found
    assert write(tmp_path, "f{}" + suffix, 37) == found


@pytest.fixture
def few_files() -> Iterator[int]:
    """A limit of open files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    yield 2000
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_more_files_than_may_be_open__are_written(tmp_path: Path, few_files: int) -> None:
    paths = [str(tmp_path / f"{n}.fq") for n in range(few_files)]
    with atomic_outputs(str(tmp_path / "{n}.fq"), paths) as files:
        for text in (b"one", b"two"):
            files.hold([(n, memoryview(b"%s%d" % (text, n))) for n in range(few_files)])
            files.write()
        files.finish()
    found = [Path(path).read_bytes() for path in paths]
    assert found == [b"one%dtwo%d" % (n, n) for n in range(few_files)]


def write_one(name: str, paths: list[str]) -> None:
    with atomic_outputs(name, paths) as files:
        files.hold([(1, memoryview(b"text"))])
        files.write()
        files.finish()


@pytest.mark.parametrize("call", ["writev", "close"])  # file systems in a network tell it late
def test_disk_full__leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    of_files = getattr(os, call)

    def full(file: int, *more: object) -> Any:
        if Path(f"/proc/self/fd/{file}").readlink().name == "1":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return of_files(file, *more)

    (tmp_path / "0").write_bytes(b"before")
    monkeypatch.setattr(os, call, full)
    paths = [str(tmp_path / name) for name in "01"]
    with pytest.raises(DiskFull, match=r"/1: cannot be written: the disk is full"):
        write_one(str(tmp_path / "{}"), paths)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("0", b"before")]


def test_two_runs__do_not_write_the_same_outputs(tmp_path: Path) -> None:
    with (
        atomic_outputs(str(tmp_path / "{}"), []),
        pytest.raises(UsageError, match="another run is writing it"),
        atomic_outputs(str(tmp_path / "{}"), []),
    ):
        pass
