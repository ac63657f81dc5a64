"""Schedulers, workers and commands as processes, here or on hosts that network namespaces play."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.program import ROOT, Ended, remarks

PATIENCE = 60.0  # seconds for anything to happen


@dataclass
class Host:
    """A machine: this one, or a network namespace of it.

    settings  Dask's, by the names of its environment variables
    started   processes, in order
    """

    folder: Path
    address: str = "127.0.0.1"
    namespace: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(self, *words: str, log: str | None = None, **settings: str) -> subprocess.Popen[str]:
        """Start `python -m COMMAND`. Its output goes to the file `log`, or can be read."""
        inside = ["ip", "netns", "exec", self.namespace] if self.namespace else []
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **self.settings, **settings,
        }  # fmt: skip
        with (self.folder / (log or os.devnull)).open("a") as file:
            process = subprocess.Popen(
                [*inside, sys.executable, "-m", *words], cwd=ROOT, text=True, env=environment,
                stdout=file if log else subprocess.PIPE, stderr=file if log else subprocess.PIPE,
            )  # fmt: skip
        self.started.append(process)
        return process

    def run(self, *command: str, timeout: float = PATIENCE) -> Ended:
        return end(self.start(*command), timeout)

    @contextmanager
    def scheduler(self, *options: str) -> Iterator[Path]:
        """Start a scheduler; yield the file by which workers and clients find it."""
        path = self.folder / "scheduler.json"
        where = ("--host", self.address, "--port", "0", "--scheduler-file", str(path))
        with ended(self.start("dask", "scheduler", *where, *options, log="scheduler.log")):
            wait_for(path.exists, "a scheduler")
            yield path
        path.unlink(missing_ok=True)  # it does so itself when it may

    @contextmanager
    def worker(self, *options: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
        """Start a worker of one thread; yield it once the scheduler knows it."""
        path = str(self.folder / "scheduler.json")
        log = f"worker-{self.address}-{time.monotonic_ns()}.log"
        where = ("--host", self.address, "--scheduler-file", path, "--nthreads", "1")
        scratch = ("--local-directory", str(self.folder), "--no-dashboard")
        process = self.start("dask", "worker", *where, *scratch, *options, log=log, **settings)
        with ended(process):
            text = (self.folder / log).read_text
            wait_for(lambda: "Registered to" in text() or process.poll() is not None, "a worker")
            yield process


def listening(number: int | None = None) -> dict[int, str]:
    """Return the ports that a process, or this one, and those it started listen on: addresses."""
    process = psutil.Process(number)
    return {
        connection.laddr.port: connection.laddr.ip
        for each in (process, *process.children(recursive=True))
        for connection in each.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


def end(process: subprocess.Popen[str], timeout: float = PATIENCE) -> Ended:
    """Wait for a command to end; return how it ended."""
    out, err = process.communicate(timeout=timeout)
    return Ended(process.returncode, out, remarks(err), err)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """End a process after the block; it may end before."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(happened: Callable[[], Any], what: str, patience: float = PATIENCE) -> None:
    give_up = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < give_up, f"no sign of {what}"
        time.sleep(0.05)


def events(log: Path, name: str) -> int:
    """Return how often an event happened so far, by a `--log-json` file."""
    lines = log.read_text().splitlines() if log.exists() else []
    return sum(f'"{name}"' in line for line in lines)


@dataclass
class Link:
    """The cable between two hosts."""

    namespace: str

    def cut(self) -> None:
        _ip("-n", self.namespace, "link", "set", "eth0", "down")

    def restore(self) -> None:
        _ip("-n", self.namespace, "link", "set", "eth0", "up")


@contextmanager
def two_hosts(folder: Path, settings: dict[str, str]) -> Iterator[tuple[Host, Host, Link]]:
    """Yield two hosts with an address each, and the link between them. Skips where that fails."""
    names = [f"multigpu-{os.getpid()}-{letter}" for letter in "ab"]
    with ExitStack() as stack:
        for name in names:
            _ip_or_skip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
        _ip_or_skip("link", "add", "eth0", "netns", names[0], "type", "veth",
                    "peer", "name", "eth0", "netns", names[1])  # fmt: skip
        hosts = []
        for number, name in enumerate(names, 1):
            address = f"192.0.2.{number}"  # of the block that is kept for documents
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", name, "link", "set", device, "up")
            hosts.append(Host(folder, address, name, settings))
        yield hosts[0], hosts[1], Link(names[1])


def _ip_or_skip(*arguments: str) -> None:
    if shutil.which("ip") is None:
        pytest.skip("two hosts need the program ip (package iproute2)")
    try:
        _ip(*arguments)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"two hosts need network namespaces, that is root: {error.stderr.strip()}")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
