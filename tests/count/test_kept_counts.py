"""Counts that an interrupted run keeps, and when they are made again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bams import random_rows, write_alignments
from support.counted import ROWS

from multigpu import count
from multigpu.formats.alignments.regions import windows
from multigpu.run.options import RunOptions
from multigpu.workloads.count.job import CountJob, KeptCounts
from multigpu.workloads.count.options import CountOptions


def counts(folder: Path, *paths: str, **options: Any) -> Any:
    """Count files in windows of 7,000 bases, and keep the counts."""
    job = CountJob(paths, CountOptions(**{"window": 7000, **options}), RunOptions())
    job.keep_in = str(folder)
    return job.counts().values


def kept(folder: Path) -> KeptCounts:
    """Return what is kept for windows of 1,000 bases."""
    return KeptCounts(str(folder), windows([("chr1", 60_000)], 1000), [0], CountOptions().counting)


def test_job__counts_only_files_that_are_new(tmp_path: Path, some: str) -> None:
    other, third = (write_alignments(tmp_path / f"{k}.bam", random_rows(300, k)) for k in (3, 4))
    folder = tmp_path / "kept"
    first = counts(folder, some, other)
    for path in folder.iterdir():
        with np.load(path) as file:
            values = file["counts"]
        np.savez(path.with_suffix(""), counts=values + 1000)  # so that it shows
    again = counts(folder, some, third, other)
    assert (again[:, [0, 2]] == first + 1000).all()
    assert (again[:, 1] == count(third, window=7000).values[:, 0]).all()
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("change", [
    {"window": 7001}, {"min_mapq": 2}, {"remove_duplicates": True}, {"read_width": 2},
    {"get_width": True}, {"stranded_start": True}, {"chromosomes": ["chr2", "chr1"]},
])  # fmt: skip
def test_job__with_a_change_counts_again(tmp_path: Path, some: str, change: dict[str, Any]) -> None:
    folder = tmp_path / "kept"
    counts(folder, some)
    found = counts(folder, some, **change)
    assert (found == count(some, **{"window": 7000, **change}).values).all()
    assert len(list(folder.iterdir())) == 2


def test_kept_counts__know_the_content_and_not_the_name(tmp_path: Path, some: str) -> None:
    folder = tmp_path / "kept"
    counts(folder, some)
    moved = Path(some).rename(tmp_path / "moved.bam")
    counts(folder, str(moved))
    assert len(list(folder.iterdir())) == 1
    write_alignments(moved, ROWS[1:])
    counts(folder, str(moved))
    assert len(list(folder.iterdir())) == 2


def test_kept_counts__that_are_damaged_or_other_are_not_there(tmp_path: Path, some: str) -> None:
    values, folder = np.arange(60, dtype=np.int32), tmp_path / "kept"
    kept(folder).put(some, values)
    (entry,) = folder.iterdir()
    good = entry.read_bytes()
    for at in range(len(good)):
        entry.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        found = kept(folder).get(some)
        assert found is None or (found == values).all()
    for damage in (b"", b"nothing", b"PK\x03\x04", good[:-5]):
        entry.write_bytes(damage)
        assert kept(folder).get(some) is None
    for wrong in (values[1:], -values):
        kept(folder).put(some, wrong)
        assert kept(folder).get(some) is None
