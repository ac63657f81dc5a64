"""Runs that are stopped in every way, and go on to the same bytes."""

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from faults.conftest import JOBS
from faults.harness import Job, Run, left, resize, run
from support.program import Ended

Results = dict[str, bytes]

with_cnv = pytest.mark.parametrize("job", [*JOBS, "cnv"], indirect=True, scope="session")
only_cnv = pytest.mark.parametrize("job", ["cnv"], indirect=True, scope="session")
WORKERS = pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["threads", "processes"])
SUGGESTIONS = ("note: what may show CNVs", "note: --preset")  # of copy numbers, in every run


def stopped(job: Job, folder: Path, number: signal.Signals, *more: str) -> None:
    """A run that got a signal when its journal had some parts."""
    disturbed = Run(job, folder, *more)
    disturbed.until_under_way()
    disturbed.send(number)
    assert disturbed.ended().status in (130, -signal.SIGKILL)


def said(ended: Ended) -> list[str]:
    """Return what a run said, but for what its copy numbers suggest."""
    return [line for line in ended.lines if not any(each in line for each in SUGGESTIONS)]


def resumed(job: Job, folder: Path, *more: str) -> int:
    """Resume a run; return how many parts it had."""
    summary = folder / "summary.json"
    ended = run(job, folder, "--resume", "--summary", str(summary), *more)
    assert (ended.status, said(ended)) == (0, [])
    facts: dict[str, Any] = json.loads(summary.read_text())
    summary.unlink()
    return int(facts["resumed"] if job.name == "cnv" else facts["chunks"]["resumed"])


def shown(job: Job, folder: Path) -> list[str]:
    """Return what lies in the folder, and in the folder of the output, that is not hidden."""
    names = [*left(folder), *(left(folder / "out") if job.output == "out" else [])]
    return [name for name in names if name[0] != "." and name != "out"]


@with_cnv
@WORKERS
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_run__that_was_stopped_leaves_nothing_under_the_name_and_resumes(
    job: Job, results: Results, tmp_path: Path, number: signal.Signals, workers: tuple[str, ...]
) -> None:
    stopped(job, tmp_path, number, *workers)
    assert shown(job, tmp_path) == []
    assert resumed(job, tmp_path, *workers) > 0
    assert job.result(tmp_path) == results
    assert left(tmp_path) == [job.output]


def hearing() -> None:
    """These tests may themselves run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@WORKERS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_run__that_a_batch_system_ends_is_kept_and_leaves_nothing_else(
    job: Job, tmp_path: Path, workers: tuple[str, ...], number: signal.Signals
) -> None:
    """To all processes, as these send it, and again, as systemd does."""
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    out.mkdir()
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    disturbed = Run(job, out, *workers, env=environment, preexec_fn=hearing)
    disturbed.until_under_way()
    os.killpg(disturbed.pid, number)
    time.sleep(0.1)  # of two at once the lower number would be first
    disturbed.send(signal.SIGHUP)
    ended = disturbed.ended()
    assert ended.status == 128 + number
    assert [line for line in ended.err.splitlines() if line] == [
        "multigpu: finished chunks are kept: --resume continues from there",
        f"multigpu: error: ended by {number.name}",
    ]
    assert left(out) == [job.journal]
    assert left(scratch) == []


def test_nohup__is_heeded(job: Job, results: Results, tmp_path: Path) -> None:
    ignoring = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    disturbed = Run(job, tmp_path, preexec_fn=ignoring)
    disturbed.until_under_way()
    disturbed.send(signal.SIGHUP)
    assert disturbed.ended().status == 0
    assert job.result(tmp_path) == results


@with_cnv
def test_run__without_resume_begins_anew(job: Job, results: Results, tmp_path: Path) -> None:
    stopped(job, tmp_path, signal.SIGKILL)
    ended = run(job, tmp_path)
    assert ended.status == 0
    anew = "multigpu: starting over; --resume would have continued the interrupted run"
    assert said(ended) == [anew]
    assert job.result(tmp_path) == results


@pytest.mark.parametrize(("job", "option", "problem"), [
    ("scan", ("--strand", "both"), "option strand was forward, is both"),
    ("cnv", ("--upper", "0.7"), "option upper was 0.5, is 0.7"),
], indirect=["job"])  # fmt: skip
def test_resume__with_another_option_is_refused_and_loses_nothing(
    job: Job, results: Results, tmp_path: Path, option: tuple[str, ...], problem: str
) -> None:
    stopped(job, tmp_path, signal.SIGKILL)
    ended = run(job, tmp_path, "--resume", *option)
    assert ended.status == 2
    assert f"cannot be resumed: {problem}" in ended.err
    assert resumed(job, tmp_path) > 0
    assert job.result(tmp_path) == results


@only_cnv
def test_resume__leaves_out_what_is_of_no_use(job: Job, results: Results, tmp_path: Path) -> None:
    stopped(job, tmp_path, signal.SIGKILL)
    part = tmp_path / "out" / ".part"
    (part / "multigpu-counts").mkdir()
    (part / "multigpu-counts" / "counts").write_bytes(b"what workers mapped")
    (part / "figures").mkdir()
    assert resumed(job, tmp_path) > 0
    assert job.result(tmp_path) == results
    assert not (tmp_path / "out" / "figures").exists()


@with_cnv
def test_two_runs__of_one_output_are_refused(job: Job, results: Results, tmp_path: Path) -> None:
    first = Run(job, tmp_path)
    first.until_under_way()
    first.send(signal.SIGSTOP)  # it must not end before the second one begins
    second = run(job, tmp_path, "--resume")
    first.send(signal.SIGCONT)
    assert second.status == 2
    assert "another run is writing it" in second.err
    assert first.ended().status == 0
    assert job.result(tmp_path) == results


def test_full_disk__is_told_and_resumed(job: Job, results: Results, small_disk: Path) -> None:
    ended = run(job, small_disk)
    assert ended.status == 2
    assert "the disk is full (no space left on device)" in ended.err
    assert left(small_disk) == [job.journal]
    again = run(job, small_disk, "--resume")
    assert (again.status, left(small_disk)) == (2, [job.journal])
    resize(small_disk, "100m")
    assert run(job, small_disk, "--resume").status == 0
    assert job.result(small_disk) == results
    assert left(small_disk) == [job.output]


@only_cnv
def test_full_disk__under_a_folder_is_told(job: Job, results: Results, small_disk: Path) -> None:
    """First there is no room for the journal, then for matrices or tables."""
    for size in ("1m", "9m"):
        resize(small_disk, size)
        ended = run(job, small_disk, "--resume")
        assert ended.status == 2
        assert "the disk is full (no space left on device)" in ended.err
        assert "--resume continues from there" in ended.err
        assert left(small_disk / "out") == [".part"]
    resize(small_disk, "100m")
    assert resumed(job, small_disk) > 0
    assert job.result(small_disk) == results


def test_output_folder__that_vanishes_is_told(job: Job, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    disturbed = Run(job, tmp_path / "out")
    disturbed.until_under_way()
    shutil.rmtree(tmp_path / "out")
    ended = disturbed.ended()
    assert ended.status == 1
    assert f"{tmp_path / 'out' / job.output}: cannot be written: no such file" in ended.err
    assert ended.err.count("multigpu: error:") == 1
    assert "--resume" not in ended.err  # the journal was in the folder


@only_cnv
def test_workers__killed_change_nothing(job: Job, results: Results, tmp_path: Path) -> None:
    disturbed = Run(job, tmp_path, "--workers", "2")
    disturbed.until_under_way()
    for child in disturbed.children():
        child.kill()
    ended = disturbed.ended()
    assert ended.status == 0, ended.err
    assert job.result(tmp_path) == results
