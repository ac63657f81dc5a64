"""Notes on standard error while functions are compiled: the first run takes longer."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from multigpu.kernels.compiled import compiling

EVERY = 5.0  # seconds between two lines


@contextmanager
def compilation_reported() -> Iterator[None]:
    """Print lines while this process compiles functions: one at once, more from time to time."""
    lock = threading.Lock()
    count, reported = 0, float("-inf")

    def note() -> None:
        nonlocal count, reported
        with lock:
            count += 1
            if time.monotonic() - reported < EVERY:
                return
            reported = time.monotonic()
            text = f"compiling: {count - 1:,} functions so far"
            if count == 1:
                text = "compiling for this machine, which only the first run does: up to a minute"
            with suppress(OSError, ValueError):  # nobody reads it any more
                sys.stderr.write(f"multigpu: {text}\n")
                sys.stderr.flush()

    compiling.listeners.append(note)
    try:
        yield
    finally:
        compiling.listeners.remove(note)
