"""Standard input and pipes."""

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.program import ROOT
from support.stored import CUT, READS, STORED, TRUNCATED, content, expand, inspect_source

from multigpu.errors import InputError
from multigpu.formats.storage import stored_streams


@pytest.fixture(autouse=True)
def no_pipes_left() -> Iterator[None]:
    yield
    while stored_streams.pipes:
        stored_streams.pipes.popitem()[1].close()


Use = Callable[[bytes], None]


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Puts bytes on standard input."""

    def use(stored: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stored)))

    return use


@pytest.mark.parametrize("compression", STORED)
def test_stdin__loses_nothing_to_inspect(stdin: Use, compression: str) -> None:
    stdin(STORED[compression])
    source = inspect_source("-")
    assert source == inspect_source("-")
    assert (source.size, source.compression, source.cuttable) == (None, compression, False)
    assert b"".join(block.tobytes() for block in source.blocks(1000)) == READS


def test_stdin__can_be_read_once_in_each_run(stdin: Use) -> None:
    stdin(b">old\nA\n")
    inspect_source("-")
    stdin(READS)
    source = inspect_source("-")
    assert [block.tobytes() for block in source.blocks(1 << 20)] == [READS]
    with pytest.raises(InputError, match=r"-: a pipe can be read only once"):
        next(source.blocks(1000))


def test_stdin__closed_or_empty_is_an_error(stdin: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(b"")
    for problem in ("is empty", "standard input is closed"):
        with pytest.raises(InputError, match=f"^-: {problem}"):
            inspect_source("-")
        monkeypatch.setattr(sys, "stdin", None)


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
    command, stored = [sys.executable, "-c", code], STORED[compression]
    reading, writing = os.pipe()
    with subprocess.Popen(command, cwd=ROOT, stdin=reading, stdout=subprocess.PIPE) as process:
        for start, stop in ((0, 1), (1, 700), (700, len(stored))):
            os.write(writing, stored[start:stop])
            time.sleep(0.2)
        os.close(writing)
        assert process.communicate()[0] == READS
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


@pytest.mark.parametrize("stored", CUT)
def test_stdin__that_ends_early_is_an_error(stdin: Use, stored: bytes) -> None:
    stdin(stored)
    with pytest.raises(InputError, match=f"^-: .* {TRUNCATED}"):
        content("-")
