"""Reads, signatures, and the command on them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.scanned import SIGNATURES, Scan, fasta, fastq

from multigpu.cli import cli


@pytest.fixture
def reads(store: Callable[[str, bytes], str]) -> str:
    return store("reads.fq", fastq())


@pytest.fixture
def signatures(store: Callable[[str, bytes], str]) -> str:
    return store("sig.fa", fasta(SIGNATURES))


@pytest.fixture
def scan(tmp_path: Path, signatures: str) -> Scan:
    """The bytes that the command writes to a file of this name."""

    def run(*samples: str, options: tuple[str, ...] = (), name: str = "hits.tsv") -> bytes:
        output = tmp_path / "out" / name
        output.parent.mkdir(exist_ok=True)
        command = ["scan", *samples, "-o", str(output), "--gpus", "none", *options]
        if not {"-s", "--sample-sheet"}.intersection(options):
            command += ["-s", signatures]
        cli.main(command, standalone_mode=False)
        return output.read_bytes()

    return run
