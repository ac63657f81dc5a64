"""What a run tells while it runs: its log, its timeline, its progress."""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.program import Run, program

from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.errors import DiskFull, Failure, UsageError
from multigpu.cluster.workers import history
from multigpu.run.progress import Progress
from multigpu.run.trace import Timeline, log_events, record_timeline


def finished(chunk: int, worker: str, begin: float) -> Event:
    names = ("load", "compute", "finish")
    steps = [[name, begin + at, begin + at + 1, 7] for at, name in enumerate(names)]
    details = {"chunk": chunk, "worker": worker, "device": "gpu0", "steps": steps}
    return Event("finished", begin + 3, details)


def test_log__has_a_line_for_every_event_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with log_events(str(path)) as log:
        log(Event("split", 1.5, {"chunk": 3, "bytes": 10}))
        assert json.loads(path.read_text()) == {
            "event": "split", "at": 1.5, "chunk": 3, "bytes": 10,
        }  # fmt: skip
        log(finished(4, "a", 2.0))
        assert path.read_text().count("\n") == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_log__that_cannot_be_written_is_told() -> None:
    full = r"^/dev/full: cannot be written: the disk is full"
    with log_events("/dev/full") as log, pytest.raises(DiskFull, match=full):
        log(Event("split"))


def test_timeline__has_a_process_a_device_and_its_steps_where_they_were() -> None:
    timeline = Timeline()
    timeline(finished(0, "a", 10.0))
    timeline(finished(1, "b", 10.5))
    timeline(Event("written", 14.0, {"begin": 13.5}))
    timeline(Event("retired", 15.0, {"worker": "b"}))
    events = json.loads(timeline.dump())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {1: "a gpu0", 2: "b gpu0", 3: "output"}
    steps = [event for event in events if event["ph"] == "X"]
    spans = [(e["pid"], e["name"], e["ts"], e["dur"]) for e in steps]
    names_in_order = enumerate(["load", "compute", "finish"])
    assert spans[:3] == [(1, name, (10 + at) * 1e6, 1e6) for at, name in names_in_order]
    assert spans[-1] == (3, "write", 13.5e6, 0.5e6)
    assert [e["name"] for e in events if e["ph"] == "i"] == ["retired"]


def test_progress__shows_the_run_and_every_device() -> None:
    stats = SimpleNamespace(chunks=3, resumed=1)
    job: Any = SimpleNamespace(stats=stats, chunks=12, devices=())
    with Progress(job, "scan", lambda: "5 matches", drawn=True) as progress:
        progress(finished(2, "one", 10.0))
        progress(finished(9, "two", 10.0))
        lines = progress._lines()
    assert lines[0].startswith("scan  3 of 12 chunks  5 matches  ")
    assert lines[0].endswith(" left")
    assert [line.split()[0] for line in lines[1:]] == ["one", "two"]
    assert "chunk 9" in lines[2]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """That shows when the timeline is written."""

    def full(path: str) -> None:
        raise DiskFull(f"{path}: cannot be written: the disk is full")

    monkeypatch.setattr("multigpu.run.trace.atomic_output", full)


@pytest.mark.usefixtures("full_disk")
def test_timeline__that_cannot_be_written_does_not_cover_up_what_went_wrong() -> None:
    with pytest.raises(KeyboardInterrupt), record_timeline("trace"):
        raise KeyboardInterrupt
    with pytest.raises(DiskFull, match=r"^trace: cannot be written"), record_timeline("trace"):
        pass


def scan_arguments(main: Run, folder: Path) -> list[str]:
    (folder / "samples.fq").write_text("@r\nACGTACGT\n+\nIIIIIIII\n")
    (folder / "signatures.fa").write_text(">s\nGTAC\n")
    return ["scan", f"{folder}/samples.fq", "-s", f"{folder}/signatures.fa", "-o", "hits.tsv"]


def cnv_arguments(main: Run, folder: Path) -> list[str]:
    cohort = ("--regions", "300", "--samples", "6", "--chromosomes", "2", "--cnvs", "4")
    assert main("simulate", "counts", *cohort, "-o", f"{folder}/counts.tsv").status == 0
    return ["cnv", f"{folder}/counts.tsv", "--no-report", "--no-matrices", "--no-vcf", "-o", "out"]


def dock_arguments(main: Run, folder: Path) -> list[str]:
    assert main("simulate", "ligands", "--count", "2", "-o", f"{folder}/ligands.sdf").status == 0
    grid = ("--points", "10", "--spacing", "1.5")
    assert main("simulate", "pocket", *grid, "-o", f"{folder}/pocket.npz").status == 0
    search = ["--pocket", f"{folder}/pocket.npz", "--precision", "40", "--quiet"]
    return ["dock", f"{folder}/ligands.sdf", *search, "-o", "poses.sdf"]


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize(
    ("arguments", "result", "journal"),
    [
        (scan_arguments, "hits.tsv", ".hits.tsv.journal"),
        (cnv_arguments, "out/cnvs.tsv", "out/.part"),
        (dock_arguments, "poses.sdf", ".poses.sdf.journal"),
    ],
    ids=["scan", "cnv", "dock"],
)
def test_timeline__that_cannot_be_written_costs_nothing_of_the_result(
    main: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Callable[[Run, Path], list[str]],
    result: str,
    journal: str,
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    ended = main(*arguments(main, tmp_path), "--gpus", "none", "--trace", "trace")
    assert (ended.status, ended.problem) == (2, "trace: cannot be written: the disk is full")
    assert (tmp_path / "run" / result).exists()
    assert not (tmp_path / "run" / journal).exists()  # nothing is left to be gone on with


@pytest.mark.parametrize("kind", [DiskFull, UsageError, Failure])
def test_summary__that_cannot_be_written_keeps_the_journal_until_it_is(
    main: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Failure]
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    command = [*scan_arguments(main, tmp_path), "--gpus", "none"]

    def full(path: str) -> None:
        raise kind(f"{path}: cannot be written")

    with monkeypatch.context() as patch:
        patch.setattr("multigpu.run.summary.compressed_output", full)
        ended = main(*command, "--summary", "summary.json")
    assert (ended.status, ended.problem) == (kind.exit_status, "summary.json: cannot be written")
    folder = tmp_path / "run"
    rows = (folder / "hits.tsv").read_bytes()
    assert (folder / ".hits.tsv.journal").exists()
    assert main(*command, "--resume", "--summary", "summary.json").status == 0
    assert json.loads((folder / "summary.json").read_text())["chunks"]["resumed"] == 1
    assert (folder / "hits.tsv").read_bytes() == rows
    assert sorted(path.name for path in folder.iterdir()) == ["hits.tsv", "summary.json"]


def test_durations__do_not_follow_a_clock_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forwards or back, by hours: neither steps nor events, and nothing that progress says."""
    before = now()
    for jump in (-7200.0, 7200.0):
        clock = time.time() + jump
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        assert 0 <= now() - before < 60
        assert 0 <= Event("split").at - before < 60
        history.HISTORY.start()
        with history.step("model"):
            monkeypatch.setattr(time, "time", lambda clock=clock: clock - 3600)
        (step,) = history.HISTORY.steps
        assert 0 <= step.end - step.begin < 60
        monkeypatch.undo()
    stats = SimpleNamespace(chunks=6, resumed=0)
    job: Any = SimpleNamespace(stats=stats, chunks=12, devices=())
    with Progress(job, "scan", lambda: "5 matches", drawn=False) as progress:
        monkeypatch.setattr(time, "time", lambda: clock + 36_000)
        progress(finished(2, "one", 10.0))
        lines = progress._lines()
    assert lines[0].endswith("  0:00 left")
    assert re.match(r"one gpu0 +\d+% computing", lines[1])


def test_progress__in_a_file_is_a_line_at_once_then_now_and_then_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("multigpu.run.progress.PRINTED_EVERY", 0.02)
    stats = SimpleNamespace(chunks=0, resumed=0)
    job: Any = SimpleNamespace(stats=stats, chunks=12, devices=())
    with Progress(job, "scan", lambda: "5 matches", drawn=sys.stderr.isatty()) as progress:
        assert capsys.readouterr().err == "scan  0 of 12 chunks  5 matches\n"
        stats.chunks = 6
        progress(finished(2, "one", 10.0))
        time.sleep(0.3)
        said = capsys.readouterr().err.splitlines()
        assert len(said) > 1  # without any event
        assert said[-1].startswith("scan  6 of 12 chunks  5 matches  0:0")
        monkeypatch.setattr("multigpu.run.progress.PRINTED_EVERY", 60.0)
        stats.chunks = 12
    assert capsys.readouterr().err.splitlines()[-1].startswith("scan  12 of 12 chunks")


@pytest.mark.process
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["threads", "processes"])
def test_scan__writes_its_log_and_its_timeline(tmp_path: Path, workers: tuple[str, ...]) -> None:
    records = "".join(f"@r{n}\n{'ACGT' * 50}\n+\n{'I' * 200}\n" for n in range(400))
    (tmp_path / "samples.fq").write_text(records)
    (tmp_path / "signatures.fa").write_text(">s\nCGTACGTA\n")
    ended = program(
        "scan", "samples.fq", "-s", "signatures.fa", "-o", "hits", "--gpus", "none",
        "--max-chunk-bytes", "20000", "--log-json", "log", "--trace", "trace", *workers,
        cwd=tmp_path,
    )  # fmt: skip
    assert ended.status == 0, ended.err
    events = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    count = len([event for event in events if event["event"] == "finished"])
    assert events[0]["event"] == "planned"
    assert events[0]["chunks"] == count > 5
    assert len(events[0]["workers"]) == max(1, 2 * bool(workers))
    assert [e["chunk"] for e in events if e["event"] == "started"] == list(range(count))
    trace = json.loads((tmp_path / "trace").read_text())["traceEvents"]
    assert len([event for event in trace if event.get("name") == "compute"]) == count
    assert "write" in {event["name"] for event in trace}
