"""Keyword arguments of the Python functions, and their names in errors."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from multigpu.errors import Failure, InputError
from multigpu.run.options import RunOptions

ALIASES = {"workers": "processes"}  # the name on the command line, and the field
ONLY_OPTIONS = ("debug", "format", "log_json", "output", "progress", "quiet", "summary", "trace")
# An option of ours in a message, but not the one of `docker run --gpus all`.
OPTION = re.compile(r"(?<![\w-])(?<!run )--(no-)?([a-z]+(?:-[a-z]+)*)\b(?!-)")


@contextmanager
def parameters_named() -> Iterator[None]:
    """Name parameters as Python does in what fails meanwhile: `min_mapq`, not `--min-mapq`."""
    try:
        yield
    except InputError as error:
        error.problem = in_python(error.problem)
        error.path = in_python(error.path) if error.path.startswith("--") else error.path
        raise
    except Failure as error:
        error.args = tuple(in_python(x) if isinstance(x, str) else x for x in error.args)
        raise


def in_python(message: str) -> str:
    """Return a message with parameters of Python instead of options of the command line."""

    def parameter(option: re.Match[str]) -> str:
        name = option[2].replace("-", "_")
        return f"{name}=False" if option[1] else name

    return OPTION.sub(parameter, message)


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
            if name in ONLY_OPTIONS:
                hint = f": only the command line has --{name.replace('_', '-')}"
            raise TypeError(
                f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}"
            )
