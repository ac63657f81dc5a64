"""Runs that are stopped in every way, and go on to the same bytes."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from faults.harness import Job, Run, left, resize, run

WELL_UNDER_WAY = 5_000  # bytes of a journal: some dozen parts


def stopped(job: Job, folder: Path, number: signal.Signals, *more: str) -> Run:
    """A run that got a signal when its journal had some parts."""
    disturbed = Run(job, folder, *more)
    assert disturbed.until(lambda: disturbed.journaled(WELL_UNDER_WAY))
    disturbed.send(number)
    return disturbed


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["threads", "processes"])
def test_client__killed_leaves_nothing_under_the_name_and_resumes(
    job: Job, undisturbed: bytes, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    ended = stopped(job, tmp_path, signal.SIGKILL, *workers).ended()
    assert ended.status == -signal.SIGKILL
    assert job.output not in left(tmp_path)
    again = run(job, tmp_path, "--resume", "--summary", str(tmp_path / "summary.json"), *workers)
    assert (again.status, again.err) == (0, "")
    assert (tmp_path / job.output).read_bytes() == undisturbed
    assert '"resumed": 0' not in (tmp_path / "summary.json").read_text()
    assert left(tmp_path) == sorted([job.output, "summary.json"])


def test_interrupted__run_resumes(job: Job, undisturbed: bytes, tmp_path: Path) -> None:
    ended = stopped(job, tmp_path, signal.SIGINT).ended()
    assert ended.status == 130
    assert "--resume continues from there" in ended.err
    assert left(tmp_path) == [f".{job.output}.journal"]
    assert run(job, tmp_path, "--resume").status == 0
    assert (tmp_path / job.output).read_bytes() == undisturbed
    assert left(tmp_path) == [job.output]


def hearing() -> None:
    """These tests may themselves run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["threads", "processes"])
def test_run__that_a_batch_system_ends_is_kept_and_leaves_nothing_else(
    job: Job, tmp_path: Path, workers: tuple[str, ...], number: signal.Signals
) -> None:
    """To all processes, as these send it, and again, as systemd does."""
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    out.mkdir()
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    disturbed = Run(job, out, *workers, env=environment, preexec_fn=hearing)
    assert disturbed.until(lambda: disturbed.journaled(WELL_UNDER_WAY))
    os.killpg(disturbed.pid, number)
    time.sleep(0.1)  # of two at once the lower number would be first
    disturbed.send(signal.SIGHUP)
    ended = disturbed.ended()
    assert ended.status == 128 + number
    assert [line for line in ended.err.splitlines() if line] == [
        "multigpu: finished chunks are kept: --resume continues from there",
        f"multigpu: error: ended by {number.name}",
    ]
    assert left(out) == [f".{job.output}.journal"]
    assert left(scratch) == []


def test_nohup__is_heeded(job: Job, undisturbed: bytes, tmp_path: Path) -> None:
    ignoring = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    disturbed = Run(job, tmp_path, preexec_fn=ignoring)
    assert disturbed.until(lambda: disturbed.journaled(WELL_UNDER_WAY))
    disturbed.send(signal.SIGHUP)
    assert disturbed.ended().status == 0
    assert (tmp_path / job.output).read_bytes() == undisturbed


def test_resume__of_nothing_is_a_run(job: Job, undisturbed: bytes, tmp_path: Path) -> None:
    assert run(job, tmp_path, "--resume").status == 0
    assert (tmp_path / job.output).read_bytes() == undisturbed


def test_run__without_resume_begins_anew_and_says_so(
    job: Job, undisturbed: bytes, tmp_path: Path
) -> None:
    stopped(job, tmp_path, signal.SIGKILL).ended()
    ended = run(job, tmp_path)
    assert ended.status == 0
    assert ended.err == (
        "multigpu: starting over; --resume would have continued the interrupted run\n"
    )
    assert (tmp_path / job.output).read_bytes() == undisturbed


def test_resume__does_most_of_a_run_killed_near_its_end_in_little_time(
    job: Job, undisturbed: bytes, tmp_path: Path
) -> None:
    """Of what is computed at all: how many chunks are run again."""
    whole = Run(job, tmp_path)
    sizes = [0]
    whole.until(lambda: sizes.append(_size(whole.journal)))
    assert whole.ended().status == 0
    (tmp_path / job.output).unlink()
    most = Run(job, tmp_path)
    assert most.until(lambda: most.journaled(int(0.9 * max(sizes))))
    most.send(signal.SIGKILL)
    most.ended()
    assert run(job, tmp_path, "--resume", "--summary", str(tmp_path / "summary")).status == 0
    assert (tmp_path / job.output).read_bytes() == undisturbed
    chunks = json.loads((tmp_path / "summary").read_text())["chunks"]
    assert chunks["resumed"] >= 0.85 * chunks["run"]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# ---- what must not be mixed -------------------------------------------------------------------


def test_resume__with_a_changed_input_is_refused(job: Job, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "out").mkdir()
    copy = Path(shutil.copy(job.inputs[0], tmp_path / "data"))
    arguments = tuple(str(copy) if a == str(job.inputs[0]) else a for a in job.arguments)
    moved = Job(job.name, arguments, job.output, (copy,))
    stopped(moved, tmp_path / "out", signal.SIGKILL).ended()
    before = (tmp_path / "out" / f".{job.output}.journal").read_bytes()
    with copy.open("ab") as file:
        file.write(copy.read_bytes()[:10])
    ended = run(moved, tmp_path / "out", "--resume")
    assert ended.status == 2
    assert f"this run cannot be resumed: input {copy} was " in ended.err
    assert ended.err.count("\n") == 1
    assert (tmp_path / "out" / f".{job.output}.journal").read_bytes() == before


def test_resume__with_another_option_is_refused(job: Job, tmp_path: Path) -> None:
    if job.name != "scan":
        pytest.skip("one job's options are enough")
    stopped(job, tmp_path, signal.SIGKILL).ended()
    ended = run(job, tmp_path, "--resume", "--strand", "both")
    assert ended.status == 2
    assert "cannot be resumed: option strand was forward, is both" in ended.err


def test_two_runs__of_one_output_at_a_time_are_refused(
    job: Job, undisturbed: bytes, tmp_path: Path
) -> None:
    first = Run(job, tmp_path)
    assert first.until(lambda: first.journaled(WELL_UNDER_WAY))
    first.send(signal.SIGSTOP)  # it must not end before the second one begins
    second = run(job, tmp_path)
    first.send(signal.SIGCONT)
    assert second.status == 2
    assert "another run is writing it" in second.err
    assert first.ended().status == 0
    assert (tmp_path / job.output).read_bytes() == undisturbed


# ---- disks ------------------------------------------------------------------------------------


def test_full_disk__is_told_and_resumed_when_there_is_room(
    job: Job, undisturbed: bytes, small_disk: Path
) -> None:
    ended = run(job, small_disk)
    assert ended.status == 2
    assert "the disk is full (no space left on device)" in ended.err
    assert left(small_disk) == [f".{job.output}.journal"]
    again = run(job, small_disk, "--resume")
    assert (again.status, left(small_disk)) == (2, [f".{job.output}.journal"])
    resize(small_disk, "100m")
    assert run(job, small_disk, "--resume").status == 0
    assert (small_disk / job.output).read_bytes() == undisturbed
    assert left(small_disk) == [job.output]


def test_output_folder__that_vanishes_is_told(job: Job, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    disturbed = Run(job, tmp_path / "out")
    assert disturbed.until(lambda: disturbed.journaled(WELL_UNDER_WAY))
    shutil.rmtree(tmp_path / "out")
    ended = disturbed.ended()
    assert ended.status == 1
    assert f"{tmp_path / 'out' / job.output}: cannot be written: no such file" in ended.err
    assert ended.err.count("multigpu: error:") == 1
    assert "--resume" not in ended.err  # the journal was in the folder
