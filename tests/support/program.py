"""Runs of the program: its real `main` in this process, or a process of its own."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The last line of good runs, what first runs say, and what is said of simulated ligands and of a
# scheduler on the loopback without TLS.
OF_EVERY_RUN = re.compile(
    r"multigpu: (compiling|.*; written to |.* ligands? ha(ve|s) no hydrogens "
    r"|tcp://127\.0\.0\.1:\d+ runs what anybody sends )"
)


class Left(BaseException):
    """Raised instead of ending the process."""


@dataclass(frozen=True)
class Ended:
    """A run of the program that has ended.

    err       the remarks on standard error
    all_err   everything there
    """

    status: int
    out: str
    err: str
    all_err: str = ""

    @property
    def problem(self) -> str:
        """The only line on standard error, without its prefix."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("multigpu: error: ")
        return lines[0].removeprefix("multigpu: error: ")


def remarks(err: str | bytes) -> str:
    """Return standard error without the last line of a good run and what says it compiles."""
    lines = (err.decode() if isinstance(err, bytes) else err).splitlines(keepends=True)
    return "".join(line for line in lines if not OF_EVERY_RUN.match(line))


Run = Callable[..., Ended]


@contextmanager
def main_in_process(capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Yield a function that runs `main`; only its last call, `os._exit`, is replaced."""
    from multigpu import cli

    def leave(status: int) -> None:
        raise Left(status)

    def run(*arguments: str) -> Ended:
        capfd.readouterr()
        with pytest.raises(Left, match=r"^\d+$") as left:
            cli.main(list(arguments))
        out, err = capfd.readouterr()
        return Ended(left.value.args[0], out, remarks(err), err)

    handler = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "os", SimpleNamespace(_exit=leave))
        yield run
    signal.signal(signal.SIGINT, handler)


def program(
    *arguments: str,
    stdin: bytes = b"",
    stdout: int | BinaryIO = subprocess.PIPE,
    timeout: float = 60,
) -> Ended:
    run = subprocess.run(
        [sys.executable, "-m", "multigpu", *arguments],
        cwd=ROOT,
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=timeout,
        check=False,
    )
    out, err = (run.stdout or b"").decode(), run.stderr.decode()
    return Ended(run.returncode, out, remarks(err), err)
