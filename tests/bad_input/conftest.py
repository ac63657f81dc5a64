"""Scans that are refused, and such that are not."""

from pathlib import Path

import pytest
from bad_input.given import SIGNATURES, Refused, Store
from support.program import Run


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
        # What was finished of samples before the wrong one is kept for a run that continues.
        if len(samples) > 1:
            (folder / ".hits.tsv.journal").unlink(missing_ok=True)
        assert list(folder.iterdir()) == []
        assert (ended.status, ended.out) == (2, "")
        return ended.problem

    return run
