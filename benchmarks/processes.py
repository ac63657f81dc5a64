"""Processes that are timed, and their peak memory."""

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from common import ROOT

LIMIT = 600.0  # seconds that one process may take
LOOK = 0.02  # seconds between two looks at its memory


@dataclass(frozen=True)
class Ran:
    """A process that succeeded."""

    seconds: float
    peak_bytes: int  # resident memory, at its highest
    cpu_seconds: float  # of all its threads: on a shared machine steadier than `seconds`


def process(command: Sequence[str], use_cores: int | None = None, limit: float = LIMIT) -> Ran:
    """Run a process and wait for it, on the first `use_cores` cores where that is given.

    Its standard output is dropped. Raises RuntimeError with its last words where it fails.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    before = _cpu_seconds_of_children()
    with on_cores(use_cores):
        begin = time.perf_counter()
        child = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
    assert child.stderr is not None
    killer = threading.Timer(limit, child.kill)
    killer.start()
    memory = _HighestMemory(child.pid)
    words = child.stderr.read()  # a few lines: no pipe fills up
    child.wait()
    seconds = time.perf_counter() - begin
    killer.cancel()
    child.stderr.close()
    if child.returncode:
        last = words.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"{' '.join(command[:4])} … gave {child.returncode}: {last}")
    return Ran(seconds, memory.seen(), _cpu_seconds_of_children() - before)


def _cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # of those that have ended
    return used.ru_utime + used.ru_stime


class _HighestMemory:
    """Peak memory of a running process, without its children, by looking again and again.

    The figure of `wait4` starts with the memory of this process, from which it was forked.
    """

    def __init__(self, pid: int) -> None:
        self._status, self._bytes = Path(f"/proc/{pid}/status"), 0
        self._looking = threading.Thread(target=self._look)
        self._looking.start()

    def _look(self) -> None:
        with suppress(OSError, IndexError):  # it has ended
            while True:
                line = self._status.read_text().partition("VmHWM:")[2]
                self._bytes = 1024 * int(line.split()[0])
                time.sleep(LOOK)

    def seen(self) -> int:
        """Return the peak in bytes, after the process has ended."""
        self._looking.join()
        return self._bytes


@contextmanager
def on_cores(count: int | None) -> Iterator[None]:
    """Bind this thread, and processes that it starts, to the first `count` cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def python(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "ignore", *arguments]
