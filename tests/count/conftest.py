"""An alignment file, regions, and the command that refuses them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.bams import write_alignments
from support.counted import ROWS, Run
from support.program import Ended


@pytest.fixture
def refused(main: Callable[..., Ended], tmp_path: Path) -> Run:
    """The one line that the program says before it ends with status 2 and without output."""

    def run(*arguments: str) -> str:
        output = tmp_path / "refused.tsv"
        ended = main("count", "-o", str(output), *arguments)
        assert (ended.status, ended.out) == (2, "")
        assert not output.exists()
        return ended.problem

    return run


@pytest.fixture
def some(tmp_path: Path) -> str:
    """A BAM file with its index."""
    return write_alignments(tmp_path / "some.bam", ROWS)


@pytest.fixture
def bed(tmp_path: Path) -> Callable[..., str]:
    def write(*rows: tuple[str, int, int]) -> str:
        path = tmp_path / "regions.bed"
        path.write_text("".join(f"{name}\t{start}\t{end}\n" for name, start, end in rows))
        return str(path)

    return write
