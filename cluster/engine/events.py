"""Events of a run, and steps of the chunk that a thread is working on, with their times."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

_MONOTONIC_ZERO = time.time() - time.monotonic()  # seconds since 1970


def now() -> float:
    """Return the seconds since 1970, by a clock that does not jump when the system's is set."""
    return _MONOTONIC_ZERO + time.monotonic()


@dataclass(frozen=True)
class Event:
    """Something that happened.

    name   planned, started, finished, resumed, corrected; split, on_cpu; retried, moved; joined,
           left, retired; written
    at     seconds since 1970, on the machine where it happened; see `now`
    details  numbers and texts, by name; `chunk` counts chunks in the order in which they began
    """

    name: str
    at: float = field(default_factory=now)
    details: dict[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]


def ignore_event(_: Event) -> None:
    """Ignore an event."""


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
