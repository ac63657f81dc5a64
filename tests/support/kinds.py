"""Kind of a test, found by its folder, fixtures, parameters and the helpers it calls."""

from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

import pytest

TESTS = Path(__file__).resolve().parents[1]
KINDS = ("faults", "golden", "emulated", "process", "unit")  # pyproject.toml says what they are
EMULATORS = {"emulated", "compile_cubin", "machine", "gpu"}
STARTERS = {"subprocess", "multiprocessing", "processes", "--workers", "two_processes", "scheduler"}


def kind_of(item: pytest.Function) -> str:
    """Return the kind of a test; a kind that the test is marked with comes first."""
    marked = [kind for kind in KINDS if item.get_closest_marker(kind)]
    if marked:
        return marked[0]
    if TESTS / "faults" in item.path.parents:
        return "faults"
    if "golden" in item.fixturenames or TESTS / "golden" in item.path.parents:
        return "golden"
    words = {*item.fixturenames, *_parameters(item), *words_of(item.function)}
    if words & EMULATORS:
        return "emulated"
    return "process" if words & STARTERS else "unit"


@cache
def words_of(function: FunctionType) -> set[str]:
    """Return the names and texts in a function and in the helpers of tests that it calls."""
    words: set[str] = set()
    done: set[FunctionType] = set()
    waiting = [function]
    while waiting:
        function = waiting.pop()
        done.add(function)
        names = _words(function.__code__)
        words |= names
        called = [function.__globals__[name] for name in names & set(function.__globals__)]
        waiting += [each for each in called if _is_of_tests(each) and each not in done]
    return words


def _is_of_tests(value: object) -> bool:
    return isinstance(value, FunctionType) and TESTS in Path(value.__code__.co_filename).parents


def _words(code: CodeType) -> set[str]:
    words = set(code.co_names)
    for value in code.co_consts:
        if isinstance(value, CodeType):
            words |= _words(value)
        elif isinstance(value, (str, tuple)):
            words |= _texts(value)
    return words


def _texts(value: object) -> set[str]:
    if isinstance(value, str):
        return {value}
    if isinstance(value, (tuple, list, dict)):
        return {word for each in value for word in _texts(each)}
    return set()


def _parameters(item: pytest.Function) -> set[str]:
    """Return the texts among a test's parameters and the parts of its identifier."""
    if not hasattr(item, "callspec"):
        return set()
    texts = {word for value in item.callspec.params.values() for word in _texts(value)}
    return texts | set(item.callspec.id.split("-"))
