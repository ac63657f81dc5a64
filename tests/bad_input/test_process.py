"""The process: what it says of an error, and how it ends on Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bad_input.given import BASE, READS, SCAN, Store, many
from faults.harness import Job, left
from faults.harness import Run as Disturbed
from support.program import ROOT, Ended, Run, program, run_python

SOON = 5.0  # seconds; the promise is 2, on a machine that does nothing else
COMMANDS = ("scan", "doctor --no-kernel-check", "plan")
FULL = ": cannot be written: the disk is full (no space left on device)"


def test_program__tells_an_error_in_one_line(store: Store, signatures: str, tmp_path: Path) -> None:
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


@pytest.fixture(scope="module")
def long_scan(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A scan that two cores need half a minute for: the signatures have no seed."""
    folder = tmp_path_factory.mktemp("long")
    bases = (b"ACGTTGCAAGGCTTCA" * 4000)[:50_000]
    with (folder / "long.fa").open("wb") as file:
        for number in range(1000):
            file.write(b">s%d\n%s\n" % (number, bases))
    with (folder / "sig.fa").open("wb") as file:
        for number in range(3000):
            file.write(b">g%d\n%s\n" % (number, b"RYN" * 15 + b"ACG" * (number % 7 + 1)))
    command = ("scan", f"{folder}/long.fa", "-s", f"{folder}/sig.fa")
    return Job("scan", (*command, "--max-chunk-bytes", "1000000"), "hits.tsv")


@pytest.mark.parametrize("whole_group", [False, True], ids=["the program", "all processes"])
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["threads", "processes"])
def test_interrupt__ends_soon_says_one_line_and_leaves_nothing(
    long_scan: Job, tmp_path: Path, workers: tuple[str, ...], whole_group: bool
) -> None:
    """While it computes. Ctrl-C in a terminal goes to the whole process group."""
    running = Disturbed(long_scan, tmp_path, *workers)
    assert running.until(lambda: running.journaled(0)), "it did not begin"
    begun = running.journal.stat().st_size
    assert running.until(lambda: running.journaled(begun)), "no chunk was finished"
    begin = time.monotonic()
    (os.killpg if whole_group else os.kill)(running.pid, signal.SIGINT)
    ended = running.ended(timeout=30)
    assert time.monotonic() - begin < SOON
    kept = "multigpu: finished chunks are kept: --resume continues from there"
    assert (ended.status, [line for line in ended.err.splitlines() if line]) == (
        130, [kept, "multigpu: error: interrupted"],
    )  # fmt: skip
    assert left(tmp_path) == [".hits.tsv.journal"]


def in_shell(script: str, *arguments: str) -> Ended:
    """Run the program as `$@` of a shell script."""
    return program(*arguments, script=script)


@pytest.fixture
def small_scan(store: Store, signatures: str) -> tuple[str, ...]:
    return (*SCAN, store("good.fq", READS), "-s", signatures)


@pytest.mark.parametrize(("command", "script", "problem"), [
    *((command, '"$@" >&-', " is closed") for command in COMMANDS),
    *((command, '"$@" >/dev/full', FULL)
      for command in (*COMMANDS, "--help", "scan --help", "--citation")),
])  # fmt: skip
def test_standard_output__that_is_closed_or_full_is_told(
    small_scan: tuple[str, ...], command: str, script: str, problem: str
) -> None:
    words = {"scan": small_scan, "plan": ("plan", *small_scan)}.get(command, command.split())
    ended = in_shell(script, *words)
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem == f"standard output{problem}"


def test_closed_files__are_no_reason_to_fail(small_scan: tuple[str, ...], tmp_path: Path) -> None:
    """Nor does a file that is opened later get its number, and what is said, into it."""
    ended = in_shell('"$@" 2>&-', *small_scan)
    assert ended.status == 0
    assert ended.out.splitlines()[0].startswith("sample\tsignature")
    ended = in_shell('"$@" 2>&-', *small_scan, "--gpus", "9")
    assert (ended.status, ended.out, ended.err) == (2, "", "")
    assert in_shell('"$@" 2>/dev/full', *SCAN, "absent.fq", "-s", "absent.fa").status == 2
    output = tmp_path / "hits.tsv"
    ended = in_shell('"$@" <&- >&- 2>&-', *small_scan, "-o", str(output))
    assert ended.status == 0
    assert output.read_text().startswith("sample\tsignature")


def test_answer__that_nobody_reads_ends_as_filters_do(small_scan: tuple[str, ...]) -> None:
    ended = in_shell('{ "$@"; echo $? >&2; } | true', "plan", *small_scan)
    assert ended.err == "141\n"


def test_working_folder__may_be_gone(small_scan: tuple[str, ...], tmp_path: Path) -> None:
    # Numba imports `coverage` where it is installed, as it is for tests only; it needs a folder.
    (tmp_path / "coverage.py").write_text("raise ImportError")
    (tmp_path / "gone").mkdir()
    script = f'cd "{tmp_path}/gone" && rmdir "$PWD"; PYTHONPATH={tmp_path}:{ROOT} "$@"'
    ended = in_shell(script, *small_scan)
    assert (ended.status, ended.err) == (0, "")


def test_name__with_line_ends_is_told_in_one_line(main: Run) -> None:
    ended = main(*SCAN, "a\nb\x07.fq", "-s", "absent.fa")
    assert (ended.status, ended.out) == (2, "")
    assert ended.problem == "a\\nb\\x07.fq: cannot be read: there is no such file"


def test_name__that_is_no_utf8_is_a_name(small_scan: tuple[str, ...], tmp_path: Path) -> None:
    """In journal, summary and log, too."""
    samples = os.fsencode(tmp_path) + b"/\xff.fq"
    Path(os.fsdecode(samples)).write_bytes(READS)
    command = (*SCAN, os.fsdecode(samples), *small_scan[-2:], "-o", str(tmp_path / "hits.tsv"))
    ended = in_shell('"$@"', *command, "--log-json", str(tmp_path / "log"))
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert len((tmp_path / "hits.tsv").read_bytes().splitlines()) == 3


LIBRARIES = {
    "ignores it in a callback": """
import ctypes, os, signal, sys, time
from multigpu.run.signals import raise_again
sys.unraisablehook = raise_again
@ctypes.CFUNCTYPE(None)
def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(9)
try:
    interrupted()
    time.sleep(9)
except KeyboardInterrupt:
    sys.exit(102)
""",
    # As RDKit does in every thread that embeds a molecule.
    "has taken its signal": """
import ctypes, os, signal, sys, threading, time
from multigpu.run import signals
signals.listen()
taken = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None)
other = threading.Thread(target=ctypes.CDLL(None).signal, args=(signal.SIGINT, taken))
other.start()
other.join()
try:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(900):  # a signal just before a sleep does not end it
        time.sleep(0.01)
except KeyboardInterrupt as error:
    sys.exit(100 + error.args[0])
""",
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_interrupt__comes_although_a_library(library: str) -> None:
    begin = time.monotonic()
    ended = run_python("-c", LIBRARIES[library])
    assert (ended.status, ended.err) == (100 + signal.SIGINT, "")
    assert time.monotonic() - begin < 5


HANGS = {  # what the program waits for when a signal has come, or is at when it comes
    "lock": """
lock = threading.Lock()
try:
    print(flush=True)
    time.sleep(60)
finally:
    with lock, lock:
        pass
""",
    "library": """
mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
lock(mutex)
print(flush=True)
lock(mutex)
""",
    "terminal": """
os.set_blocking(2, False)
with contextlib.suppress(BlockingIOError):
    while True:
        os.write(2, bytes(1000))
while True:
    with contextlib.suppress(KeyboardInterrupt):
        print(flush=True)
        time.sleep(60)
""",
}


def hanging(where: str, *options: str) -> subprocess.Popen[str]:
    modules = "import contextlib, ctypes, os, threading, time\nfrom multigpu.run import signals\n"
    listens = "signals.LATE_SECONDS = 0.5\nsignals.listen()"
    run = subprocess.Popen(
        [sys.executable, *options, "-c", modules + listens + HANGS[where]],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert run.stdout is not None
    run.stdout.readline()
    time.sleep(0.2)  # it is about to hang
    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("where", HANGS)
def test_signal__ends_the_program_where_something_hangs(where: str, number: signal.Signals) -> None:
    with hanging(where) as run:
        run.send_signal(number)
        assert run.wait(20) == 128 + number
        assert run.stderr is not None
        said = run.stderr.read()
    if where != "terminal":
        assert said.startswith("multigpu: error: ")
        assert said.endswith("; not everything ended within 0.5 s\n")


def test_signal__shows_where_it_hangs_if_that_is_asked_for() -> None:
    with hanging("lock", "-X", "faulthandler") as run:
        run.terminate()
        _, said = run.communicate(timeout=20)
    assert '  File "<string>", line 10 in <module>' in said.splitlines()
