"""The process: what it says of an error, and how it ends on Ctrl-C."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from bad_input.given import BASE, SCAN, Store, many
from program import ROOT, program

SOON = 5.0  # seconds; the promise is 2, on a machine that does nothing else


def test_program__tells_an_error_without_a_traceback(
    store: Store, signatures: str, tmp_path: Path
) -> None:
    path, output = store("bad.fq", many(60, r30=BASE)), tmp_path / "hits.tsv"
    ended = program(*SCAN, path, "-s", signatures, "-o", str(output), "--max-chunk-bytes", "100")
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem.startswith(f"{path}: record 'r30', position 4 (from 0): 'X'")
    assert list(tmp_path.glob("*hits*")) == []


def test_program__with_debug_shows_where_an_error_comes_from(store: Store, signatures: str) -> None:
    ended = program(*SCAN, store("bad.fq", many(60, r30=BASE)), "-s", signatures, "--debug")
    lines = ended.err.splitlines()
    assert ended.status == 2
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("multigpu: error: ")


# ---- Ctrl-C -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_scan(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Samples and signatures that two cores need half a minute for: the signatures have no seed."""
    folder = tmp_path_factory.mktemp("long")
    bases = (b"ACGTTGCAAGGCTTCA" * 4000)[:50_000]
    with (folder / "long.fa").open("wb") as file:
        for number in range(1000):
            file.write(b">s%d\n%s\n" % (number, bases))
    with (folder / "sig.fa").open("wb") as file:
        for number in range(3000):
            file.write(b">g%d\n%s\n" % (number, b"RYN" * 15 + b"ACG" * (number % 7 + 1)))
    return [str(folder / "long.fa"), "-s", str(folder / "sig.fa"), "--max-chunk-bytes", "1000000"]


def family(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return [process, *process.children(recursive=True)]
    return []


def seconds_used(processes: list[psutil.Process]) -> float:
    used = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            times = process.cpu_times()
            used += times.user + times.system
    return used


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def wait_until(true: Callable[[], object], seconds: float) -> bool:
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        if true():
            return True
        time.sleep(0.05)
    return False


@dataclass(frozen=True)
class Interrupted:
    status: int
    out: bytes
    err: str
    seconds: float
    left: list[psutil.Process]


def interrupt(command: list[str], folder: Path, busy: float, whole_group: bool) -> Interrupted:
    """Runs the program, sends SIGINT when it has computed for `busy` seconds, waits for its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "multigpu", "scan", *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    parent = psutil.Process(process.pid)
    try:
        assert wait_until(lambda: list(folder.glob(".hits.tsv.part")), 30), "it did not begin"
        before = seconds_used(family(parent))
        assert wait_until(lambda: seconds_used(family(parent)) > before + busy, 60)
        members = family(parent)
        assert process.poll() is None, "it ended too early"
        begin = time.monotonic()
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
        seconds = time.monotonic() - begin
        wait_until(lambda: not alive(members), SOON)
        return Interrupted(process.returncode, out, err.decode(), seconds, alive(members))
    finally:
        for member in alive(family(parent)):
            member.kill()
        process.communicate()


WORKERS = [
    pytest.param((), 1.0, id="in process"),
    pytest.param(("--workers", "2"), 6.0, id="two worker processes"),
]


@pytest.mark.parametrize(("options", "busy"), WORKERS)
def test_interrupt__ends_soon_and_leaves_nothing(
    long_scan: list[str], tmp_path: Path, options: tuple[str, ...], busy: float
) -> None:
    output = ("-o", str(tmp_path / "hits.tsv"), "--gpus", "none")
    ended = interrupt([*long_scan, *output, *options], tmp_path, busy, whole_group=False)
    print(f"ended {ended.seconds:.2f} s after SIGINT")
    assert (ended.status, ended.out) == (130, b"")
    assert "multigpu: error: interrupted" in ended.err.splitlines()
    assert ended.seconds < SOON
    assert ended.left == []
    assert [path.name for path in tmp_path.iterdir()] == [".hits.tsv.journal"]


@pytest.mark.parametrize(("options", "busy"), WORKERS)
def test_interrupt__from_the_keyboard_reaches_all_processes_and_says_one_line(
    long_scan: list[str], tmp_path: Path, options: tuple[str, ...], busy: float
) -> None:
    """Ctrl-C in a terminal goes to the whole process group."""
    output = ("-o", str(tmp_path / "hits.tsv"), "--gpus", "none")
    ended = interrupt([*long_scan, *output, *options], tmp_path, busy, whole_group=True)
    print(f"ended {ended.seconds:.2f} s after SIGINT")
    assert (ended.status, ended.out) == (130, b"")
    kept = "multigpu: what is finished is kept: --resume goes on with it"
    said = [line for line in ended.err.splitlines() if line]
    assert said == [kept, "multigpu: error: interrupted"]
    assert ended.seconds < SOON
    assert ended.left == []
    assert [path.name for path in tmp_path.iterdir()] == [".hits.tsv.journal"]
