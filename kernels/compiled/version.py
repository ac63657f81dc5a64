"""Hashes of the kernels: which ones these are, and which compiled functions are up to date."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

KERNELS = Path(__file__).parents[1]
PACKAGE = "multigpu.kernels"
SUFFIXES = (".py", ".cu", ".cuh")
SHARED = ("compiled", "numerics")  # folders from which functions of any kernel may call others


@cache
def digest() -> str:
    """Return a hash of all kernels: two machines with the same one compute the same."""
    return _hash(path for path in KERNELS.rglob("*") if path.suffix in SUFFIXES)


def digest_of(module: str) -> str:
    """Return a hash of all files that may be compiled into the functions of a module.

    Those of a kernel's folder are inlined there only, those in `SHARED` and directly in `kernels`
    everywhere. Nothing else compiles functions, apart from tests.
    """
    inside = module.startswith(f"{PACKAGE}.")
    folder = module.removeprefix(f"{PACKAGE}.").partition(".")[0] if inside else SHARED[0]
    return _digest_of_folder(folder)


@cache
def _digest_of_folder(folder: str) -> str:
    paths = list(KERNELS.glob("*.py"))
    for name in {folder, *SHARED}:
        paths += (KERNELS / name).rglob("*.py")
    return _hash(paths)


def _hash(paths: Iterable[Path]) -> str:
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(paths):
        found.update(path.read_bytes())
    return found.hexdigest()
