"""What a run tells while it runs: its log and its progress, and its summary."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.program import Run, program

from multigpu.cluster.engine import events
from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.errors import DiskFull, Failure, UsageError
from multigpu.run.command import log_events
from multigpu.run.progress import progress_line, progress_shown


def test_log__has_a_line_for_every_event_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with log_events(str(path)) as log:
        log(Event("split", 1.5, {"chunk": 3, "bytes": 10}))
        wanted = {"event": "split", "at": 1.5, "chunk": 3, "bytes": 10}
        assert json.loads(path.read_text()) == wanted
        log(Event("written", 2.0))
        assert path.read_text().count("\n") == 2
    full = r"^/dev/full: cannot be written: the disk is full"
    with log_events("/dev/full") as log, pytest.raises(DiskFull, match=full):
        log(Event("split"))


@pytest.mark.parametrize("kind", [DiskFull, UsageError, Failure])
def test_summary__that_cannot_be_written_keeps_the_journal_until_it_is(
    main: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Failure]
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    (tmp_path / "samples.fq").write_text("@r\nACGTACGT\n+\nIIIIIIII\n")
    (tmp_path / "signatures.fa").write_text(">s\nGTAC\n")
    scan = ("scan", "../samples.fq", "-s", "../signatures.fa", "-o", "hits.tsv", "--gpus", "none")

    def full(path: str) -> None:
        raise kind(f"{path}: cannot be written")

    with monkeypatch.context() as patch:
        patch.setattr("multigpu.run.summary.compressed_output", full)
        ended = main(*scan, "--summary", "summary.json")
    assert (ended.status, ended.problem) == (kind.exit_status, "summary.json: cannot be written")
    folder = tmp_path / "run"
    rows = (folder / "hits.tsv").read_bytes()
    assert (folder / ".hits.tsv.journal").exists()
    assert main(*scan, "--resume", "--summary", "summary.json").status == 0
    assert json.loads((folder / "summary.json").read_text())["chunks"]["resumed"] == 1
    assert (folder / "hits.tsv").read_bytes() == rows
    assert sorted(path.name for path in folder.iterdir()) == ["hits.tsv", "summary.json"]


def test_durations__do_not_follow_a_clock_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forwards or back, by hours: neither steps nor events."""
    before = now()
    for jump in (-7200.0, 7200.0):
        clock = time.time() + jump
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        assert 0 <= now() - before < 60
        assert 0 <= Event("split").at - before < 60
        events.HISTORY.start()
        with events.step("model"):
            monkeypatch.setattr(time, "time", lambda clock=clock: clock - 3600)
        (step,) = events.HISTORY.steps
        assert 0 <= step.end - step.begin < 60
        monkeypatch.undo()


def test_progress__says_what_is_done_and_how_long_the_rest_takes() -> None:
    job: Any = SimpleNamespace(stats=SimpleNamespace(chunks=3, resumed=1), chunks=12)
    line = progress_line(job, "scan", "5 matches", 20.0)
    assert line == "scan  3 of 12 chunks  5 matches  1:30 left"
    job.chunks = None
    assert progress_line(job, "scan", "5 matches", 20.0) == "scan  3 chunks  5 matches"


def test_progress__in_a_file_is_a_line_at_once_then_now_and_then_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("multigpu.run.progress.PRINTED_EVERY", 0.02)
    stats = SimpleNamespace(chunks=0, resumed=0)
    job: Any = SimpleNamespace(stats=stats, chunks=12)
    with progress_shown(job, "scan", lambda: "5 matches", drawn=False):
        assert capsys.readouterr().err == "scan  0 of 12 chunks  5 matches\n"
        stats.chunks = 6
        time.sleep(0.3)
        said = capsys.readouterr().err.splitlines()
        assert len(said) > 1  # without any event
        assert said[-1].startswith("scan  6 of 12 chunks  5 matches  0:0")
        monkeypatch.setattr("multigpu.run.progress.PRINTED_EVERY", 60.0)
        stats.chunks = 12
    assert capsys.readouterr().err.splitlines()[-1].startswith("scan  12 of 12 chunks")


@pytest.mark.process
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["threads", "processes"])
def test_scan__writes_its_log(tmp_path: Path, workers: tuple[str, ...]) -> None:
    records = "".join(f"@r{n}\n{'ACGT' * 50}\n+\n{'I' * 200}\n" for n in range(400))
    (tmp_path / "samples.fq").write_text(records)
    (tmp_path / "signatures.fa").write_text(">s\nCGTACGTA\n")
    ended = program(
        "scan", "samples.fq", "-s", "signatures.fa", "-o", "hits", "--gpus", "none",
        "--max-chunk-bytes", "20000", "--log-json", "log", *workers,
        cwd=tmp_path,
    )  # fmt: skip
    assert ended.status == 0, ended.err
    events = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    count = len([event for event in events if event["event"] == "finished"])
    assert events[0]["event"] == "planned"
    assert events[0]["chunks"] == count > 5
    assert len(events[0]["workers"]) == max(1, 2 * bool(workers))
    assert [e["chunk"] for e in events if e["event"] == "started"] == list(range(count))
