"""Runs of the real command that are disturbed, and the same undisturbed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from support.program import ROOT, Ended, remarks


@dataclass(frozen=True)
class Job:
    """A command on data that were made for it.

    arguments   all but the output and the run's own
    output      a file or a folder
    under_way   bytes of a journal with some parts
    """

    name: str
    arguments: tuple[str, ...]
    output: str
    under_way: int = 5000

    @property
    def journal(self) -> str:
        return "out/.part/journal" if self.output == "out" else f".{self.output}.journal"

    def result(self, folder: Path) -> dict[str, bytes]:
        """Return every file of the output by its content."""
        output = folder / self.output
        files = [path for path in (output, *output.rglob("*")) if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    def command(self, folder: Path, *more: str) -> list[str]:
        target = str(folder / self.output)
        run = [sys.executable, "-m", "multigpu", *self.arguments, "-o", target]
        return [*run, "--gpus", "none", *more]


class Run:
    """A run under way."""

    def __init__(self, job: Job, folder: Path, *more: str, **popen: Any) -> None:
        self.folder, self.job = folder, job
        environment = {**popen.pop("env", os.environ), "PYTHONFAULTHANDLER": "1"}  # where it hangs
        self._process = subprocess.Popen(
            job.command(folder, *more), cwd=ROOT, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment,
            **popen,
        )  # fmt: skip
        self._family = psutil.Process(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def children(self) -> list[psutil.Process]:
        """The worker processes, once they are there."""
        try:
            found = self._family.children(recursive=True)
            return [child for child in found if "spawn_main" in str(child.cmdline())]
        except psutil.NoSuchProcess:
            return []

    @property
    def journal(self) -> Path:
        return self.folder / self.job.journal

    def journaled(self, size: int) -> bool:
        """Whether the journal has grown over `size` bytes."""
        return self.journal.exists() and self.journal.stat().st_size > size

    def until_under_way(self) -> None:
        """Wait until the journal has some parts."""
        assert self.until(lambda: self.journaled(self.job.under_way)), self.ended().err

    def until(self, happened: Callable[[], object], timeout: float = 60.0) -> bool:
        """Wait for something, or for the run's end; whether it happened."""
        limit = time.monotonic() + timeout
        while time.monotonic() < limit and self._process.poll() is None:
            if happened():
                return True
            time.sleep(0.01)
        return False

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ended(self, timeout: float = 120.0) -> Ended:
        """Its end; whatever it has started is gone some seconds later, or this fails."""
        members = [self._family, *self.children()]
        try:
            _, err = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            for process in (self._family, *self.children()):  # each says where it is
                for number in (signal.SIGABRT, signal.SIGCONT):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.send_signal(number)
            _, err = self._process.communicate(timeout=10)
            raise AssertionError(f"no end within {timeout:g} s:\n{err}") from None
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.communicate()
        _, alive = psutil.wait_procs(members, timeout=10)
        assert alive == []
        assert "not everything ended within" not in err, err
        return Ended(self._process.returncode, "", remarks(err))


def run(job: Job, folder: Path, *more: str, timeout: float = 120.0, **popen: Any) -> Ended:
    return Run(job, folder, *more, **popen).ended(timeout)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def resize(disk: Path, size: str) -> None:
    """Of a file system of the fixture `small_disk`."""
    command = ["mount", "-o", f"remount,size={size}", str(disk)]
    subprocess.run(command, check=True, capture_output=True)
