"""Kinds of tests, found by folder, fixtures, parameters and the helpers that a test calls."""

from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

import pytest

TESTS = Path(__file__).resolve().parents[1]
KINDS = ("faults", "golden", "emulated", "process", "unit")  # pyproject.toml says what they are
EMULATORS = {"emulated", "compile_cubin", "machine", "gpu"}
STARTERS = {  # or run the whole program here, as the fixture `main` does
    "--workers", "main", "multiprocessing", "processes", "scheduler", "start_workers", "subprocess",
    "two_processes",
}  # fmt: skip


def kind_of(item: pytest.Function) -> str:
    """Return the kind of a test; a kind that the test is marked with comes first."""
    marked = [marker.name for marker in item.iter_markers() if marker.name in KINDS]
    if marked:
        return marked[0]
    folder = _folder(item.path)
    if folder == "faults":
        return "faults"
    if folder == "golden" or "golden" in item.fixturenames:
        return "golden"
    words = words_of(item.function).union(item.fixturenames, _parameters(item))
    if words & EMULATORS:
        return "emulated"
    return "process" if words & STARTERS else "unit"


@cache
def _folder(path: Path) -> str:
    return path.relative_to(TESTS).parts[0]


@cache
def words_of(function: FunctionType) -> frozenset[str]:
    """Return the telling names and texts in a function and in the helpers of tests it calls."""
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
    return frozenset(words & (EMULATORS | STARTERS))


def _is_of_tests(value: object) -> bool:
    return isinstance(value, FunctionType) and value.__code__.co_filename.startswith(f"{TESTS}/")


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
