"""Runs of the real command, watched through its log."""

import hashlib
import json
import os
import subprocess
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
from common import ROOT, covered
from processes import LIMIT, python

LOOK = 0.005  # seconds between two looks at a log
SKIPPED = 0.1  # of the chunks, before the steady state
LAST_WORDS = 2000  # characters

Events = list[dict[str, Any]]


@dataclass(frozen=True)
class Job:
    """A command on existing data.

    arguments  all but the output and where it runs
    small  a job of a second that brings every kernel into the caches; None: it is small itself
    read   bytes of its input
    """

    name: str
    arguments: tuple[str, ...]
    output: str  # a file; empty: the folder itself
    read: int
    small: tuple[str, ...] | None = None

    def command(self, folder: Path, *more: str) -> list[str]:
        target = str(folder / "out" / self.output)
        told = ("--log-json", str(folder / "log.jsonl"), "--summary", str(folder / "summary.json"))
        return python("-m", "multigpu", *self.arguments, "-o", target, "-q", *told, *more)


class Running:
    """A run in progress. Its output is in the folder `out`."""

    def __init__(self, job: Job, folder: Path, *more: str) -> None:
        (folder / "out").mkdir(parents=True, exist_ok=True)
        self._log, self._words = folder / "log.jsonl", folder / "errors.txt"
        self._log.unlink(missing_ok=True)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.events: Events = []
        self._read = 0
        self.begun = time.time()
        with self._words.open("wb") as words:
            self._child = psutil.Popen(
                job.command(folder, *more), stdout=subprocess.DEVNULL, stderr=words,
                env={**os.environ, "PYTHONPATH": path},
            )  # fmt: skip

    def look(self) -> Events:
        """Return the events in the log so far, without a line that is being written."""
        if self._log.exists():
            with self._log.open("rb") as file:
                file.seek(self._read)
                whole = file.read().rpartition(b"\n")[0]
            self._read += len(whole) + 1 if whole else 0
            self.events += map(json.loads, whole.splitlines())
        return self.events

    def finished(self) -> Events:
        return [event for event in self.look() if event["event"] == "finished"]

    def alive(self) -> bool:
        return self._child.poll() is None

    def until(self, chunks: int) -> None:
        """Wait until `chunks` chunks are finished."""
        while self.alive() and len(self.finished()) < chunks:
            time.sleep(LOOK)

    def kill(self) -> None:
        """Kill the client at once, as by a loss of power, then what it started and is left."""
        others = self._child.children(recursive=True)
        self._child.kill()
        self._child.wait()
        for left in psutil.wait_procs(others, timeout=5)[1]:
            left.kill()

    def ended(self, limit: float = LIMIT) -> "Watched":
        """Wait for the end. Raises RuntimeError with the last words of a run that fails."""
        try:
            status = self._child.wait(timeout=limit)
        except psutil.TimeoutExpired:
            self.kill()
            status = f"nothing within {limit:.0f} s"
        seconds = time.time() - self.begun
        if status:
            words = self._words.read_text(errors="replace").strip()[-LAST_WORDS:]
            raise RuntimeError(f"the run gave {status}: {words}")
        return Watched(self.begun, seconds, tuple(self.look()))


# ---- what a run was like ----------------------------------------------------------------------


@dataclass(frozen=True)
class Watched:
    """A run that succeeded. begun: seconds since 1970, as in the log."""

    begun: float
    seconds: float
    events: tuple[dict[str, Any], ...]

    @cached_property
    def finished(self) -> Events:
        return [event for event in self.events if event["event"] == "finished"]

    @cached_property
    def steps(self) -> list[tuple[str, str, float, float]]:
        """Steps of all chunks: device, step, begin, end."""
        return [
            (device_of(event), name, begin, end)
            for event in self.finished
            for name, begin, end, _ in event["steps"]
        ]

    @property
    def start_up(self) -> float:
        """Seconds from the command to the first step of a chunk."""
        return min(begin for _, _, begin, _ in self.steps) - self.begun

    @property
    def first_chunk(self) -> float:
        """Seconds from the command to the first finished chunk."""
        return float(self.finished[0]["at"]) - self.begun

    @property
    def work(self) -> float:
        """Seconds from the first step of a chunk to the end of the last one."""
        return self._end - self._begin

    @property
    def _begin(self) -> float:
        return min(begin for _, _, begin, _ in self.steps)

    @property
    def _end(self) -> float:
        return max(end for *_, end in self.steps)

    def gb_per_s(self, size: int) -> float:
        """Return the rate for `size` bytes of input, after the first tenth of the chunks."""
        ends = sorted(max(end for _, _, end, _ in event["steps"]) for event in self.finished)
        skipped = max(1, round(SKIPPED * len(ends)))
        if len(ends) <= 2 * skipped:
            return float("nan")  # too few for a steady state
        share = (len(ends) - skipped) / len(ends)
        return share * size / (ends[-1] - ends[skipped - 1]) / 1e9

    def busy(self) -> dict[str, dict[str, float]]:
        """Return the share of time in which some chunk is at a step, by device and step."""
        spans: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for device, step, begin, end in self.steps:
            spans.setdefault(device, {}).setdefault(step, []).append((begin, end))
        return {
            device: {step: covered(times) / self.work for step, times in each.items()}
            for device, each in sorted(spans.items())
        }

    def count(self, event: str) -> int:
        return sum(each["event"] == event for each in self.events)


def device_of(event: dict[str, Any]) -> str:
    return f"{event['worker']} {event['device']}"


def contents(folder: Path) -> dict[str, str]:
    """Return the hash of every file of the output."""
    found = {}
    for path in sorted(path for path in (folder / "out").rglob("*") if path.is_file()):
        with path.open("rb") as file:
            name = str(path.relative_to(folder / "out"))
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
