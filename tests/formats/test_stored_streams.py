"""Standard input and pipes."""

import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.program import ROOT
from support.stored import READS, STORED, TRUNCATED, content, expand, inspect_source

from multigpu.errors import InputError
from multigpu.formats.storage import stored_streams


@pytest.fixture(autouse=True)
def no_pipes_left() -> Iterator[None]:
    yield
    while stored_streams.pipes:
        stored_streams.pipes.popitem()[1].close()


@dataclass
class Standard:
    """What stands for sys.stdin."""

    buffer: object


@pytest.mark.parametrize("compression", STORED)
def test_stdin__loses_nothing_to_inspect(monkeypatch: pytest.MonkeyPatch, compression: str) -> None:
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(STORED[compression])))
    source = inspect_source("-")
    assert source == inspect_source("-")
    assert (source.size, source.compression, source.cuttable) == (None, compression, False)
    assert b"".join(block.tobytes() for block in source.blocks(1000)) == READS


def test_stdin__can_be_read_once_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(b">old\nA\n")))
    inspect_source("-")
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(READS)))
    source = inspect_source("-")
    assert [block.tobytes() for block in source.blocks(1 << 20)] == [READS]
    with pytest.raises(InputError, match=r"-: a pipe can be read only once"):
        next(source.blocks(1000))


def test_stdin__closed_or_empty_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for standard, problem in (
        (None, "standard input is closed"), (Standard(io.BytesIO(b"")), "is empty")
    ):  # fmt: skip
        monkeypatch.setattr(sys, "stdin", standard)
        with pytest.raises(InputError, match=f"^-: {problem}"):
            inspect_source("-")


@pytest.mark.process
@pytest.mark.parametrize("compression", ["none", "bgzf"])
def test_stdin__of_a_slow_writer_is_read_to_its_end(compression: str) -> None:
    """A non-blocking pipe has "nothing yet" between the pieces, which is not its end."""
    code = (
        "import os, sys\n"
        "os.set_blocking(0, False)\n"
        "from multigpu.formats.sequences.registry import SEQUENCES\n"
        "from multigpu.formats.storage.sources import inspect_source\n"
        "for block in inspect_source('-', SEQUENCES).blocks(10_000):\n"
        "    sys.stdout.buffer.write(block)\n"
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


@pytest.mark.parametrize("stored", [STORED["gzip"], b"no reads"])
def test_fifo__of_process_substitution_is_read_or_closed(tmp_path: Path, stored: bytes) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(stored,))
    writer.start()
    assert expand([str(path)]) == [str(path)]
    if stored == b"no reads":
        with pytest.raises(InputError, match=r"fifo: neither FASTQ nor FASTA"):
            inspect_source(str(path))
        assert not stored_streams.pipes
    else:
        assert content(str(path)) == READS
    writer.join(10)


@pytest.mark.parametrize("stored", [STORED["gzip"][:-1], STORED["bgzf"][:-28], STORED["zstd"][:-1]])
def test_stdin__that_ends_early_is_an_error(monkeypatch: pytest.MonkeyPatch, stored: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", Standard(io.BytesIO(stored)))
    with pytest.raises(InputError, match=f"^-: .* {TRUNCATED}"):
        content("-")
