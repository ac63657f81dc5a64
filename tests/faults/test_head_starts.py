"""Runs that threads of the program begin and worker processes end, and what may happen to them."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from faults.harness import ROOT, Job, Run, left, run

PROGRAM = Path(__file__).with_name("head_started.py")


class HeadStarted(Job):
    """A job with a head start."""

    def command(self, folder: Path, *more: str) -> list[str]:
        usual = super().command(folder, *more)
        return [sys.executable, str(PROGRAM), *usual[3:]]  # instead of python -m multigpu


@pytest.fixture
def begun(job: Job) -> Job:
    return HeadStarted(job.name, job.arguments, job.output, job.inputs)


def workers_of(log: Path) -> set[str]:
    """Who finished chunks."""
    events = map(json.loads, log.read_text().splitlines())
    return {event["worker"] for event in events if event["event"] == "finished"}


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def test_run__that_workers_end_gives_the_same_bytes(
    begun: Job, undisturbed: bytes, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    ended = run(begun, tmp_path, "--log-json", str(log), env=environment())
    assert (ended.status, ended.err) == (0, "")
    assert (tmp_path / begun.output).read_bytes() == undisturbed
    assert len(workers_of(log)) > 1


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 0), (signal.SIGKILL, 2)])
def test_run__that_is_ended_is_gone_on_with(
    begun: Job, undisturbed: bytes, tmp_path: Path, number: signal.Signals, workers: int
) -> None:
    """Before workers have come, and when they are there."""
    first = Run(begun, tmp_path, env=environment())
    assert first.until(lambda: first.journaled(2000) and len(first.children()) >= workers)
    first.send(number)
    ended = first.ended()
    assert ended.status == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert begun.output not in left(tmp_path)
    ended = run(begun, tmp_path, "--resume", env=environment())
    assert (ended.status, ended.err) == (0, "")
    assert (tmp_path / begun.output).read_bytes() == undisturbed
    assert left(tmp_path) == [begun.output]


def test_worker__that_is_killed_changes_nothing(
    begun: Job, undisturbed: bytes, tmp_path: Path
) -> None:
    """It is killed while it starts: no other comes, and the program does all of the run alone."""
    first = Run(begun, tmp_path, env=environment(SLOW="0.02"))
    assert first.until(lambda: len(first.children()) >= 2)
    first.children()[0].kill()
    assert first.ended().status == 0
    assert (tmp_path / begun.output).read_bytes() == undisturbed
