"""Packages that are called like the function in them: `multigpu.scan(...)`.

The folder `multigpu/scan` and the function `multigpu.scan` have one name, and Python binds the
name to the folder's package as soon as one of its modules is imported. So the package itself can
be called: before and after, `multigpu.scan` is the same object.
"""

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package `multigpu.NAME` that calls `multigpu.NAME.api.NAME`, which is imported then."""

    @property
    def _function(self) -> Any:
        name = self.__name__.rpartition(".")[2]
        return getattr(importlib.import_module(f"{self.__name__}.api"), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function of the package's name."""
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return the function by its name, or what tools ask of a function."""
        if name == self.__name__.rpartition(".")[2]:
            return self._function
        if name == "__signature__":
            return inspect.signature(self._function)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        """Return the function's name too: help() describes what is listed."""
        return sorted({*super().__dir__(), self.__name__.rpartition(".")[2]})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the name of the package: functions pickle so, too."""
        return importlib.import_module, (self.__name__,)


def make_callable(package: str) -> None:
    """Let a package that is being imported be called as its function."""
    sys.modules[package].__class__ = CallablePackage
