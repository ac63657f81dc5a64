"""Packages that only some jobs need: imported when they do, or one line that names them."""

from importlib import import_module
from typing import Any

from multigpu.errors import UsageError


def needed(module: str, what: str) -> Any:
    """Import a module that `what` (in the plural) need.

    Raises UsageError where its package is missing, as in an incomplete installation.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(f"{what} need the package {package}: pip install {package}") from error
