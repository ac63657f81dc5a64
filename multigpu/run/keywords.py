"""Keyword arguments of the Python functions: the error for a misspelt one names the right one."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from multigpu.run.options import RunOptions

ALIASES = {"workers": "processes"}  # the name on the command line, and the field


def run_options(function: Callable[..., Any], given: Mapping[str, Any]) -> RunOptions:
    """Return the RunOptions that the keywords `given` to a function ask for.

    Raises TypeError for a keyword that is none of `RunOptions`, with the one that it resembles.
    """
    check_keywords(function, given, run_keywords())
    return RunOptions(**{ALIASES.get(name, name): given[name] for name in given})


def run_keywords() -> list[str]:
    """Return the names of keywords that say where and how a job runs."""
    return [*ALIASES, *(field.name for field in fields(RunOptions))]


def check_keywords(
    function: Callable[..., Any], given: Iterable[str], known: Iterable[str]
) -> None:
    """Raise TypeError for a keyword that `function` does not know, as Python does for others.

    known: keywords that the function accepts besides the parameters that it names
    """
    named = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind != parameter.VAR_KEYWORD
    ]
    allowed = {*named, *known}
    for name in given:
        if name not in allowed:
            alike = get_close_matches(name, sorted(allowed), n=1)
            hint = f"; did you mean {alike[0]!r}?" if alike else ""
            raise TypeError(
                f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}"
            )
