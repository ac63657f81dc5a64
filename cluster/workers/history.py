"""The history of the chunk that a thread is working on: its steps with their times, its events."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from multigpu.cluster.engine.events import Event, now


@dataclass(frozen=True)
class TimedStep:
    """A step of a chunk: begin and end in seconds since 1970, and the thread it ran in."""

    name: str
    begin: float
    end: float
    thread: int


@dataclass
class ChunkHistory(threading.local):
    """Steps and events of the chunk that this thread is working on."""

    steps: list[TimedStep] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def start(self) -> None:
        """Forget the chunk before."""
        self.steps, self.events = [], []

    def add_step(self, name: str, begin: float, end: float) -> None:
        self.steps.append(TimedStep(name, begin, end, threading.get_native_id()))

    def add_event(self, name: str, **details: Any) -> None:
        self.events.append(Event(name, details=details))


HISTORY = ChunkHistory()


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Time a step of this thread's chunk; sessions may time parts of their steps."""
    begin = now()
    yield
    HISTORY.add_step(name, begin, now())


def add_device_steps(seconds: dict[str, float]) -> None:
    """Add steps that ran on the device one after the other, the last of them until now."""
    end = now()
    for name, spent in reversed(seconds.items()):
        HISTORY.add_step(name, end - spent, end)
        end -= spent
