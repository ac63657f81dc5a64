"""Notes on standard error while functions are compiled: the first run takes longer."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from multigpu.kernels.compiled import compiling

EVERY = 5.0  # seconds between two lines


class CompilationNotes:
    """Listener of `kernels.compiled.compiling`: a line at once, more from time to time."""

    def __init__(self) -> None:
        self._count, self._reported = 0, float("-inf")
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self._count += 1
            if time.monotonic() - self._reported < EVERY:
                return
            self._reported = time.monotonic()
            text = f"compiling: {self._count - 1:,} functions so far"
            if self._count == 1:
                text = "compiling for this machine, which the first run does once: up to a minute"
            with suppress(OSError, ValueError):  # nobody reads it any more
                sys.stderr.write(f"multigpu: {text}\n")
                sys.stderr.flush()


@contextmanager
def compilation_reported() -> Iterator[None]:
    """Print lines on standard error while this process compiles functions."""
    notes = CompilationNotes()
    compiling.listeners.append(notes)
    try:
        yield
    finally:
        compiling.listeners.remove(notes)
