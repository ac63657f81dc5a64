"""Packages that only some jobs need: imported when they do, or one line with the remedy."""

from importlib import import_module
from typing import Any

from multigpu.errors import UsageError


def needed(module: str, what: str) -> Any:
    """A module of the extra `dock`. `what`: in the plural, what cannot be done without it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        remedy = "pip install 'multigpu[dock]'"
        raise UsageError(f"{what} need the package {package}: {remedy}") from error
