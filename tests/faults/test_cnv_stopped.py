"""Copy-number runs that are stopped, and go on to the same folder."""

import hashlib
import json
import signal
from pathlib import Path

import pytest
from faults.conftest import simulate
from faults.harness import Job, Run, resize, run

UNDER_WAY = 2_000  # bytes of a journal: some chromosomes


class FolderRun(Run):
    @property
    def journal(self) -> Path:
        return self.folder / self.job.output / ".part" / "journal"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    table = tmp_path_factory.mktemp("cnv") / "counts.tsv"
    cohort = ("--regions", 30_000, "--samples", 6, "--chromosomes", 300, "--cnvs", 200)
    simulate("counts", *cohort, "-o", table)
    return Job("cnv", ("cnv", str(table), "--no-report"), "out", (table,))


def digest(folder: Path) -> dict[str, str]:
    """Every file of a result by its content."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.md5(path.read_bytes()).hexdigest() for path in files
    }


@pytest.fixture(scope="module")
def undisturbed(job: Job, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    ended = run(job, folder)
    assert ended.status == 0, ended.err
    return digest(folder / "out")


def stopped(job: Job, folder: Path, number: signal.Signals, *more: str) -> None:
    disturbed = FolderRun(job, folder, *more)
    assert disturbed.until(lambda: disturbed.journaled(UNDER_WAY)), disturbed.ended().err
    disturbed.send(number)
    assert disturbed.ended().status in (130, -signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize(
    "workers",
    [
        pytest.param((), id="threads"),
        pytest.param(("--workers", "2"), id="processes", marks=pytest.mark.slow),
    ],
)
def test_run__that_was_stopped_goes_on_to_the_same_folder(
    job: Job,
    undisturbed: dict[str, str],
    tmp_path: Path,
    number: signal.Signals,
    workers: tuple[str, ...],
) -> None:
    stopped(job, tmp_path, number, *workers)
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name[0] != "."] == []
    again = run(job, tmp_path, "--resume", "--summary", str(tmp_path / "summary"), *workers)
    assert again.status == 0, again.err
    assert json.loads((tmp_path / "summary").read_text())["resumed"] > 0
    assert digest(tmp_path / "out") == undisturbed


def test_run__without_resume_begins_anew(
    job: Job, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    stopped(job, tmp_path, signal.SIGKILL)
    again = run(job, tmp_path, "--summary", str(tmp_path / "summary"))
    assert again.status == 0
    assert "starting over; --resume would have continued" in again.err
    assert json.loads((tmp_path / "summary").read_text())["resumed"] == 0
    assert digest(tmp_path / "out") == undisturbed


def test_resume__with_another_option_is_refused_and_loses_nothing(
    job: Job, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    stopped(job, tmp_path, signal.SIGKILL)
    ended = run(job, tmp_path, "--resume", "--upper", "0.7")
    assert ended.status == 2
    assert "cannot be resumed: option upper was 0.5, is 0.7" in ended.err
    assert run(job, tmp_path, "--resume", "--summary", str(tmp_path / "summary")).status == 0
    assert json.loads((tmp_path / "summary").read_text())["resumed"] > 0
    assert digest(tmp_path / "out") == undisturbed


def test_resume__leaves_out_what_no_run_goes_on_with(
    job: Job, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    stopped(job, tmp_path, signal.SIGKILL)
    part = tmp_path / "out" / ".part"
    (part / "multigpu-counts").mkdir()
    (part / "multigpu-counts" / "counts").write_bytes(b"what workers mapped")
    (part / "figures").mkdir()
    ended = run(job, tmp_path, "--resume")
    assert ended.status == 0, ended.err
    assert digest(tmp_path / "out") == undisturbed
    assert not (tmp_path / "out" / "figures").exists()


def test_folder__that_another_run_writes_is_refused(job: Job, tmp_path: Path) -> None:
    first = FolderRun(job, tmp_path)
    assert first.until(lambda: first.journaled(UNDER_WAY))
    first.send(signal.SIGSTOP)
    second = run(job, tmp_path, "--resume")
    first.send(signal.SIGCONT)
    assert second.status == 2
    assert "another run is writing it" in second.err
    assert first.ended().status == 0


def test_full_disk__is_told_and_resumed_when_there_is_room(
    job: Job, undisturbed: dict[str, str], small_disk: Path
) -> None:
    """First there is no room for the journal, then for matrices or tables."""
    for size in ("1m", "9m"):
        resize(small_disk, size)
        ended = run(job, small_disk, "--resume")
        assert ended.status == 2
        assert "the disk is full (no space left on device)" in ended.err
        assert "--resume continues from there" in ended.err
        assert [path.name for path in (small_disk / "out").iterdir()] == [".part"]
    resize(small_disk, "100m")
    again = run(job, small_disk, "--resume", "--summary", str(small_disk / "summary"))
    assert again.status == 0, again.err
    assert json.loads((small_disk / "summary").read_text())["resumed"] > 0
    assert digest(small_disk / "out") == undisturbed


def test_workers__killed_change_nothing(
    job: Job, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    disturbed = FolderRun(job, tmp_path, "--workers", "2")
    assert disturbed.until(lambda: disturbed.journaled(UNDER_WAY))
    for child in disturbed.children():
        child.kill()
    ended = disturbed.ended()
    assert ended.status == 0, ended.err
    assert digest(tmp_path / "out") == undisturbed
