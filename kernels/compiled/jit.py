"""Numba's compiler with a cache that knows of every file.

Numba keeps a compiled function for as long as the function's own file is unchanged, although what
it calls in other files is compiled into it. So the functions of a kernel are cached in a folder
named by the contents of all files that may be compiled into them (`caches.digest_of`). It lies in
`multigpu` in NUMBA_CACHE_DIR, else in the user's cache folder. Only the user may enter it, as what
is loaded from there is run.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config, event

from multigpu.kernels.compiled import caches

Function = Callable[..., Any]
_deciding = threading.Lock()


class _Compilations(event.Listener):
    """Reports when a compilation begins; a function found in the cache is not compiled."""

    def on_start(self, event: Any) -> None:
        caches.compilation_begins()

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Compilations())


def jit(function: Function) -> Function:
    """Return a function that is compiled when first called, needs no GIL and is kept on disk."""
    return _compiled(function)


def jit_no_alloc(function: Function) -> Function:
    """Return a function as `jit` does that may not allocate: five times as fast with tuples."""
    return _compiled(function, _nrt=False)


def _compiled(function: Function, **more: Any) -> Function:
    options = {"nogil": True, "error_model": "numpy", **more}
    with _own_cache(function.__module__) as kept:
        try:
            compiled: Function = njit(cache=kept, **options)(function)
        except RuntimeError:  # there is no place that can be written
            compiled = njit(**options)(function)
    return compiled


@contextmanager
def _own_cache(module: str) -> Iterator[bool]:
    """Have Numba keep the functions that are decorated meanwhile; yield whether there is a folder.

    Only one thread at a time: another one would take this folder for the user's, and make one in
    it.
    """
    with _deciding:
        before = config.CACHE_DIR
        folder = _folder(before, caches.digest_of(module))
        config.CACHE_DIR = str(folder or before)
        try:
            yield folder is not None
        finally:
            config.CACHE_DIR = before


@cache
def _folder(root: str, digest: str) -> Path | None:
    """Return the folder for compiled functions with this digest; None where there can be none."""
    root = root or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        place = Path(root).expanduser().absolute()
        return caches.private(place / "multigpu" / digest)
    except caches.Exposed as error:
        caches.warn("functions", str(error), "NUMBA_CACHE_DIR")
    except (OSError, RuntimeError):  # it cannot be written, or there is no home
        pass
    return None
