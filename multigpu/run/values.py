"""Checks of values that users give: numbers, choices and paths, each with a clear message."""

import os
from collections.abc import Callable
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

from multigpu.errors import UsageError

LONGEST_VALUE = 60  # characters of a wrong value in a message


def check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raise UsageError unless the value is one of the choices, which are texts or numbers."""
    if not isinstance(value, str | int) or value not in choices:
        allowed = " or ".join(str(choice) for choice in choices)
        raise UsageError(f"{name} is {abbreviate(value)}; it must be {allowed}")


def convert_fields(options: object, kind: Callable[[str, Any], object], *names: str) -> None:
    """Convert fields of a frozen dataclass by `kind`; None stays where it is the default.

    kind: gets a field's name and value, returns the value, or raises UsageError
    """
    for name in names:
        value = getattr(options, name)
        if value is not None or getattr(type(options), name) is not None:
            object.__setattr__(options, name, kind(name, value))


def path_of(name: str, value: Any) -> str:
    """Return a path as text. Raises UsageError for anything else."""
    with suppress(TypeError):
        path = os.fspath(value)
        if isinstance(path, str):
            return path
    raise UsageError(f"{name} is {abbreviate(value)}; it must be a path")


def text_of(name: str, value: Any) -> str:
    """Return a text. Raises UsageError for anything else."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is {abbreviate(value)}; it must be text")
    return value


def number(name: str, value: Any) -> float:
    """Return a number as a float. Raises UsageError for anything else."""
    if not isinstance(value, bool) and isinstance(value, Real):
        with suppress(OverflowError):
            return float(value)
    raise UsageError(f"{name} is {abbreviate(value)}; it must be a number")


def whole(name: str, value: Any) -> int:
    """Return a whole number as an int. Raises UsageError for anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UsageError(f"{name} is {abbreviate(value)}; it must be a whole number")
    return int(value)


def numbers(count: int) -> Callable[[str, Any], tuple[float, ...]]:
    """Return a conversion to a tuple of `count` numbers, for `convert_fields`."""

    def convert(name: str, value: Any) -> tuple[float, ...]:
        found: tuple[Any, ...] = ()
        with suppress(TypeError):
            found = tuple(value)
        if len(found) != count:
            raise UsageError(f"{name} is {abbreviate(value)}; it must be {count} numbers")
        return tuple(number(name, each) for each in found)

    return convert


def abbreviate(value: object) -> str:
    """Return a value for a message: on one line, cut when long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
