"""A cohort as a file."""

from pathlib import Path

import pytest
from support.cohorts import cohort

from multigpu.formats.tables.counts_files import write_counts


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "counts.parquet")
    write_counts(path, cohort()[0])
    return path
