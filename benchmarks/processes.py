"""Processes that are timed: how long they take, and their memory at its highest."""

import os
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
    """A process that ended well."""

    seconds: float
    peak_bytes: int  # resident memory, at its highest


def process(command: Sequence[str], use_cores: int | None = None, limit: float = LIMIT) -> Ran:
    """Run a process and wait for it; on the first `use_cores` cores only where told.

    Its standard output is dropped. Raises RuntimeError with its last words where it fails.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    with _on_cores(use_cores):
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
    return Ran(seconds, memory.seen())


class _HighestMemory:
    """Looks at a running process again and again; its children do not count.

    What `wait4` tells begins with the memory of this process, of which the other was forked.
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
        """Bytes; the process has ended."""
        self._looking.join()
        return self._bytes


@contextmanager
def _on_cores(count: int | None) -> Iterator[None]:
    """This thread, and processes that it starts, on the first `count` cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def python(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "ignore", *arguments]
