"""Events of a run as a log, and as a timeline: `--log-json` and `--trace`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from multigpu.cluster.engine.events import Event
from multigpu.cluster.engine.output import atomic_output, open_unbuffered
from multigpu.cluster.errors import Failure

MICRO = 1e6  # microseconds, which the timeline counts in


class Unbuffered(Protocol):
    """File whose writes are in it at once."""

    def write(self, data: bytes, /) -> object: ...


class Log:
    """Listener that writes a line of JSON for every event."""

    def __init__(self, file: Unbuffered) -> None:
        self._file = file

    def __call__(self, event: Event) -> None:
        line = {"event": event.name, "at": round(event.at, 6), **event.facts}
        self._file.write(json.dumps(line).encode() + b"\n")


class Timeline:
    """Listener that keeps the steps of all chunks, for the Trace Event Format.

    A device is a process of the timeline, a thread one of its rows.
    """

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._devices: dict[str, int] = {}

    def __call__(self, event: Event) -> None:
        facts = event.facts
        if event.name == "finished":
            device = self._device(f"{facts['worker']} {facts['device']}")
            for name, begin, end, thread in facts["steps"]:
                self._add(name, begin, end, device, thread, chunk=facts["chunk"])
        elif event.name == "written":
            self._add("write", facts["begin"], event.at, self._device("output"), 0)
        else:
            self._events.append(
                {
                    "name": event.name, "ph": "i", "s": "g", "ts": event.at * MICRO,
                    "pid": 0, "tid": 0, "args": facts,
                }
            )  # fmt: skip

    def _device(self, name: str) -> int:
        """Return the number of a device's process; its first event names the process."""
        if name not in self._devices:
            self._devices[name] = len(self._devices) + 1
            self._events.append(
                {
                    "name": "process_name", "ph": "M", "pid": self._devices[name], "tid": 0,
                    "args": {"name": name},
                }
            )  # fmt: skip
        return self._devices[name]

    def _add(self, name: str, begin: float, end: float, pid: int, tid: int, **args: Any) -> None:
        self._events.append(
            {
                "name": name, "ph": "X", "ts": begin * MICRO, "dur": (end - begin) * MICRO,
                "pid": pid, "tid": tid, "args": args,
            }
        )  # fmt: skip

    def dump(self) -> bytes:
        """Return the timeline as JSON."""
        return json.dumps({"traceEvents": self._events, "displayTimeUnit": "ms"}).encode() + b"\n"


@contextmanager
def logged(path: str | None) -> Iterator[Log | None]:
    """Yield a log in a file, which exists from the first event on and stays if the run fails."""
    if path is None:
        yield None
        return
    with open_unbuffered(path) as file:
        yield Log(file)


@contextmanager
def traced(path: str | None) -> Iterator[Timeline | None]:
    """Yield a timeline that is written at the end, also of a run that failed.

    Where it cannot be written either, the error of the run is the one that is raised.
    """
    if path is None:
        yield None
        return
    timeline = Timeline()
    try:
        yield timeline
    except BaseException:
        with suppress(Failure):
            _write(timeline, path)
        raise
    _write(timeline, path)


def _write(timeline: Timeline, path: str) -> None:
    with atomic_output(path) as file:
        file.write(timeline.dump())
