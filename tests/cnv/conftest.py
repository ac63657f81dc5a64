"""A cohort as a file, and runs of `multigpu cnv`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.cohorts import cohort
from support.program import Run

from multigpu.formats.tables.counts_files import write_counts

Cnv = Callable[..., tuple[int, str]]
Refused = Callable[..., str]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "counts.parquet")
    write_counts(path, cohort()[0])
    return path


@pytest.fixture
def run_cnv(main: Run) -> Cnv:
    """Return a function that runs the real `main`; it returns the exit status and the messages."""

    def run(*arguments: str) -> tuple[int, str]:
        ended = main("cnv", *arguments)
        assert ended.out == ""
        return ended.status, ended.err

    return run


@pytest.fixture
def refused(run_cnv: Cnv, tmp_path: Path) -> Refused:
    """Return a function that returns the one line of a refusal, which leaves no folder."""

    def run(*arguments: str) -> str:
        status, said = run_cnv("-o", str(tmp_path / "refused"), "--gpus", "none", *arguments)
        assert status == 2, said
        assert not (tmp_path / "refused").exists()
        (line,) = said.splitlines()
        assert line.startswith("multigpu: error: ")
        return line.removeprefix("multigpu: error: ")

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """A text as a file."""

    def store(text: str, name: str = "input.tsv") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return store
