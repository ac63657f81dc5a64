"""Events of a run as a log, and as a timeline: `--log-json` and `--trace`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from multigpu.cluster.engine.events import Event, Listener
from multigpu.cluster.errors import Failure
from multigpu.cluster.files import atomic_output, open_unbuffered

MICRO = 1e6  # microseconds, which the timeline counts in


class Timeline:
    """Listener that keeps the steps of all chunks, for the Trace Event Format.

    A device is a process of the timeline, a thread one of its rows.
    """

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._devices: dict[str, int] = {}

    def __call__(self, event: Event) -> None:
        details = event.details
        if event.name == "finished":
            device = self._device(f"{details['worker']} {details['device']}")
            for name, begin, end, thread in details["steps"]:
                self._add_step(name, begin, end, pid=device, tid=thread, chunk=details["chunk"])
        elif event.name == "written":
            self._add_step("write", details["begin"], event.at, pid=self._device("output"))
        else:
            self._add(event.name, "i", 0, 0, s="g", ts=event.at * MICRO, args=details)

    def _device(self, name: str) -> int:
        """Return the number of a device's process; its first event names the process."""
        if name not in self._devices:
            self._devices[name] = len(self._devices) + 1
            self._add("process_name", "M", self._devices[name], 0, args={"name": name})
        return self._devices[name]

    def _add_step(
        self, name: str, begin: float, end: float, *, pid: int, tid: int = 0, **details: Any
    ) -> None:
        times = {"ts": begin * MICRO, "dur": (end - begin) * MICRO}
        self._add(name, "X", pid, tid, **times, args=details)

    def _add(self, name: str, kind: str, pid: int, tid: int, **more: Any) -> None:
        self._events.append({"name": name, "ph": kind, "pid": pid, "tid": tid, **more})

    def dump(self) -> bytes:
        """Return the timeline as JSON."""
        return json.dumps({"traceEvents": self._events, "displayTimeUnit": "ms"}).encode() + b"\n"


@contextmanager
def log_events(path: str) -> Iterator[Listener]:
    """Yield a listener that writes a line of JSON for every event.

    The file exists from the first event on, and stays if the run fails.
    """
    with open_unbuffered(path) as file:

        def log(event: Event) -> None:
            line = {"event": event.name, "at": round(event.at, 6), **event.details}
            file.write(json.dumps(line).encode() + b"\n")

        yield log


@contextmanager
def record_timeline(path: str) -> Iterator[Timeline]:
    """Yield a timeline that is written at the end, also of a run that failed.

    Where it cannot be written either, the error of the run is the one that is raised.
    """
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
