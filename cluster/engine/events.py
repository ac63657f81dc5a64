"""What happens in a run: to be written down, shown, or looked at afterwards."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_BEGAN = time.time() - time.monotonic()  # of the clock that counts on, in seconds since 1970


def now() -> float:
    """Seconds since 1970, by a clock that never jumps: what is set later makes no difference."""
    return _BEGAN + time.monotonic()


@dataclass(frozen=True)
class Event:
    """Something that happened.

    name   planned, started, finished, resumed, corrected; split, on_cpu; retried, moved; joined,
           left, retired; written
    at     seconds since 1970, on the machine where it happened; see `now`
    facts  numbers and texts, by name; `chunk` is a number in the order of the input
    """

    name: str
    at: float = field(default_factory=now)
    facts: dict[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]


def unheard(_: Event) -> None:
    """The listener that does nothing."""
