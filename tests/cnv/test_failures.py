"""A run that cannot be, and one that fails: what is said, and what is left."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
import zarr
from support.bams import write_alignments
from support.cohorts import cohort
from support.program import Run

from multigpu.formats.tables.counts_files import write_counts
from multigpu.workloads.cnv.results import matrices
from multigpu.workloads.cnv.work import CnvSession
from multigpu.workloads.count.job import CountJob

FEW = ("--no-matrices", "--no-report", "--gpus", "none")


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "counts.parquet")
    write_counts(path, cohort()[0])
    return path


BOTH = (
    "a is a case and a control: rename one of them, or leave one out (--sample-names are those of"
    " the cases)"
)
WRONG = {
    "sexes": (("--sex", "absent.txt"), "absent.txt: cannot be read: there is no such file"),
    "a sample": (("--sex", "{facts}"), "--sex names sample 'zz', which is not in the counts"),
    "ploidies": (("--ploidy", "absent.txt"), "absent.txt: cannot be read: there is no such file"),
    "no controls": (("--model", "reference"), "--model reference needs --controls"),
    "single": (
        ("--model", "single"),
        "--model single takes one sample, not 2: use --model cn.mops",
    ),
    "controls": (("--controls", "{other}"), "--controls are for --model reference only"),
    "both": (("--model", "reference", "--controls", "{first}"), BOTH),
}


@pytest.mark.parametrize("plan", [False, True])
@pytest.mark.parametrize("wrong", WRONG)
def test_refused__before_anything_is_counted(
    main: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, plan: bool
) -> None:
    monkeypatch.setattr(CountJob, "counts", lambda _: pytest.fail("nothing is counted"))
    monkeypatch.chdir(tmp_path)
    rows = [(0, place, 60, "10M", 0) for place in range(0, 90_000, 100)]
    paths = [str(write_alignments(tmp_path / f"{name}.bam", rows)) for name in "abc"]
    (tmp_path / "facts").write_text("zz\tmale\n")
    places = {"facts": "facts", "first": paths[0], "other": paths[2]}
    options, problem = WRONG[wrong]
    given = [option.format_map(places) for option in options]
    where = ("plan", "cnv") if plan else ("cnv", "-o", "out")
    ended = main(*where, *paths[:2], "--window", "1000", "--gpus", "none", *given)
    assert (ended.status, ended.err) == (2, f"multigpu: error: {problem}\n")
    assert not (tmp_path / "out").exists()


def test_error__of_a_library_is_not_told_as_one_of_the_output(
    main: Run, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> None:
        raise OSError("libnvrtc.so.13: cannot open shared object file")

    monkeypatch.setattr(CnvSession, "compute", missing)
    ended = main("cnv", table, "-o", str(tmp_path / "out"), *FEW)
    assert ended.status == 1
    assert "libnvrtc.so.13: cannot open shared object file" in ended.err
    assert "cannot be written" not in ended.err


@pytest.mark.parametrize("step", ["create", "write_rest"])
def test_matrices__that_have_no_room_are_told(
    main: Run, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    place = (zarr, "create_group") if step == "create" else (matrices, "_put")
    monkeypatch.setattr(*place, full)
    ended = main("cnv", table, "-o", str(tmp_path / "out"), "--no-report")
    assert ended.status == 2
    assert "matrices.zarr: cannot be written: the disk is full" in ended.err


def test_coverages__of_one_region_are_none_which_is_all_that_is_said(
    main: Run, tmp_path: Path
) -> None:
    (tmp_path / "one.tsv").write_text("chrom\tstart\tend\ta\tb\nchr1\t0\t10\t1\t2\n")
    ended = main("cnv", str(tmp_path / "one.tsv"), "-o", str(tmp_path / "out"), "--norm", "2", *FEW)
    assert ended.status == 2
    assert ended.err == "multigpu: error: chr1: coverages must be above 0 and finite\n"
