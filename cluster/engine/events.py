"""Events of a run, which are written down, shown, or looked at afterwards."""

import time
from collections.abc import Callable
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
