"""Output that is complete or not there."""

import contextlib
import errno
import io
import os
import platform
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from multigpu.cluster import files
from multigpu.cluster.errors import Failure, UsageError
from multigpu.cluster.files import LOCK, atomic_output, check_output, hold_folder, scratch_folder

WRITE = """
import sys
from multigpu.cluster.errors import Failure
from multigpu.cluster.files import atomic_output
try:
    with atomic_output(sys.argv[1]) as file:
        for _ in range(int(sys.argv[2])):
            file.write(b"x" * 1000)
except Failure as failure:
    print(failure, end="", file=sys.stderr)
    sys.exit(failure.exit_status)
"""
BUFFERED = {**os.environ, "PYTHONUNBUFFERED": ""}
ROOT = Path(__file__).resolve().parents[2]
FULL = "the disk is full (no space left on device)"
QUOTA = "the disk is full (disk quota exceeded)"


def run_write(path: object, kilobytes: int, code: str = WRITE, **more: Any) -> Any:
    """Write to a path, or to standard output, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, str(path), str(kilobytes)], cwd=ROOT, env=BUFFERED,
        timeout=60, check=False, **{"stderr": subprocess.PIPE, **more},
    )  # fmt: skip


class Broken(Exception):
    pass


def write_half(path: Path, error: type[BaseException]) -> None:
    with atomic_output(str(path)) as file:
        file.write(b"x" * 5_000_000)
        file.write(b"x" * 10)  # these wait in the buffer
        raise error("half")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_output__appears_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "hits.tsv"
    with atomic_output(str(path)) as file:
        file.write(b"x" * 5_000_000)
        assert not path.exists()
        (part,) = tmp_path.iterdir()
        assert part.name == ".hits.tsv.part"
        with pytest.raises(UsageError, match=r"hits\.tsv: another run is writing it$"):
            atomic_output(str(path)).__enter__()
    assert path.read_bytes() == b"x" * 5_000_000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("step", "fails"), [("replace", False), ("unlink", True)])
def test_output__is_this_runs_until_it_has_its_name_or_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, fails: bool
) -> None:
    """Before its name another run could begin, and lose one of the two outputs."""
    real, locked = getattr(Path, step), []

    def watched(path: Path, *arguments: Any, **more: Any) -> Any:
        with pytest.raises(UsageError, match="another run is writing it"):
            hold_folder(tmp_path / ".out.part", "out").__enter__()
        locked.append(path.name)
        return real(path, *arguments, **more)

    monkeypatch.setattr(Path, step, watched)
    with contextlib.suppress(Broken), atomic_output(str(tmp_path / "out")) as file:
        file.write(b"x")
        if fails:
            raise Broken
    assert locked[0] == files.NEW
    assert [path.name for path in tmp_path.iterdir()] == ["out"] * (not fails)


@pytest.mark.parametrize("left", [(), (LOCK,), (LOCK, files.NEW)])
def test_output__takes_the_place_of_what_a_run_left(tmp_path: Path, left: tuple[str, ...]) -> None:
    (tmp_path / ".hits.tsv.part").mkdir()
    for name in left:
        (tmp_path / ".hits.tsv.part" / name).write_bytes(b"much longer than what comes now")
    with atomic_output(str(tmp_path / "hits.tsv")) as file:
        file.write(b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("hits.tsv", b"new")]


def take_name(kind: str, name: Path, elsewhere: Path) -> None:
    """Put something at a temporary name that is not a run's, with a file worth keeping."""
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    if kind.startswith("a link"):
        if "temporary" in kind:
            (elsewhere / LOCK).touch()
        name.symlink_to(elsewhere)
    elif kind == "a file":
        name.write_text("kept")
    elif kind == "a name of another file":
        name.hardlink_to(elsewhere / "kept")
    else:
        name.mkdir()
        (name / "kept").write_text("kept")
        if kind == "another user's":
            (name / LOCK).touch()
            os.chown(name, 65534, 65534)


KINDS = [
    "a folder", "a link to a folder", "a link to a temporary folder", "a file",
    "a name of another file", "another user's",
]  # fmt: skip


@pytest.mark.parametrize(
    ("taken", "kind"),
    # A file is looked into by who opens it.
    [(t, k) for t in ("part", "lock", "journal") for k in KINDS if t == "part" or k != "a file"],
)
def test_temporary_name__that_is_taken_is_left(tmp_path: Path, kind: str, taken: str) -> None:
    """One rule for the folders of all outputs, the locks in them, and journals."""
    if kind == "another user's" and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    name = files.hidden_path(tmp_path / "out", "part" if taken == "lock" else taken)
    if taken == "lock":
        name.mkdir()
        name /= LOCK
    take_name(kind, name, tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    target = str(tmp_path / "out")
    with pytest.raises(UsageError, match=rf"out: {name} is in the way") as said:
        files.open_locked(name, "out") if taken == "journal" else atomic_output(target).__enter__()
    assert "\n" not in str(said.value)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "elsewhere" / "kept").read_text() == "kept"


@pytest.mark.parametrize("before", [None, 0o600, 0o604, 0o644])
def test_output__is_for_the_user_alone_while_it_is_made(tmp_path: Path, before: int | None) -> None:
    """Then it has the permissions of the umask, or those that it had."""
    path = tmp_path / "hits.tsv"
    if before is not None:
        path.write_bytes(b"before")
        path.chmod(before)
    usual = os.umask(0o027)
    try:
        with atomic_output(str(path)) as file:
            file.write(b"after")
            assert path.exists() == (before is not None)
            assert mode(tmp_path / ".hits.tsv.part") == 0o700
        with files.open_locked(tmp_path / ".hits.tsv.journal", "out"):
            assert mode(tmp_path / ".hits.tsv.journal") == 0o600
    finally:
        os.umask(usual)
    assert (path.read_bytes(), mode(path)) == (b"after", before or 0o640)


@pytest.mark.parametrize("before", [None, b"before"])
@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt, SystemExit, Failure])
def test_output__after_an_exception_is_what_it_was(
    tmp_path: Path, error: type[BaseException], before: bytes | None
) -> None:
    path = tmp_path / "hits.tsv"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(error, match=r"^half$"):
        write_half(path, error)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [before] * (before is not None)


@pytest.mark.parametrize(("steps", "number", "problem"), [
    # What was written cannot be removed either, which must not cover up the rest.
    ([(Path, "replace"), (Path, "unlink")], errno.EACCES, "permission denied"),
    ([(os, "fsync"), (Path, "unlink")], errno.EACCES, "permission denied"),
    ([(os, "fsync")], errno.ENOSPC, FULL), ([(os, "fsync")], errno.EDQUOT, QUOTA),
])  # fmt: skip
def test_output__that_can_no_longer_be_written_is_told_and_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: Any, number: int, problem: str
) -> None:
    for owner, name in steps:
        monkeypatch.setattr(owner, name, Mock(side_effect=OSError(number, os.strerror(number))))
    with pytest.raises(Failure) as caught, atomic_output(str(tmp_path / "hits.tsv")) as file:
        file.write(b"x")
    assert str(caught.value) == f"{tmp_path}/hits.tsv: cannot be written: {problem}"
    assert not (tmp_path / "hits.tsv").exists()
    assert list(tmp_path.iterdir()) == [] or len(steps) > 1


def test_output__through_a_link_replaces_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "hits.tsv", tmp_path / "link.tsv"
    link.symlink_to(target)
    for text in (b"first", b"second"):
        with atomic_output(str(link)) as file:
            file.write(text)
        assert link.is_symlink()
        assert target.read_bytes() == text


@pytest.mark.parametrize("name", ["hits.tsv", "n" * 255, "é" * 127])
def test_output__may_have_the_longest_name_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with atomic_output(name) as file:
        file.write(b"x")
    assert (tmp_path / name).read_bytes() == b"x"


def test_output__is_synced_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, fsync, replace = Mock(), os.fsync, Path.replace
    calls.fsync.side_effect, calls.replace.side_effect = fsync, replace
    monkeypatch.setattr(os, "fsync", calls.fsync)
    monkeypatch.setattr(Path, "replace", lambda part, target: calls.replace(part, target))
    with atomic_output(str(tmp_path / "hits.tsv")) as file:
        file.write(b"xyz")
    assert [name for name, *_ in calls.mock_calls] == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize(("name", "problem"), [
    ("absent/hits.tsv", r"there is no directory .*/absent$"),
    ("file/hits.tsv", r"there is no directory .*/file$"), ("", r"it is a directory$"),
    ("absent/", r"it is a directory$"), ("n" * 256, r"file name too long$"),
    ("zero\0byte", r".*embedded null "), ("circle", r"."),
])  # fmt: skip
@pytest.mark.parametrize("call", [check_output, lambda path: atomic_output(path).__enter__()])
def test_check__refuses_what_cannot_become_a_file(
    tmp_path: Path, name: str, problem: str, call: Callable[[str], Any]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(UsageError, match=rf"(?s)^{tmp_path}/.*: cannot be written: {problem}"):
        call(f"{tmp_path}/{name}")
    with pytest.raises(UsageError, match=r"the output has no name"):
        call("")


def test_check__refuses_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hits.tsv").write_bytes(b"before")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    with pytest.raises(UsageError, match=r"hits\.tsv: cannot be written: permission denied"):
        check_output(str(tmp_path / "hits.tsv"))


def test_check__accepts_what_can_be_written(tmp_path: Path) -> None:
    for path in (None, "-", "/dev/stdout", "/dev/null", f"{tmp_path}/new", "new"):
        check_output(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [10, 5_000_000])
def test_disk_full__is_a_failure_with_the_path(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(files, "check_output", lambda _: None)  # else nothing is written there
    with pytest.raises(Failure) as caught, atomic_output("/dev/full") as file:
        file.write(b"x" * size)
    assert str(caught.value) == f"/dev/full: cannot be written: {FULL}"


@pytest.mark.process
def test_file_size_limit__is_a_failure_and_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "hits.tsv").write_bytes(b"before")
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (100_000, 100_000))
    done = run_write(tmp_path / "hits.tsv", 5000, preexec_fn=limit)
    problem = f"{tmp_path}/hits.tsv: cannot be written: file too large (see `ulimit -f`)"
    assert (done.returncode, done.stderr.decode()) == (2, problem)
    assert (tmp_path / "hits.tsv").read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.process
@pytest.mark.parametrize("path", ["-", "/dev/stdout"])
def test_stdout__follows_what_was_printed(path: str) -> None:
    code = f"print('first', end=' ')\n{WRITE}\nprint(' third')"
    done = run_write(path, 1, code, stdout=subprocess.PIPE)
    assert done.stdout == b"first " + b"x" * 1000 + b" third\n"


def test_stdout__after_an_exception_gets_no_more(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(Broken, match=r"half"):
        write_half(Path("/dev/stdout"), Broken)
    assert len(capfdbinary.readouterr().out) == 5_000_000


def test_stdout__may_be_replaced_by_what_takes_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer))
    with atomic_output(None) as file:
        file.write(b"x")
    assert buffer.getvalue() == b"x"
    for other, problem in ((io.StringIO(), "takes no bytes here"), (None, "standard output is")):
        monkeypatch.setattr(sys, "stdout", other)
        with pytest.raises(UsageError, match=problem):
            atomic_output(None).__enter__()


@pytest.mark.process
@pytest.mark.parametrize("kilobytes", [1, 5000])
def test_stdout__closed_by_its_reader_ends_the_run_quietly(kilobytes: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = run_write("-", kilobytes, stdout=pipe)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.process
def test_stdout__to_a_slow_reader_loses_nothing() -> None:
    """A non-blocking pipe says "not now" when it is full, which is no error."""
    code = f"import os\nos.set_blocking(1, False)\n{WRITE}"
    command = [sys.executable, "-c", code, "-", "3000"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout
        threading.Event().wait(0.3)
        assert len(process.stdout.read()) == 3_000_000
    assert process.returncode == 0


def test_fifo__is_written_directly(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(path.read_bytes)
        with atomic_output(str(path)) as file:
            file.write(b"x" * 300_000)
        assert reader.result(10) == b"x" * 300_000
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_sync__of_a_file_system_says_what_is_wrong(tmp_path: Path) -> None:
    files.sync_file_system(tmp_path)
    with pytest.raises(FileNotFoundError):
        files.sync_file_system(tmp_path / "missing")


HOLDS_ONE = """
import sys
from pathlib import Path
from multigpu.cluster.files import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(parent: Path) -> subprocess.Popen[str]:
    """A process with a folder in `parent`."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDS_ONE, str(parent)], text=True, cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.process
def test_folder__of_a_killed_process_is_removed_by_the_next(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        assert process.stdout
        left = Path(process.stdout.readline().strip())
        (left / "worker").mkdir()
        with scratch_folder(tmp_path):
            assert (left / "worker").exists()  # it is still held
        process.send_signal(signal.SIGKILL)
    assert left.exists()
    with scratch_folder(tmp_path) as folder:
        assert [str(path) for path in tmp_path.iterdir()] == [folder]


def test_folders__of_others_are_left(tmp_path: Path) -> None:
    """However they are called, and also where no lock can be opened."""
    (tmp_path / "multigpu-results").mkdir()
    (tmp_path / "multigpu-results" / "calls.tsv").write_text("mine")
    (tmp_path / "multigpu-12345678" / LOCK).mkdir(parents=True)
    (tmp_path / "multigpu-87654321").mkdir()
    (tmp_path / "multigpu-87654321" / LOCK).symlink_to(tmp_path / "multigpu-results" / "calls.tsv")
    (tmp_path / "multigpu-of_a_host").mkdir()
    (tmp_path / "multigpu-of_a_host" / LOCK).write_text(f"{platform.node()}-2")
    with scratch_folder(tmp_path) as own:
        (Path(own) / "file").write_text("content")
        assert (Path(own) / LOCK).exists()
    assert len(list(tmp_path.iterdir())) == 4  # and its own is gone with the block
