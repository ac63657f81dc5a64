"""Python functions made of requests: their keywords, docstrings and slips."""

from collections.abc import Callable
from dataclasses import MISSING, fields
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature
from textwrap import indent, wrap
from typing import Any, ParamSpec, TypeVar, get_type_hints

from multigpu.errors import spelled
from multigpu.run.declarations import Options, declared

P = ParamSpec("P")
Request = TypeVar("Request", bound=Options)
Result = TypeVar("Result")


def function_of(
    request: Callable[P, Request],
) -> Callable[[Callable[[Request], Result]], Callable[P, Result]]:
    """Return a decorator: a function of a request becomes one of what the request is made of.

    The function has the parameters of the request's constructor, for type checkers, editors and
    `help()`. Raises TypeError for a keyword that is none, with the one that it resembles.
    """
    kind: Any = request

    def decorate(function: Callable[[Request], Result]) -> Callable[P, Result]:
        signature = _signature(kind, get_type_hints(function)["return"])
        others = {other: each.name for each in declared(kind) for other in each.also}

        @wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> Result:
            given = {others.get(name, name): value for name, value in keywords.items()}
            try:
                bound = signature.bind(*args, **given)
            except TypeError as error:
                hint = _hint(given, [*signature.parameters, *others])
                raise TypeError(f"{function.__name__}() {error}{hint}") from None
            return function(kind.from_given(bound.arguments))

        call.__doc__ = _docstring(function.__doc__ or "", kind)
        call.__signature__ = signature  # type: ignore[attr-defined]
        del call.__wrapped__  # help() would show its signature
        return call

    return decorate


def _signature(kind: Any, result: Any) -> Signature:
    """Return the signature of a request's constructor, with types as Python has them."""
    hints = get_type_hints(kind)
    parameters = [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY if each.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in sorted(fields(kind), key=lambda each: bool(each.kw_only))
        if each.init
    ]
    return Signature(parameters, return_annotation=result)


def _hint(given: dict[str, Any], known: list[str]) -> str:
    """Return which keyword the first unknown one resembles; empty if none."""
    unknown = next((name for name in given if name not in known), "")
    alike = get_close_matches(unknown, sorted(known), n=1)
    return f"; did you mean {alike[0]!r}?" if alike else ""


def _docstring(text: str, kind: type[Options]) -> str:
    """Return a docstring with the options of a request in place of the line `{options}`."""
    lines = []
    for each in declared(kind):
        if each.only != "command line":
            lines += [each.name, *wrap(spelled(each.description), 92, initial_indent="    ",
                                       subsequent_indent="    ")]  # fmt: skip
    return text.replace("    {options}", indent("\n".join(lines), "    "))
