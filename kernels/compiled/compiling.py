"""Notice of functions that are being compiled, for whoever shows it; imports nothing heavy."""

from collections.abc import Callable

# Called in the compiling thread when a function that is not in the cache begins to be compiled.
listeners: list[Callable[[], None]] = []


def compilation_begins() -> None:
    for listener in listeners:
        listener()
