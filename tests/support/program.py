"""Runs of the program: its real `main` in this process, or a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

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
    def lines(self) -> list[str]:
        return self.err.splitlines()

    @property
    def problem(self) -> str:
        """The only line on standard error, without its prefix."""
        (line,) = self.lines
        assert line.startswith("multigpu: error: ")
        return line.removeprefix("multigpu: error: ")


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


def program(*arguments: str, **more: Any) -> Ended:
    """Run the program as a process; `more` as for `run_python`."""
    return run_python("-m", "multigpu", *arguments, **more)


def run_python(
    *arguments: str, script: str = "", stdin: bytes = b"", stdout: int | BinaryIO = subprocess.PIPE,
    timeout: float = 120, cwd: Path = ROOT, env: Mapping[str, str] | None = None, **more: Any,
) -> Ended:  # fmt: skip
    """Run Python to its end.

    script  of a shell, in which "$@" is the command
    env     what the environment has beside what is there
    more    as for `subprocess.run`
    """
    shell = ["sh", "-c", script, "sh"] if script else []
    run = subprocess.run(
        [*shell, sys.executable, *arguments], cwd=cwd, input=stdin, stdout=stdout,
        stderr=subprocess.PIPE, timeout=timeout, check=False,
        env={**os.environ, "PYTHONPATH": python_path(), **(env or {})}, **more,
    )  # fmt: skip
    out, err = (run.stdout or b"").decode(), run.stderr.decode()
    return Ended(run.returncode, out, remarks(err), err)


def python_path() -> str:
    """Return the PYTHONPATH of this environment with this tree before it."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
